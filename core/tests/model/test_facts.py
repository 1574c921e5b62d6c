"""Facts of a device: what they are called and bounded by, where they may stand, what a plan makes of them."""

from __future__ import annotations

import copy
import pickle
from typing import TYPE_CHECKING, Any

import pytest

from trunnion import device as public_device
from trunnion import occupancy as public_occupancy
from trunnion.errors import ExprError, ProgramError
from trunnion.model.builder import ProgramBuilder
from trunnion.model.capability import Capability
from trunnion.model.code import DeviceCode
from trunnion.model.expr import Symbol, ceildiv, eq, ge, gt, minimum, symbols
from trunnion.model.expr_text import format_expr, parse_expr
from trunnion.model.facts import ATTRIBUTES, Device, DeviceFact, Fact, Occupancy, device, occupancy
from trunnion.model.params import Check, Signature
from trunnion.model.plan.facts import AttributeFact, OccupancyFact
from trunnion.model.plan.planning import plan_signature
from trunnion.model.plan.requirements import requirements
from trunnion.model.plan.steps import (
    CheckDestinations,
    ComputeArguments,
    ComputeWindow,
    LayOutMap,
    LimitWindow,
    Phase,
    PrepareDevice,
    ReadFacts,
    ReadStream,
    RefuseCapture,
    Require,
    RequirePresence,
    ShapeLaunch,
    SizeWorkspace,
)
from trunnion.model.program import KernelProgram

if TYPE_CHECKING:
    from trunnion.model.expr import Expr

N = Symbol("n")
CODE = DeviceCode("cuda", "//")


def builder() -> ProgramBuilder:
    return ProgramBuilder("p", CODE)


def persistent() -> KernelProgram:
    """Return a program whose grid is no larger than a device can hold at once."""
    p = builder()
    x, y = p.input("x", "float32", (N,)), p.output("y", "float32", (N,))
    resident = device.multiprocessor_count * occupancy("k", (16, 16), 65536)
    p.launch("k", (x, y), minimum(ceildiv(N, 256), resident), (16, 16), dynamic_smem_bytes=65536)
    return p.build()


def read(text: str) -> Expr:
    return parse_expr(text, Symbol)


def test_every_attribute_is_a_fact_by_the_drivers_name() -> None:
    assert {name for name in vars(Device) if isinstance(vars(Device)[name], Fact)} == set(ATTRIBUTES)
    for name, row in ATTRIBUTES.items():
        fact: Any = getattr(device, name)
        assert fact == DeviceFact(name)
        assert (fact.bounds.low, fact.bounds.high) == (row.least, 2**31 - 1)
        assert format_expr(fact) == f"device.{name}"
    assert len({row.number for row in ATTRIBUTES.values()}) == len(ATTRIBUTES)


def test_the_public_names_are_these() -> None:
    assert public_device is device
    assert public_occupancy is occupancy
    assert repr(device) == "trunnion.device"
    assert isinstance(copy.deepcopy(device), Device)


def test_a_name_that_is_no_facts_is_refused_with_the_nearest() -> None:
    with pytest.raises(AttributeError, match="no such fact: got str 'multiprocessors', expected one of"):
        device.multiprocessors  # noqa: B018 - which is refused
    with pytest.raises(ExprError, match="did you mean 'warp_size'"):
        DeviceFact("warpsize")


def test_occupancy_counts_the_threads_of_a_block() -> None:
    assert (
        occupancy("k", 128) == occupancy("k", (16, 8)) == occupancy("k", (16, 4, 2)) == Occupancy("k", 128, 0)
    )
    assert occupancy("k", 128, 1024) != occupancy("k", 128)
    assert occupancy("k", 128).bounds.low == 0


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("k", 0), "expected 1 to 1024"),
        (("k", 2048), "expected 1 to 1024"),
        (("k", (32, 33)), "got 1056, expected 1 to 1024"),
        (("k", (1, 1, 65)), "expected 1 to 64"),
        (("k", ()), "got 0 extents, expected 1 to 3"),
        (("k", "128"), "expected an integer, or up to 3"),
        (("k", 1.5), "expected an integer, or up to 3"),
        (("k", True), "got bool 'True'"),
        (("", 32), "a text of at least 1 character"),
        (("k", 32, -1), "expected 0 to 2147483647"),
        (("k", N), "got the expression n, expected a number: occupancy is read once for each device"),
        (("k", (32, N)), "got the expression n, expected a number"),
        (("k", 32, N * 4), "occupancy.dynamic_smem_bytes: got the expression"),
        (
            ("k", 32, device.max_shared_memory_per_block),
            "got the expression device.max_shared_memory_per_block",
        ),
    ],
)
def test_an_occupancy_that_cannot_be_asked_for(arguments: tuple[Any, ...], words: str) -> None:
    with pytest.raises(ProgramError) as caught:
        occupancy(*arguments)
    assert words in str(caught.value)


