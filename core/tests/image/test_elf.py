"""The container's reader believes no offset and no count."""

from __future__ import annotations

import struct
import time

import pytest

from trunnion.errors import CorruptArtifactError
from trunnion.image import SyntheticKernel, synthetic_cubin
from trunnion.image.elf import EHDR, PHDR, SHDR, read_elf, unpack_at

IMAGE = synthetic_cubin([SyntheticKernel(name="kernel")])


def with_header(position: int, layout: str, value: int) -> bytes:
    image = bytearray(IMAGE)
    struct.pack_into(layout, image, position, value)
    return bytes(image)


def with_section(index: int, position: int, layout: str, value: int) -> bytes:
    sections_at = EHDR.unpack_from(IMAGE)[6]
    return with_header(sections_at + index * SHDR.size + position, layout, value)


def with_segments(*segments: tuple[int, int, int], entry_size: int = PHDR.size) -> bytes:
    """Put program headers behind the image, each a kind, an offset and the bytes in the file."""
    image = bytearray(IMAGE)
    struct.pack_into("<Q", image, 32, len(IMAGE))
    struct.pack_into("<HH", image, 54, entry_size, len(segments))
    for kind, offset, size in segments:
        image += PHDR.pack(kind, 5, offset, 0, 0, size, size, 8)
    return bytes(image)


LOAD, NULL = 1, 0
SEGMENTED = with_segments((LOAD, 64, 100), (NULL, 2**64 - 1, 2**64 - 1), (LOAD, 0, 0))


def test_a_file_with_segments_is_read_and_cut_anywhere_refused() -> None:
    assert len(read_elf(SEGMENTED).sections) == len(read_elf(IMAGE).sections)
    for end in range(len(IMAGE), len(SEGMENTED)):
        with pytest.raises(CorruptArtifactError, match="3 program headers at"):
            read_elf(SEGMENTED[:end])


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (with_segments((LOAD, 64, 2**63)), "segment 0 has 9223372036854775808 bytes at 64, of "),
        (
            with_segments((LOAD, 0, 0), (LOAD, 2**64 - 1, 1)),
            "segment 1 has 1 bytes at 18446744073709551615, of ",
        ),
        (
            with_segments((LOAD, 0, 0), entry_size=32),
            "program headers of 32 bytes, where 56 bytes are allowed",
        ),
        (with_header(54, "<I", 0xFFFF_0038), "65535 program headers at 0 do not fit"),
    ],
)
def test_segments_that_are_not_there_are_refused(data: bytes, problem: str) -> None:
    with pytest.raises(CorruptArtifactError) as caught:
        read_elf(data)
    assert problem in caught.value.problem


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (b"", "empty"),
        (b"\x7fELF", "ELF class"),
        (IMAGE[:63], "the ELF header needs 64 bytes at 0, of 63"),
        (b"\x7fELF\x01\x01" + bytes(100), "ELF class and byte order are 01 01"),
        (b"\x7fELF\x02\x02" + bytes(100), "ELF class and byte order are 02 02"),
        (b"\x50\xed\x55\xba" + bytes(100), "a fatbin, not a cubin"),
        (b"\xb1\x43\x62\x46" + bytes(100), "a fatbin wrapper"),
        (b"\xed\x43\x4e\x7f" + bytes(100), "LTO-IR or OptiX-IR"),
        (b"BC\xc0\xde" + bytes(100), "LLVM bitcode"),
        (b"!<arch>\n" + bytes(100), "an archive"),
        (b"//\n// Generated\n.version 9.0\n.target sm_90a\n.address_size 64\n", "PTX text"),
        (b"__global__ void k() {}", "starts with 5f 5f 67"),
        (with_header(18, "<H", 62), "machine 62, where CUDA is 190"),
        (with_header(16, "<H", 3), "ELF type 3"),
        (with_header(58, "<H", 40), "section headers of 40 bytes"),
        (with_header(60, "<H", 0), "0 section headers"),
        (with_header(60, "<H", 0xFFFF), "65535 section headers"),
        (with_header(40, "<Q", 2**64 - 1), "do not fit"),
        (with_header(62, "<H", 3), "section names are in section 3"),
        (with_header(62, "<H", 0xFFFF), "section names are in section 65535"),
        (with_section(5, 24, "<Q", 2**64 - 1), "section 5 has"),
        (with_section(5, 32, "<Q", 2**63), "section 5 has"),
        (with_section(5, 40, "<I", 0xFFFFFFFF), "section 5 links to section 4294967295"),
        (with_section(5, 0, "<I", 0xFFFFFFFF), "the name of section 5 at 4294967295"),
    ],
)
def test_malformed_headers_are_refused_by_what_and_where(data: bytes, problem: str) -> None:
    with pytest.raises(CorruptArtifactError) as caught:
        read_elf(data)
    assert problem in caught.value.problem


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (with_section(3, 4, "<I", 1), "0 symbol tables"),
        (with_section(2, 4, "<I", 2), "2 symbol tables"),
        (with_section(3, 32, "<Q", 47), "47 bytes, no multiple of 24"),
        (with_section(3, 40, "<I", 5), "section 5, not a string table"),
        (with_section(2, 32, "<Q", 4), "the name of symbol 1 at 1 does not end within 4 bytes"),
        (IMAGE.replace(b"\0kernel\0", b"\0kern\xffl\0"), "is not UTF-8"),
    ],
)
def test_malformed_symbols_are_refused_by_what_and_where(data: bytes, problem: str) -> None:
    elf = read_elf(data)
    with pytest.raises(CorruptArtifactError) as caught:
        elf.symbol_names(elf.symbols())
    assert problem in caught.value.problem


def test_overlapping_names_do_not_cost_quadratic_time() -> None:
    count, length = 20_000, 1 << 20
    strings_at = EHDR.size
    sections_at = strings_at + length
    header = EHDR.pack(IMAGE[:16], 2, 190, 1, 0, 0, sections_at, 0x6005A04, 64, 0, 0, SHDR.size, count, 1)
    strings = SHDR.pack(0, 3, 0, 0, strings_at, length, 0, 0, 1, 0)
    others = b"".join(SHDR.pack(index, 0, 0, 0, 0, 0, 0, 0, 0, 0) for index in range(count - 1))
    table = b"x" * (length - 1) + b"\0"
    started = time.thread_time()
    with pytest.raises(CorruptArtifactError, match="overlap"):
        read_elf(header + table + others[: SHDR.size] + strings + others[SHDR.size :])
    assert time.thread_time() - started < 5


def test_an_offset_below_zero_is_outside() -> None:
    with pytest.raises(CorruptArtifactError, match="a word needs 4 bytes at -1, of 8"):
        unpack_at(struct.Struct("<I"), bytes(8), -1, "a word")
