"""A cache never gives out the image of other headers, and neither does a precompiled header."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from trunnion.contract.compiler import CompileRequest
from trunnion.contract.spec import Target
from trunnion.errors import CompileError, ProgramError
from trunnion.model.code import DeviceCode
from trunnion.model.plan import KernelSignature
from trunnion_nvrtc.compiler import headers
from trunnion_nvrtc.compiler.compiler import NvrtcCompiler

if TYPE_CHECKING:
    from pathlib import Path

KERNEL = '\nextern "C" __global__ void k(float* x) { x[0] = VALUE; }'
ONE, TWO = "#define VALUE 1.f\n", "#define VALUE 2.f\n"


def request(folder: Path, source: str, *options: str, **more: Any) -> CompileRequest:
    words = (f"--include-path={folder}", *options)
    code = DeviceCode("cuda", source + KERNEL, options=words, **more)
    return CompileRequest(
        code=(code,),
        kernels=(KernelSignature("k", ()),),
        target=Target.parse("sm_90a"),
        options={},
        accepts=("cubin",),
    )


def seen(wanted: CompileRequest) -> tuple[dict[str, str], bytes]:
    compiler = NvrtcCompiler()
    return compiler.environment(wanted), compiler.compile(wanted).data


@pytest.mark.parametrize("option", ["--pch", "--no-cache"])
@pytest.mark.parametrize(
    ("source", "more"),
    [
        ('#include /**/ "v.h"', {}),
        ('#incl\\\nude "v.h"', {}),
        ('// see /usr/include/*.h for the rest\n#include "v.h"\n/* the kernel */', {}),
        ('#define H "v.h"\n#include H', {}),
        ("#include H", {"defines": (("H", '"v.h"'),)}),
        ("#include H", {"defines": (("H", "<v.h>"),)}),
        ('#include "m.h"', {"includes": (("m.h", "#define H <v.h>\n#include H"),)}),
        ('#include "outer.h"', {}),
    ],
)
def test_a_header_that_changes(tmp_path: Path, source: str, more: dict[str, Any], option: str) -> None:
    (tmp_path / "outer.h").write_text('#define H "v.h"\n#include H\n')
    wanted = request(tmp_path, source, option, **more)
    (tmp_path / "v.h").write_text(ONE)
    key, image = seen(wanted)
    (tmp_path / "v.h").write_text(TWO)
    other_key, other_image = seen(wanted)
    assert key != other_key
    assert image != other_image


@pytest.mark.parametrize("held", [True, False])
def test_a_header_that_another_one_includes_whose_name_is_put_together(tmp_path: Path, held: bool) -> None:
    (folder := tmp_path / "inc").mkdir()
    outside = tmp_path / "v.h"
    text = f'#include "{outside}"\n' if held else '#include "../v.h"\n'
    if not held:
        (folder / "m.h").write_text(text)
    source = "#define S(x) #x\n#define T(x) S(x.h)\n#define H(x) T(x)\n#include H(m)\n"
    wanted = request(folder, source, includes=(("m.h", text),) if held else ())
    outside.write_text(ONE)
    key, image = seen(wanted)
    outside.write_text(TWO)
    other_key, other_image = seen(wanted)
    assert key != other_key
    assert image != other_image


def test_a_header_that_appears(tmp_path: Path) -> None:
    wanted = request(tmp_path, f'#if __has_include("opt.h")\n{ONE}#else\n{TWO}#endif')
    key, image = seen(wanted)
    (tmp_path / "opt.h").touch()
    other_key, other_image = seen(wanted)
    assert key != other_key
    assert image != other_image


@pytest.mark.parametrize("option", ["--pch", "--no-cache"])
def test_a_header_that_changes_and_keeps_size_and_time(tmp_path: Path, option: str) -> None:
    """As a tool leaves it that unpacks or copies files with their times."""
    wanted, seen_so_far = request(tmp_path, '#include "v.h"\n', option), []
    for text in (ONE, TWO):
        (tmp_path / "v.h").write_text(text)
        os.utime(tmp_path / "v.h", (1e9, 1e9))
        seen_so_far.append(seen(wanted))
    assert seen_so_far[0][0] != seen_so_far[1][0]
    assert seen_so_far[0][1] != seen_so_far[1][1]


@pytest.mark.parametrize(
    ("source", "more"),
    [
        ("#define VALUE __TIME__[7]", {}),
        ('#include "m.h"', {"includes": (("m.h", "#define VALUE __DATE__[0]"),)}),
        ("", {"defines": (("VALUE", "__TIME__[0]"),)}),
        ('#include "v.h"', {}),
    ],
)
def test_the_time_of_a_compilation_is_never_kept(tmp_path: Path, source: str, more: dict[str, Any]) -> None:
    (tmp_path / "v.h").write_text("#define VALUE __TIMESTAMP__[18]\n")
    os.utime(tmp_path / "v.h", (1e9, 1e9))
    wanted = request(tmp_path, source, **more)
    assert NvrtcCompiler().environment(wanted) != NvrtcCompiler().environment(wanted)


def test_what_the_environment_says_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NVRTC_TEST", "x")
    prints = {NvrtcCompiler().fingerprint()}
    monkeypatch.delenv("NVRTC_TEST")
    prints.add(NvrtcCompiler().fingerprint())
    program = """
