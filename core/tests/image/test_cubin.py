"""The reader of kernels answers with the truth or with one error, whatever the bytes are."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trunnion.contract.compiler import ImageParameter
from trunnion.errors import CorruptArtifactError
from trunnion.image import (
    CubinInfo,
    KernelInfo,
    SyntheticKernel,
    SyntheticVariable,
    pack_parameters,
    read_cubin,
    synthetic_cubin,
)
from trunnion.image.cubin import NOTE, TOOLKIT, TOOLKIT_NOTE, symbol_index
from trunnion.image.elf import EHDR, SHDR, SYM, read_elf
from trunnion.image.nvinfo import Key

IMAGE = synthetic_cubin(
    [
        SyntheticKernel(name="none"),
        SyntheticKernel(
            name="full",
            parameters=pack_parameters([(128, 64), (4, 4), (8, 8)]),
            max_threads=(256, 1, 1),
            cluster=(2, 1, 1),
            max_cluster_blocks=4,
            registers=168,
            local_bytes=400,
        ),
        SyntheticKernel(
            name="wide", parameters=pack_parameters([(4, 4), (5000, 1)]), required_threads=(64, 2, 1)
        ),
    ]
)


def section(name: str) -> tuple[int, int]:
    """Return where a section's contents and its header start."""
    elf = read_elf(IMAGE)
    (found,) = (section for section in elf.sections if section.name == name)
    return found.offset, EHDR.unpack_from(IMAGE)[6] + found.index * SHDR.size


def record(key: Key, contents: bytes) -> int:
    """Return where the payload of a record of the kernel ``full`` starts."""
    start = section(".nv.info.full")[0]
    return IMAGE.index(bytes((4, key)) + struct.pack("<H", len(contents)) + contents, start) + 4


def patched(position: int, layout: str, value: int) -> bytes:
    image = bytearray(IMAGE)
    struct.pack_into(layout, image, position, value)
    return bytes(image)


LAST_PARAMETER = record(Key.KPARAM_INFO, struct.pack("<IHHI", 0, 2, 0xB8, 0x21F000))
MAX_THREADS = record(Key.MAX_THREADS, struct.pack("<III", 256, 1, 1))
NONE_NAME = struct.unpack_from("<I", IMAGE, section(".nv.info.none")[1])[0]
STACK_SIZE = IMAGE.index(struct.pack("<BBHII", 4, Key.MIN_STACK_SIZE, 8, 2, 400), section(".nv.info")[0])
MAX_CLUSTER = record(Key.MAX_CLUSTER_RANK, struct.pack("<I", 4))


def read_or_refuse(data: bytes) -> CubinInfo | None:
    """Any other exception than the one that is allowed fails the test."""
    try:
        return read_cubin(data)
    except CorruptArtifactError:
        return None


@settings(max_examples=300)
@given(cut=st.integers(0, len(IMAGE) - 1))
def test_no_truncated_image_is_read(cut: int) -> None:
    # The section headers are the file's last bytes, so that every cut takes some of them.
    with pytest.raises(CorruptArtifactError):
        read_cubin(IMAGE[:cut])


@settings(max_examples=500)
@given(
    changes=st.lists(st.tuples(st.integers(0, len(IMAGE) - 1), st.integers(0, 255)), min_size=1, max_size=8)
)
def test_changed_bytes_are_read_or_refused(changes: list[tuple[int, int]]) -> None:
    image = bytearray(IMAGE)
    for position, value in changes:
        image[position] = value
    read_or_refuse(bytes(image))


