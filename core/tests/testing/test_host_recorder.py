"""The recorder's text is C++ for any program, and its records are read as they were written."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from trunnion import DeviceCode, ProgramBuilder
from trunnion.testing.host_recorder import read_calls, read_launches, recording_program
from trunnion.testing.laws import LawViolation

if TYPE_CHECKING:
    from trunnion.model.program import KernelProgram

FILE = Path("folder", 'a "file"')


def program() -> KernelProgram:
    p = ProgramBuilder("p", DeviceCode("cuda", "text"))
    x, s = p.input("x", "float32", (4,)), p.struct("s", 24, alignment=8)
    k = p.scalar("k", "int16")
    for kernel, args in (("first; #define", (x, s)), ("second", (k,)), ("third", ()), ("second", (k,))):
        p.launch(kernel, args=args, grid=(2, 1, 2), block=3, dynamic_smem_bytes=16)
    return p.build()


def record(
    kernel: int, index: tuple[int, ...], parameters: bytes = b"", *, good: int = 1, scratch: int = 16
) -> bytes:
    header = struct.pack("<II3I3I3IIQ", kernel, len(parameters), *index, 2, 1, 2, 3, 1, 1, good, scratch)
    return header + parameters


BLOCKS = ((0, 0, 0), (1, 0, 0), (0, 0, 1), (1, 0, 1))


def test_the_text_has_a_kernel_of_each_signature_and_no_name_of_the_programs() -> None:
    made = recording_program(program(), FILE)
    (code,) = made.code
    assert code.language == "c++"
    assert dict(code.defines) == {"RECORDING": '"folder/a \\"file\\""'}
    assert "#define" not in code.source.replace("#include", "")
    names = [launch.kernel for launch in made.launches]
    assert names == ["recorded_0::kernel<0>", "recorded_1", "recorded_2::kernel<2>", "recorded_1"]
    assert "Bytes<8, 8> p0, Bytes<24, 8> p1, const trunnion_block_t* block" in code.source
    assert "recorded_1(Bytes<2, 2> p0, const trunnion_block_t* block)" in code.source
    assert made.signature == program().signature
    assert [one.args for one in made.launches] == [one.args for one in program().launches]


def test_records_are_launches() -> None:
    data = b"".join(record(0, index, bytes(32)) for index in BLOCKS)
    data += b"".join(record(1, index, b"\5\0") for index in BLOCKS)
    launches = read_launches(program(), data)
    assert [launch.kernel for launch in launches] == ["recorded_0::kernel<0>", "recorded_1"]
    assert launches[0].parameters == (bytes(8), bytes(24))
    assert launches[1].parameters == (b"\5\0",)
    assert (launches[0].grid, launches[0].block, launches[0].dynamic_smem_bytes) == ((2, 1, 2), (3, 1, 1), 16)
    assert [call.index for call in read_calls(program(), data)] == [*BLOCKS, *BLOCKS]
    assert read_launches(program(), b"") == ()


@pytest.mark.parametrize(
    "records",
    [
        [record(2, index) for index in BLOCKS[:3]],
        [record(2, index) for index in (*BLOCKS[:3], BLOCKS[0])],
        [record(2, index) for index in (*BLOCKS[:3], (2, 0, 0))],
        [*(record(2, index) for index in BLOCKS[:3]), record(2, BLOCKS[3], good=0)],
        [*(record(2, index) for index in BLOCKS[:3]), record(2, BLOCKS[3], scratch=17)],
        [*(record(1, index, b"\5\0") for index in BLOCKS[:3]), record(1, BLOCKS[3], b"\6\0")],
        [*(record(1, index, b"\5\0") for index in BLOCKS[:3]), record(2, BLOCKS[3])],
    ],
)
@pytest.mark.parametrize("ordered", [True, False])
def test_blocks_that_do_not_belong_together_are_found(records: list[bytes], *, ordered: bool) -> None:
    with pytest.raises(LawViolation):
        read_launches(program(), b"".join(records), ordered=ordered)


def test_order_counts_where_one_thread_runs() -> None:
    data = b"".join(record(2, index) for index in BLOCKS[::-1])
    assert len(read_launches(program(), data, ordered=False)) == 1
    with pytest.raises(LawViolation, match="was called for the blocks"):
        read_launches(program(), data)


def test_a_record_of_another_length_is_no_record() -> None:
    with pytest.raises(ValueError, match="has 3 bytes"):
        read_calls(program(), record(1, BLOCKS[0], b"\5\0\0"))
