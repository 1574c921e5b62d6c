"""What a text names, and every file that is no program, no image and no artifact."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from trunnion import examples
from trunnion.cli import subject
from trunnion.cli.subject import find_subject
from trunnion.errors import CorruptArtifactError, ProgramError
from trunnion.image import SyntheticKernel, synthetic_cubin


def test_an_example_by_name() -> None:
    found = find_subject("vector_add")
    assert (found.kind, found.example.name) == ("example", "vector_add")
    assert found.program is found.example.program


def test_a_file_comes_before_an_example(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    program = examples.load("hopper_gemm").program
    (tmp_path / "vector_add").write_text(program.to_json())
    found = find_subject("vector_add")
    assert (found.kind, found.program) == ("program", program)


@pytest.mark.parametrize("name", ["x.cubin", "x"])
def test_an_image_by_suffix_or_by_its_first_bytes(tmp_path: Path, name: str) -> None:
    data = synthetic_cubin([SyntheticKernel(name="k")])
    (tmp_path / name).write_bytes(data)
    found = find_subject(str(tmp_path / name))
    assert (found.kind, found.image, found.program) == ("image", data, None)


def test_a_pipe_does_not_hang(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(ProgramError, match="is not a plain file"):
        find_subject(str(tmp_path / "pipe"))


def test_a_huge_file_is_not_read(tmp_path: Path) -> None:
    for name, size in (("p.json", 1 << 40), ("x.cubin", 1 << 40)):
        with (tmp_path / name).open("wb") as file:
            file.truncate(size)  # takes no room on the disk
        with pytest.raises(ProgramError, match=f"{size} bytes, expected at most"):
            find_subject(str(tmp_path / name))


def test_a_device_is_no_file() -> None:
    with pytest.raises(ProgramError, match="is not a plain file"):
        find_subject("/dev/zero")


@pytest.mark.parametrize(
    "data",
    [b"", b"\xff\xfe", b"{", b"[]", b"{}", b"null", b'{"schema": "trunnion.program/1"}', b"[" * 200_000],
)
def test_a_file_that_is_no_program(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "p.json").write_bytes(data)
    with pytest.raises(ProgramError):
        find_subject(str(tmp_path / "p.json"))


def test_links_to_nothing_and_to_themselves(tmp_path: Path) -> None:
    (tmp_path / "loose").symlink_to(tmp_path / "nowhere")
    (tmp_path / "round").symlink_to(tmp_path / "round")
    for name in ("loose", "round"):
        with pytest.raises(ProgramError, match="cannot read"):
            find_subject(str(tmp_path / name))


@pytest.mark.parametrize("text", ["", "nonsense", "a\0b", "x" * 5000, "\x1b[31m"])
def test_nothing_of_that_name(text: str) -> None:
    with pytest.raises(ProgramError) as caught:
        find_subject(text)
    assert "\x1b" not in str(caught.value)
    assert len(str(caught.value)) < 1000


def test_a_folder_that_is_no_artifact(tmp_path: Path) -> None:
    with pytest.raises(CorruptArtifactError):
        find_subject(str(tmp_path))


def test_limits_are_those_of_the_kind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subject, "MOST_TEXT_BYTES", 3)
    (tmp_path / "x.cubin").write_bytes(b"four")
    assert find_subject(str(tmp_path / "x.cubin")).image == b"four"


@pytest.mark.parametrize("name", ["x.fatbin", "x.cubin", "x"])
def test_a_fatbin_is_no_damaged_cubin(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(b"\x50\xed\x55\xba" + bytes(100))
    with pytest.raises(
        ProgramError, match=r"is a fatbin, of several images; expected .*cuobjdump --extract-elf all"
    ):
        find_subject(str(tmp_path / name))


def test_a_file_that_is_no_json_is_told_what_is_taken(tmp_path: Path) -> None:
    (tmp_path / "p1.py").write_text("import trunnion\n")
    with pytest.raises(ProgramError, match=r"p1\.py.*KernelProgram.to_json.*cubin or PTX"):
        find_subject(str(tmp_path / "p1.py"))


@pytest.mark.parametrize(
    ("name", "data", "said"),
    [
        ("README.md", b"# Title", "'README.md' is no program: it is text, and no JSON object; expected"),
        ("empty", b"", "'empty' is no program: it is empty; expected"),
        (
            "logo.png",
            b"\x89PNG\xff",
            "'logo.png' is no program: it is neither text nor a device image; expected",
        ),
        (
            "a.out",
            b"\x7fELF\2\1\1" + bytes(11) + b"\x3e\0",
            "'a.out' is no program: it is an ELF file for machine 62,",
        ),
        ("k.cu", b"__global__ void k() {}", "'k.cu' is no program: it is text, and no JSON object; expected"),
    ],
)
def test_what_is_no_program_is_told_what_it_is_and_what_is_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, data: bytes, said: str
) -> None:
    monkeypatch.chdir(tmp_path)
    Path(name).write_bytes(data)
    with pytest.raises(ProgramError) as caught:
        find_subject(name)
    assert str(caught.value).startswith(said)
    for taken in ("a program as JSON", "a cubin or PTX file", "an artifact's folder", "an example"):
        assert taken in str(caught.value)
    assert ("DeviceCode.from_file" in str(caught.value)) == (name == "k.cu")


def test_an_object_that_is_no_program_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("package.json").write_text('{"name": "x"}')
    with pytest.raises(ProgramError) as caught:
        find_subject("package.json")
    assert caught.value.field == "schema"
    (note,) = caught.value.__notes__
    assert note.startswith("'package.json' was read as a program, which KernelProgram.to_json writes")