@settings(max_examples=500)
@given(
    position=st.integers(0, len(IMAGE) // 4 - 2),
    value=st.sampled_from((0, 1, 2**31 - 1, 2**31, 2**32 - 1, 2**63, 2**64 - 1, len(IMAGE), len(IMAGE) - 1)),
)
def test_absurd_words_are_read_or_refused(position: int, value: int) -> None:
    read_or_refuse(patched(position * 4, "<Q", value))


@given(data=st.binary(max_size=300))
def test_arbitrary_bytes_are_refused(data: bytes) -> None:
    assert read_or_refuse(data) is None
    assert read_or_refuse(IMAGE[:64] + data) is None


@given(start=st.integers(0, len(IMAGE)), stop=st.integers(0, len(IMAGE)), data=st.binary(max_size=200))
def test_spliced_bytes_are_read_or_refused(start: int, stop: int, data: bytes) -> None:
    read_or_refuse(IMAGE[:start] + data + IMAGE[stop:])


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (patched(section(".nv.info.full")[1], "<I", 0), "described by no section"),
        (patched(section(".nv.info.full")[1] + 44, "<I", 0), "described by no section"),
        (patched(section(".nv.info.full")[1] + 44, "<I", read_elf(IMAGE).sections[-1].index), "two sections"),
        (patched(section(".nv.info.full")[1], "<I", NONE_NAME), "described by '.nv.info.none'"),
        (patched(section(".text.full")[1], "<I", 0), "its code is in section"),
        (patched(section(".symtab")[0] + 2 * SYM.size + 6, "<H", 0xFF00), "in section 65280 ('no section')"),
        (IMAGE.replace(b"\0full\0", b"\0none\0"), "two kernels have the same name"),
        (IMAGE.replace(b"\0full\0", b"\0fill\0"), "its code is in section"),
        (patched(section(".nv.info")[0] + 4, "<I", 4), "a register count of symbol 4, of 4"),
        (
            patched(LAST_PARAMETER + 4, "<H", 1),
            "parameter 1",
        ),
        (
            patched(LAST_PARAMETER + 6, "<H", 0),
            "at 0, where",
        ),
        (
            patched(LAST_PARAMETER + 8, "<I", 0),
            "0 bytes at",
        ),
        (
            patched(LAST_PARAMETER + 8, "<I", 0x41F000),
            "parameters end at 200, but their total is 192",
        ),
        (patched(MAX_THREADS, "<I", 0), "counts (0, 1, 1)"),
        (patched(MAX_THREADS - 3, "<B", Key.KPARAM_INFO_WIDE), "parameter 1 where parameter 2 should be"),
        # A record that swallows those behind it.
        (
            patched(MAX_CLUSTER - 4, "<I", 20 << 16 | Key.PARAM_CBANK << 8 | 4),
            "a parameter bank record of 20 bytes",
        ),
        (patched(section(".nv.info")[0] + 2, "<H", 20), "a register count of 20 bytes"),
        (patched(STACK_SIZE + 4, "<I", 9), "a stack size of symbol 9, of 4"),
        (
            patched(MAX_THREADS - 3, "<B", Key.CTA_PER_CLUSTER),
            "two records",
        ),
        (
            patched(MAX_CLUSTER - 3, "<B", Key.PARAM_CBANK),
            "two records",
        ),
    ],
)
def test_contradictions_are_refused_by_what_and_where(data: bytes, problem: str) -> None:
    with pytest.raises(CorruptArtifactError) as caught:
        read_cubin(data)
    assert problem in str(caught.value)


def test_a_small_file_does_not_fill_memory_with_its_variables() -> None:
    many = [SyntheticVariable(name=f"v{index}", nbytes=1, init=b"\1") for index in range(1000)]
    whole = SyntheticVariable(name="whole", nbytes=10_000, init=bytes(range(250)) * 40)
    image = bytearray(synthetic_cubin([], variables=[whole, *many]))
    elf = read_elf(bytes(image))
    for symbol in elf.symbols()[2:]:
        start = elf.symbol_table().offset + symbol.index * SYM.size
        struct.pack_into("<QQ", image, start + 8, 0, 10_000)  # where the first lies
    with pytest.raises(CorruptArtifactError, match="variables of 10010000 bytes in a file of"):
        read_cubin(bytes(image))


