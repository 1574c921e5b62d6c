from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from trunnion.contract.spec import CompilerSpec
from trunnion.errors import ProgramError
from trunnion.model.builder import ProgramBuilder
from trunnion.model.code import DeviceCode
from trunnion.model.params import Signature
from trunnion.model.program import KernelProgram

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(
    ("language", "meant"),
    [
        (" cuda", "cuda"),
        ("CUDA ", "cuda"),
        ("Cubin", "cubin"),
        ("C++", "c++"),
        ("PTX\n", "ptx"),
        ("CUDA C++", "cuda"),
        ("Acme", ""),
        ("\u212auda", "cuda"),
        ("c\0", ""),
    ],
)
def test_a_language_is_spelled_as_compilers_spell_theirs(language: str, meant: str) -> None:
    """A plugin brings languages of its own, so any word may be one: of another form none is."""
    with pytest.raises(ProgramError) as caught:
        DeviceCode(language, "text")
    assert caught.value.field == "code.language"
    assert "expected a word in lower case" in caught.value.message
    assert caught.value.message.endswith(f"; did you mean {meant!r}?" if meant else "such as 'cuda' or 'c++'")
    with pytest.raises(ProgramError, match=r"languages\[0\]"):
        CompilerSpec(
            name="acme",
            contract_version=3,
            languages=(language,),
            targets=("cuda",),
            produces=("cubin",),
            load_compiler=int,
        )


@pytest.mark.parametrize(
    ("name", "language"), [("k.cu", "cuda"), ("k.cc", "c++"), ("k.cpp", "c++"), ("k.cxx", "c++")]
)
def test_the_suffix_of_a_file_tells_the_language(tmp_path: Path, name: str, language: str) -> None:
    (tmp_path / name).write_text("// text\n")
    code = DeviceCode.from_file(tmp_path / name)
    assert (code.language, code.name, code.source) == (language, name, "// text\n")


def test_a_mark_of_the_encoding_is_no_part_of_a_text(tmp_path: Path) -> None:
    """Editors on Windows write one; nvcc, g++ and Python pass over it in a file, and NVRTC is given a text."""
    (tmp_path / "kernel.cu").write_bytes(b"\xef\xbb\xbfint x;\n")
    assert DeviceCode.from_file(tmp_path / "kernel.cu").source == "int x;\n"


@pytest.mark.parametrize("given", [b"// text\n\0", "// text\n\0", b"// text\n"])
def test_ptx_is_taken_as_a_compiler_writes_it(given: str | bytes) -> None:
    code = DeviceCode("ptx", given)
    assert code == DeviceCode("ptx", "// text\n")
    assert type(code.source) is str


def test_ptx_that_is_no_text_is_refused() -> None:
    for given in (b"\xff", "a\0b"):
        with pytest.raises(ProgramError, match=r"no UTF-8|the character") as caught:
            DeviceCode("ptx", given)
        assert caught.value.field == "code.source"


@pytest.mark.parametrize("text", ["a\0b", "\ud800b", "a\udcff"])
@pytest.mark.parametrize(
    ("field", "given"),
    [
        ("source", lambda text: {"source": text}),
        ("includes[0]", lambda text: {"includes": ((text, ""),)}),
        ("includes[0]", lambda text: {"includes": (("a.h", text),)}),
        ("defines[0]", lambda text: {"defines": ((text, None),)}),
        ("defines[0]", lambda text: {"defines": (("A", text),)}),
        ("options[0]", lambda text: {"options": (text,)}),
    ],
)
def test_what_no_compiler_takes_is_refused_wherever_it_stands(field: str, given: Any, text: str) -> None:
    with pytest.raises(ProgramError, match="which no source, header, macro or option can hold") as caught:
        DeviceCode(**{"language": "cuda", "source": "", **given(text)})
    assert caught.value.field == f"code.{field}"


@pytest.mark.parametrize("given", ["__global__ void k() {}", b"//", None, 5], ids=str)
def test_whoever_gives_a_program_a_text_is_told_what_makes_code_of_it(given: Any) -> None:
    wanted = r"""expected a DeviceCode, or a sequence of them: DeviceCode\("cuda", source\)"""
    with pytest.raises(ProgramError, match=wanted) as caught:
        ProgramBuilder("p", given)
    assert caught.value.field == "code"
    with pytest.raises(ProgramError, match=wanted):
        KernelProgram("p", Signature(), given, ())
