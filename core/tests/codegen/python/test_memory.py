"""What a call allocates and fills: when, where, under which stream."""

from __future__ import annotations

import struct
from typing import Any

import pytest

from trunnion.errors import ArgumentValueError
from trunnion.launcher.facade import FillStep
from trunnion.launcher.fills import fill_steps
from trunnion.model.builder import ProgramBuilder
from trunnion.model.expr import symbols
from trunnion.model.program import DeviceCode
from trunnion.model.workspace import Workspace

CODE = DeviceCode("cuda", "//")
BYTES = bytes(range(1, 17))


def written(steps: tuple[FillStep, ...], count: int) -> bytes:
    """What the writes leave in memory."""
    memory = bytearray(max(s.offset + s.pitch * (count - 1) + s.width for s in steps))
    for step in steps:
        for index in range(count):
            at = step.offset + step.pitch * index
            memory[at : at + step.width] = step.value.to_bytes(step.width, "little")
    return bytes(memory)


@pytest.mark.parametrize(
    "pattern",
    [BYTES[:1], BYTES[:2], BYTES[:4], BYTES[:8], BYTES, bytes(8), bytes(16), BYTES[:4] * 2, BYTES[:8] * 2],
)
def test_the_writes_of_a_fill_leave_the_element_repeated(pattern: bytes) -> None:
    steps, repeat = fill_steps(pattern)
    assert written(steps, 3 * repeat) == pattern * 3
    dense = len({pattern[i : i + 4] for i in range(0, len(pattern), 4)}) == 1
    assert len(steps) == (1 if dense else len(pattern) // 4)


def filled(kind: str = "float32", fill: Any = 1.5) -> Any:
    p = ProgramBuilder("p", CODE)
    (n,) = symbols("n")
    x = p.input("x", "float32", (n,))
    y = p.output("y", kind, (n, 3), fill=fill)
    p.launch("k", (x, y), n, 32)
    return p.build()


def fills(r: Any) -> list[tuple[Any, ...]]:
    return [entry[1:] for entry in r.facade.log if entry[0] == "fill"]


def test_an_output_is_filled_on_the_launchs_stream_before_the_launch(rig: Any, tensor: Any) -> None:
    r = rig(filled())
    x = tensor("float32", 5, ordinal=1)
    y = r.program.entry(x)
    (bits,) = struct.unpack("<I", struct.pack("<f", 1.5))
    assert fills(r) == [(FillStep(bits, 4, 0, 4), y.address, 15, 101)]
    order = [entry[0] for entry in r.facade.log if entry[0] in {"enter", "fill", "launch", "leave"}]
    assert order[-4:] == ["enter", "fill", "launch", "leave"]
    given = tensor("float32", 5, 3, ordinal=1)
    r.program.call((x,), out=(given,), stream=0)
    assert fills(r)[1][1:] == (given.address, 15, 0)


def test_an_element_of_two_words_is_filled_in_columns(rig: Any, tensor: Any) -> None:
    r = rig(filled("complex64", 1 - 2j))
    y = r.program.entry(tensor("float32", 2))
    low, high = struct.unpack("<II", struct.pack("<ff", 1, -2))
    assert fills(r) == [
        (FillStep(low, 4, 0, 8), y.address, 6, 100),
        (FillStep(high, 4, 4, 8), y.address, 6, 100),
    ]


def test_an_empty_output_is_not_filled_and_a_skipped_launchs_is(rig: Any, tensor: Any) -> None:
    r = rig(filled())
    r.program.entry(tensor("float32", 0, address=0))
    assert fills(r) == []
    p = ProgramBuilder("p", CODE)
    x = p.input("x", "float32", (2,))
    y = p.output("y", "int8", (2,), fill=-1)
    p.launch("k", (x, y), 1, 32, when=0)
    r = rig(p.build())
    y = r.program.entry(tensor("float32", 2))
    assert fills(r) == [(FillStep(255, 1, 0, 1), y.address, 2, 100)]
    assert r.facade.launched == []


def split(alignment: int = 256, *, zeroed: bool = False) -> Any:
    p = ProgramBuilder("p", CODE)
    n, s = symbols("n s")
    x = p.input("x", "float32", (n,))
    p.scalar("s", "int32", symbol=s)
    partial = Workspace("partial", "float32", (s - 1, n), alignment=alignment, zeroed=zeroed)
    p.launch("k", (x, partial), s - 1, 32)
    p.launch("reduce", (partial, x), s - 1, 32)
    return p.build()


def test_a_workspace_is_allocated_under_the_stream_if_it_is_read(rig: Any, tensor: Any) -> None:
    r = rig(split())
    x = tensor("float32", 6)
    r.program.entry(x, 1)
    assert r.runtime.allocated == []
    r.program.call((x, 4), stream=9)
    ((held, stream),) = r.runtime.allocated
    assert (held.shape, held.dtype.name, stream) == ((3 * 6 * 4,), "uint8", 9)
    first, second = r.facade.launched
    assert first.parameters[1] == second.parameters[0] == struct.pack("<Q", held.address)


def test_the_extents_of_a_workspace_count_only_if_it_is_read(rig: Any) -> None:
    p = ProgramBuilder("p", DeviceCode("cuda", ""))
    s, n = symbols("s n")
    p.scalar("s", "int32", symbol=s)
    p.scalar("n", "int32", symbol=n)
    p.launch("k", (Workspace("partial", "float32", (s - 1,)),), n, 32)
    r = rig(p.build())
    r.program.call((0, 0), device=0)
    assert r.runtime.allocated == []
    with pytest.raises(ArgumentValueError) as caught:
        r.program.call((0, 1), device=0)
    assert caught.value.argument == "partial"


def test_a_workspace_without_elements_has_a_null_pointer(rig: Any, tensor: Any) -> None:
    r = rig(split(zeroed=True))
    r.program.entry(tensor("float32", 0, address=0), 4)
    assert r.runtime.allocated == []
    assert fills(r) == []
    assert r.facade.launched[0].parameters[1] == bytes(8)


def test_a_zeroed_workspace_is_zeroed_for_every_call(rig: Any, tensor: Any) -> None:
    r = rig(split(zeroed=True))
    x = tensor("float32", 6)
    for _ in range(2):
        r.program.entry(x, 4)
    addresses = [held.address for held, _ in r.runtime.allocated]
    assert fills(r) == [(FillStep(0, 1, 0, 1), at, 3 * 6 * 4, 100) for at in addresses]
    r.program.entry(x, 1)
    assert len(fills(r)) == 2


def test_a_workspace_is_aligned_beyond_the_allocator(rig: Any, tensor: Any) -> None:
    r = rig(split(alignment=1 << 18))
    for _ in range(3):
        r.program.entry(tensor("float32", 6), 4)
        held, _ = r.runtime.allocated[-1]
        (address,) = struct.unpack("<Q", r.facade.launched[-1].parameters[0])
        assert address % (1 << 18) == 0
        assert held.address <= address <= address + 3 * 6 * 4 <= held.address + held.shape[0]


@pytest.mark.parametrize("alignment", [256, 1 << 18])
def test_a_workspace_beyond_all_memory_is_named(rig: Any, tensor: Any, alignment: int) -> None:
    p = ProgramBuilder("p", CODE)
    (n,) = symbols("n")
    x = p.input("x", "float32", (n,))
    p.launch("k", (x, Workspace("partial", "float32", (n, 1 << 59), alignment=alignment)), 1, 32)
    r = rig(p.build())
    with pytest.raises(ArgumentValueError, match=r"2\*\*63") as caught:
        r.program.entry(tensor("float32", 4))
    assert caught.value.argument == "partial"
    assert r.runtime.allocated == []


def test_a_map_may_lie_over_a_workspace(rig: Any, tensor: Any) -> None:
    p = ProgramBuilder("p", CODE)
    (n,) = symbols("n")
    x = p.input("x", "float32", (n,))
    scratch = Workspace("scratch", "float16", (n, 64))
    p.launch("k", (x, scratch.tiled((8, 64), swizzle="128B")), n, 32)
    r = rig(p.build())
    r.program.entry(tensor("float32", 9))
    (fields,) = (entry[1] for entry in r.facade.log if entry[0] == "encode")
    assert (fields.address, fields.dims) == (r.runtime.allocated[0][0].address, (64, 9))


@pytest.mark.parametrize(("second", "fine"), [(0, False), (16, False), (20, True)])
def test_destinations_must_not_overlap(rig: Any, tensor: Any, second: int, *, fine: bool) -> None:
    p = ProgramBuilder("p", CODE)
    x = p.input("x", "float32", (5,))
    outs = [p.output(name, "float32", (5,)) for name in ("y", "z")]
    p.launch("k", (x, *outs), 1, 32)
    r = rig(p.build())
    y, z = tensor("float32", 5, address=1 << 20), tensor("float32", 5, address=(1 << 20) + second)
    for out in ((y, z), (z, y)):
        if fine:
            assert r.program.call((tensor("float32", 5),), out=out) == out
        else:
            with pytest.raises(ArgumentValueError, match="memory of its own"):
                r.program.call((tensor("float32", 5),), out=out)
    assert len(r.facade.launched) == (2 if fine else 0)