def test_records_are_read_once_however_many_headers_name_them() -> None:
    image = bytearray(IMAGE)
    for name in (".nv.info.full", ".nv.info.wide"):
        struct.pack_into("<QQ", image, section(name)[1] + 24, 0, len(IMAGE))
    with pytest.raises(CorruptArtifactError, match=rf"bytes of .nv.info sections, of {len(IMAGE)}"):
        read_cubin(bytes(image))


@pytest.mark.parametrize(
    ("abi", "flags", "options", "arch"),
    [
        (8, 0x6005A04, "-arch sm_90a ", "sm_90a"),
        (8, 0x6005A04, "-arch sm_80 -", "sm_90"),
        (8, 0x6005A04, "-O3 sm_90a --", "sm_90"),
        (8, 0x600640A, "             ", "sm_100a"),
        (7, 0x5A055A, "             ", "sm_90"),
        (7, 0x5A0D5A, "             ", "sm_90a"),
        (7, 0x500550, "             ", "sm_80"),
    ],
)
def test_the_architecture_of_old_and_new_files(abi: int, flags: int, options: str, arch: str) -> None:
    # The flags are those that CUDA 12.8 and 13.0 wrote for these architectures.
    image = bytearray(IMAGE.replace(b"-arch sm_90a ", options.encode()))
    image[8] = abi
    struct.pack_into("<I", image, 48, flags)
    assert read_cubin(bytes(image)).arch == arch


@pytest.mark.parametrize("options", ["-arch sm_90b ", "-arch sm_9\u0660 "])
def test_an_option_that_names_no_architecture_is_passed_over(options: str) -> None:
    image = IMAGE.replace(b"-arch sm_90a ", options.encode())
    assert read_cubin(image).arch == "sm_90"


def test_an_option_of_many_digits_is_passed_over() -> None:
    (note, header), at = section(TOOLKIT_NOTE), len(IMAGE)
    start = IMAGE[note : note + NOTE.size] + TOOLKIT.pack(*[0] * 6)
    image = bytearray(IMAGE + start + b"-arch sm_" + b"9" * 6000 + b"\0")
    struct.pack_into("<QQ", image, header + 24, at, len(image) - at)
    assert read_cubin(bytes(image)).arch == "sm_90"


def test_flags_of_no_architecture_are_refused() -> None:
    image = bytearray(IMAGE)
    struct.pack_into("<I", image, 48, 0x6000904)
    with pytest.raises(CorruptArtifactError, match="architecture 9, where 10 is the least"):
        read_cubin(bytes(image))


def test_a_declared_kernel_and_a_device_function_are_no_kernels() -> None:
    symbol = section(".symtab")[0] + 2 * SYM.size
    for data in (patched(symbol + 6, "<H", 0), patched(symbol + 5, "<B", 0), patched(symbol + 4, "<B", 0x11)):
        assert [kernel.name for kernel in read_cubin(data).kernels] == ["none", "wide"]


def test_local_memory_is_that_of_the_record_and_nothing_is_made_up() -> None:
    assert [kernel.local_bytes for kernel in read_cubin(IMAGE).kernels] == [None, 400, None]
    assert read_cubin(patched(STACK_SIZE + 8, "<I", 0)).kernels[1].local_bytes == 0
    assert read_cubin(IMAGE).constant_bytes == 0


def test_a_kernels_symbol_is_found_by_its_exact_name() -> None:
    assert [symbol_index(IMAGE, name) for name in ("none", "full", "wide", "ful", "")] == [
        1,
        2,
        3,
        None,
        None,
    ]
    with pytest.raises(CorruptArtifactError):
        symbol_index(IMAGE[:100], "none")


def test_a_relocatable_file_says_so() -> None:
    assert read_cubin(patched(16, "<H", 1)).relocatable


def test_parameters_must_be_in_order_and_apart() -> None:
    with pytest.raises(CorruptArtifactError, match="kernel 'k': parameter 1 where parameter 0 should be"):
        KernelInfo(name="k", parameters=(ImageParameter(1, 0, 4),))
    assert KernelInfo(name="k").parameter_bytes == 0
    assert KernelInfo(name="k", parameters=(ImageParameter(0, 8, 4),)).parameter_bytes == 12