@pytest.mark.parametrize(
    "fact",
    [
        device.warp_size,
        occupancy("k", 256, 49152),
        occupancy('a "quoted" <name>\\', 1),
        occupancy("\u00fc\ud800", 1),
    ],
)
def test_text_gives_back_the_fact(fact: Fact) -> None:
    assert read(format_expr(fact)) == fact
    assert read(format_expr(fact * 2 + N)) == fact * 2 + N
    assert pickle.loads(pickle.dumps(fact)) == fact  # noqa: S301 - just written


def test_a_symbol_may_be_called_as_facts_are() -> None:
    for name in ("device", "occupancy", "device.warp_size", 'occupancy("k", 1, 0)'):
        symbol = Symbol(name)
        assert read(format_expr(symbol + 1)) == symbol + 1
        assert read(format_expr(symbol * device.warp_size)) == symbol * device.warp_size
    assert read("device + occupancy") == Symbol("device") + Symbol("occupancy")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("device.nothing", "expected one of multiprocessor_count"),
        ("device.", "unexpected character"),
        ("occupancy(k, 1, 0)", "got 'k', expected a kernel's name in quotes"),
        ("occupancy(5, 1, 0)", "got '5', expected a kernel's name in quotes"),
        ('occupancy("k", 1)', "got ')', expected ','"),
        ('occupancy("k", n, 0)', "got 'n', expected a number"),
        ('occupancy("k", 0, 0)', "expected 1 to 1024"),
        ('occupancy("k", 1, 0', "got the end"),
        ('occupancy("\\q", 1, 0)', "expected a JSON string"),
    ],
)
def test_a_text_that_is_no_fact(text: str, words: str) -> None:
    with pytest.raises(ProgramError) as caught:
        read(text)
    assert words in str(caught.value)


def test_a_program_is_read_as_it_was_written() -> None:
    program = persistent()
    assert KernelProgram.from_json(program.to_json()) == program


@pytest.mark.parametrize(
    ("method", "shape", "fields"),
    [
        ("input", (device.multiprocessor_count, 4), {}),
        ("input", (N, 4), {"strides": (device.multiprocessor_count + 4, 1)}),
        ("output", (device.multiprocessor_count * N, 4), {}),
    ],
)
def test_no_layout_of_a_tensor_is_the_devices(method: str, shape: Any, fields: dict[str, Any]) -> None:
    words = r"\[0\]: got device.multiprocessor_count, expected symbols and numbers"
    with pytest.raises(ProgramError, match=words):
        getattr(builder(), method)("x", "float32", shape, **fields)


def test_the_occupancy_of_a_kernel_that_is_not_launched_is_refused() -> None:
    p = builder()
    x = p.input("x", "float32", (N,))
    p.launch("gemm", (x,), occupancy("gem", 32), 32)
    with pytest.raises(
        ProgramError, match=r"launches.0..grid.0.: occupancy of kernel 'gem': .* did you mean 'gemm'"
    ):
        p.build()


@pytest.mark.parametrize("where", ["check", "workspace", "map"])
def test_it_is_refused_wherever_it_stands(where: str) -> None:
    p = builder()
    x = p.input("x", "float32", (N,))
    scratch = p.workspace("w", "int8", (occupancy("other", 32) * 64 if where != "check" else 64, 64))
    if where == "check":
        p.check(ge(occupancy("other", 32), 1), "room")
    p.launch(
        "k",
        (x, scratch.tiled((8, 64), shape=(64, 64), strides=(64, 1)) if where == "map" else scratch),
        1,
        32,
    )
    with pytest.raises(
        ProgramError, match="occupancy of kernel 'other': expected a kernel that the program launches"
    ):
        p.build()


