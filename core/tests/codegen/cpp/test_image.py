"""What the assembler reads is, byte by byte, what was to be embedded."""

from __future__ import annotations

import struct
import subprocess

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from trunnion.codegen.cpp.image import ALIGNMENT, emit_image
from trunnion.errors import ProgramError
from trunnion.testing.strategies.names import names

_FITTING = names().filter(lambda name: name.isprintable() and "\0" not in name) | st.text(
    st.characters(exclude_characters="\0", exclude_categories=["Cs"]), min_size=1
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("image")


def assemble(folder, symbols: list[str], data: bytes) -> tuple[dict[str, tuple[int, str]], bytes]:
    """Return each symbol with its offset and what the linker may do with it, and the section they are in."""
    (folder / "image.bin").write_bytes(data)
    (folder / "image.s").write_text(emit_image(symbols, "image.bin"), "ascii")

    def run(*words: str) -> str:
        return subprocess.run(words, cwd=folder, check=True, capture_output=True, text=True).stdout

    run("as", "--fatal-warnings", "-o", "image.o", "image.s")
    run("objcopy", "-O", "binary", "--only-section=.rodata", "image.o", "section.bin")
    found = {}
    for line in run("readelf", "-sW", "image.o").splitlines():
        words = line.split()
        if len(words) == 8 and words[7].startswith("trunnion"):
            found[words[7]] = (int(words[1], 16), f"{words[3]} {words[4]} {words[5]}")
    return found, (folder / "section.bin").read_bytes()


@settings(max_examples=40)
@given(symbols=st.lists(_FITTING, max_size=4), data=st.binary(max_size=200))
@example(symbols=[], data=b"")
@example(
    symbols=['a"b', "\\", "\\n", "x\ny", "\r\n", "#", "/*", "*/", "名前", "😀", "a b", "%s", ";", "é"],
    data=b"\0",
)
@example(symbols=['".globl hostile', "\n.globl hostile\n", '"; .globl hostile; "'], data=b'"\n')
@example(symbols=["n" * 10_000], data=b"\xff" * 65)
def test_what_is_embedded_is_read_back(folder, symbols, data) -> None:
    found, section = assemble(folder, symbols, data)
    assert set(found) == {
        "trunnion_image",
        "trunnion_image_end",
        "trunnion_image_bytes",
        "trunnion_kernel_names",
    }
    assert {kind for _, kind in found.values()} == {"OBJECT GLOBAL HIDDEN"}
    begin, end, listed = (
        found[name][0] for name in ("trunnion_image", "trunnion_image_end", "trunnion_kernel_names")
    )
    assert begin % ALIGNMENT == 0
    assert section[begin:end] == data
    (size,) = struct.unpack_from("<Q", section, found["trunnion_image_bytes"][0])
    assert size == len(data)
    assert section[listed:] == b"".join(symbol.encode() + b"\0" for symbol in symbols) + b"\0"


def test_the_sections_alignment_is_the_images(folder) -> None:
    assemble(folder, ["k"], b"data")
    listed = subprocess.run(
        ["readelf", "-SW", "image.o"], cwd=folder, check=True, capture_output=True, text=True
    )
    (section,) = (line.split() for line in listed.stdout.splitlines() if ".rodata" in line)
    assert section[-1] == str(ALIGNMENT)
    assert ".note.GNU-stack" in listed.stdout, "without it, the linker makes the stack executable"


@pytest.mark.parametrize("symbol", ["", "\0", "a\0b", "a\0", "\ud800", "a\udfff"])
def test_a_name_that_cannot_be_embedded_is_refused(symbol) -> None:
    with pytest.raises(ProgramError, match="exact name"):
        emit_image(["fine", symbol], "image.bin")


@pytest.mark.parametrize("file", ["", "a b", 'a"b', "a\nb", "../image.bin", "-o", "/image.bin"])
def test_the_file_has_a_plain_name(file) -> None:
    with pytest.raises(ProgramError, match="plain name"):
        emit_image([], file)


def test_equal_images_have_equal_texts() -> None:
    assert emit_image(["a", "b"], "image.bin") == emit_image(("a", "b"), "image.bin")
    assert emit_image(["a", "b"], "image.bin") != emit_image(("b", "a"), "image.bin")