import hashlib
from trunnion_nvrtc.compiler.compiler import NvrtcCompiler
from trunnion_nvrtc.compiler.program import Program
with Program('extern "C" __global__ void k(float* x) { x[0] = 1 / x[1]; }') as program:
    program.compile(["--gpu-architecture=sm_90a"])
    print(hashlib.sha256(program.get_cubin().data).hexdigest(), NvrtcCompiler().fingerprint())
"""
    images = set()
    for value in ("nvvm70", "nvvm-latest"):
        environment = {**os.environ, "NV_NVVM_VERSION": value}
        command = [sys.executable, "-c", program]
        said = subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout
        image, _, fingerprint = said.partition(" ")
        images.add(image)
        prints.add(fingerprint.strip())
    assert len(images) == 2, "else it need not count"
    assert len(prints) == 4


def test_too_many_headers_are_never_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(headers, "_MOST_FILES", 1)
    (tmp_path / "other.h").touch()
    wanted = request(tmp_path, '#define H "v.h"\n#include H', "--pch")
    (tmp_path / "v.h").write_text(ONE)
    key, image = seen(wanted)
    assert NvrtcCompiler().environment(wanted) != key
    (tmp_path / "v.h").write_text(TWO)
    assert seen(wanted)[1] != image


def test_the_working_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for folder in ("in", "here", "there"):
        (tmp_path / folder).mkdir()
    (tmp_path / "in" / "file.h").touch()
    (tmp_path / "here" / "v.h").write_text(ONE)
    (tmp_path / "there" / "v.h").write_text(TWO)
    held = {"includes": (("m.h", '#include "v.h"'),)}
    monkeypatch.chdir(tmp_path / "here")
    with pytest.raises(CompileError, match=r"v\.h"):
        seen(request(tmp_path / "in", '#include "m.h"', **held))
    # Headers on disk need what is beside them; then it counts where the process runs.
    wanted = request(tmp_path / "in", '#include "file.h"\n#include "m.h"', **held)
    key, image = seen(wanted)
    monkeypatch.chdir(tmp_path / "there")
    other_key, other_image = seen(wanted)
    assert key != other_key
    assert image != other_image


def test_what_is_included_first_is_not_from_the_working_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "v.h").write_text(ONE)
    monkeypatch.chdir(tmp_path)
    wanted = request(tmp_path / "in", "", "--pre-include=v.h")
    with pytest.raises(ProgramError, match="include path"):
        NvrtcCompiler().environment(wanted)
    with pytest.raises(ProgramError, match="include path"):
        NvrtcCompiler().compile(wanted)
    (tmp_path / "in" / "v.h").write_text(TWO)
    assert seen(wanted)[1] == seen(request(tmp_path / "in", TWO.strip()))[1]