def test_the_occupancy_of_one_of_two_kernels_of_a_name_is_refused() -> None:
    parts = CODE, DeviceCode("cuda", "// another")
    p = ProgramBuilder("p", parts)
    x = p.input("x", "float32", (N,))
    p.launch("k", (x,), occupancy("k", 32), 32)
    p.launch("k", (x,), 1, 32, code=parts[1])
    with pytest.raises(ProgramError, match="two parts of the code have a kernel of that name"):
        p.build()


def test_a_plan_has_each_fact_once_behind_the_symbols() -> None:
    plan = persistent().plan()
    count, blocks = plan.facts
    assert count == AttributeFact("device.multiprocessor_count", 16, 1)
    assert blocks == OccupancyFact('occupancy("k", 256, 65536)', 0, 256, 65536)
    assert plan.symbols == ("n", count.name, blocks.name)
    assert Capability.DEVICE_FACTS in plan.requires
    uses = requirements(plan.signature, plan.workspaces, plan.launches, plan.encodes, plan.facts)
    assert uses[Capability.DEVICE_FACTS] == "device.multiprocessor_count"


def test_what_is_over_facts_comes_once_they_are_read_in_its_usual_order() -> None:
    p = builder()
    m, s = symbols("m s")
    x, left = p.input("x", "float32", (N, 64)), p.input("left", "float32", (m, 64), nullable=True)
    p.scalar("s", "int32", symbol=s)
    p.check(gt(s, 1), "of values")
    p.check(ge(device.compute_capability_major, 9), "of the device")
    scratch = p.workspace("w", "int8", (device.multiprocessor_count,))
    held = x.window(hit_ratio=0.5, nbytes=minimum(device.l2_cache_size, N * 256), policy="stream")
    offset = device.warp_size * 0
    maps = x.tiled((8, 64), element_offset=offset), left.tiled((8, 64))
    p.launch("k", (x, *maps, scratch, s, device.warp_size), N, 32, when=eq(device.warp_size, 32), window=held)
    plan = p.build().plan()
    found = [type(step.action) for step in plan.steps if step.phase is Phase.ADMIT]
    assert found == [
        PrepareDevice, ReadFacts, Require, ShapeLaunch, SizeWorkspace, ComputeArguments, ComputeWindow, LayOutMap,
        LayOutMap, RequirePresence, RefuseCapture, LimitWindow,
    ]  # fmt: skip
    before = [type(step.action) for step in plan.steps if step.phase is Phase.VALUES]
    assert before[-2:] == [CheckDestinations, ReadStream]
    assert before.count(Require) == 1


def test_what_is_not_over_facts_stays_where_it_was() -> None:
    p = builder()
    x = p.input("x", "float32", (N,))
    p.launch("first", (x,), N, 32)
    p.launch("second", (x, N.cast("int32")), device.multiprocessor_count, 32)
    plan = p.build().plan()
    phases = {
        step.action.launch.index: step.phase for step in plan.steps if isinstance(step.action, ShapeLaunch)
    }
    assert phases == {0: Phase.TENSORS, 1: Phase.ADMIT}
    (computed,) = [step.phase for step in plan.steps if isinstance(step.action, ComputeArguments)]
    assert computed is Phase.ADMIT  # it is done for a launch of which the device decides whether it happens


def test_a_program_without_facts_reads_none() -> None:
    p = builder()
    p.launch("k", (p.input("x", "float32", (N,)),), N, 32)
    plan = p.build().plan()
    assert plan.facts == ()
    assert not any(isinstance(step.action, ReadFacts) for step in plan.steps)
    assert Capability.DEVICE_FACTS not in plan.requires


def test_a_function_that_launches_by_itself_has_no_facts() -> None:
    signature = Signature((), (), (Check(ge(device.warp_size, 32), "a warp"),))
    with pytest.raises(ProgramError, match=r"checks\[0\].condition: got device.warp_size"):
        plan_signature("f", signature)
