"""Laws of limits: what is just allowed is done, and what is just not is refused, whatever else is right."""

from __future__ import annotations

import functools
from contextlib import ExitStack, closing
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from hypothesis import strategies as st

from trunnion.contract.spec import Capability, Target
from trunnion.errors import ArgumentError, DeviceRequirementError, TensorMapError
from trunnion.image import SyntheticKernel, synthetic_cubin
from trunnion.model.dtypes import dtype
from trunnion.model.expr import Const, Symbol
from trunnion.model.launch import KernelLaunch
from trunnion.model.params import ScalarParam, Signature, TensorParam
from trunnion.model.program import KernelProgram
from trunnion.sim.abi import DeviceAttribute, FunctionAttribute
from trunnion.sim.trace import AttributeSet
from trunnion.testing.comparison import check_call, check_expected, check_given, check_refused
from trunnion.testing.expected import Refused
from trunnion.testing.laws import law
from trunnion.testing.machine import ARCHITECTURES, UNLIKE, synthetic_image, untouched
from trunnion.testing.observed import observe
from trunnion.testing.reference import expect
from trunnion.testing.strategies import CallSpec, Scenario, TensorSpec
from trunnion.testing.strategies.calls import AHEAD
from trunnion.testing.strategies.described_maps import described_maps
from trunnion.testing.strategies.limits import (
    Series,
    aligned_memory,
    blocks,
    grids,
    is_huge,
    map_layouts,
    memory_sizes,
    shared_memory,
    view_layouts,
    window_ranges,
)
from trunnion.testing.strategies.programs import CODE, taking
from trunnion.testing.suite.test_launches import delivers_each
from trunnion.testing.ways import LOADS, Arguments

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy

    from trunnion.contract.compiler import DeviceImage
    from trunnion.model.launch import Argument
    from trunnion.testing.harness import Harness
    from trunnion.testing.strategies.described_maps import DescribedMap

__all__ = ["check_beside_static_memory", "check_greatest_constants", "most_shared_memory"]

_DYNAMIC = frozenset({Capability.DYNAMIC_SHAPES})
_ONES = (Const(1),) * 3
_MOST_GRID = (2**31 - 1, 65535, 65535)


@law("X1", given=lambda _: grids(), requires=_DYNAMIC)
def greatest_grids(harness: Harness, series: Series) -> None:
    """A grid has 0 to 2**31 - 1, 65535 and 65535 blocks along x, y and z; any other is refused, and never wraps."""
    delivers_each(harness, series)


@law("X2", given=lambda _: blocks(), requires=_DYNAMIC)
def greatest_blocks(harness: Harness, series: Series) -> None:
    """A block has 1 to 1024, 1024 and 64 threads along x, y and z, and 1024 in all; any other is refused."""
    delivers_each(harness, series)
    harness.once(_check_partly_constant)


def _check_partly_constant(harness: Harness) -> None:
    """Require the same of a block that is computed along one axis alone."""
    n = Symbol("n", min=0)
    launch = KernelLaunch("k", (), _ONES, (Const(32), n, Const(2)))
    program = KernelProgram("p", Signature((ScalarParam("n", dtype("int32"), n),)), (CODE,), (launch,))
    delivers_each(
        harness, Series(program, tuple(CallSpec(args=(value,), device=0) for value in (16, 17, 1, 32, 0)))
    )


def _kernels(harness: Harness) -> SearchStrategy[Any]:
    several = Capability.MULTI_LAUNCH in harness.capabilities
    return shared_memory(most_shared_memory(harness, 0), several=several)


def most_shared_memory(harness: Harness, device: int) -> int:
    """Return the shared memory that a device allows a block, static memory included, in bytes."""
    return int(harness.simulator.device(device).attribute(DeviceAttribute.MAX_SHARED_MEMORY_PER_BLOCK_OPTIN))


@law("X3", given=_kernels, requires=_DYNAMIC)
def greatest_shared_memory(harness: Harness, example: tuple[Series, int]) -> None:
    """A kernel is allowed all the shared memory of its device beside its static one; a byte more is refused.

    Refused is it by `DeviceRequirementError`, and what no device could have by `ArgumentValueError`; nothing of a
    refused call is launched, be it another launch that asks for less. Of a launch that is skipped nothing is asked.
    """
    series, static = example
    program = series.program
    if len(program.launches) > 1:
        _check_two_names(harness)
        if Capability.CONDITIONAL_LAUNCH in harness.capabilities:
            _check_condition(harness)
    with harness.loaded(program, _with_static_memory(program, static)) as loaded:
        for call in series.calls:
            facts, observed = harness.call(loaded, call)
            expected = expect(program, facts)
            if isinstance(expected, Refused):
                check_refused(harness, expected, observed)
            elif expected.launches[-1].dynamic_smem_bytes + static > most_shared_memory(
                harness, expected.device
            ):
                error = observed.error
                harness.require(isinstance(error, DeviceRequirementError), f"raised {error!r}")
                harness.require(not observed.launches, "a refused call launched")
            else:
                check_expected(harness, program, facts, (expected, observed), first=False)


def _with_static_memory(program: KernelProgram, nbytes: int, device: int = 0) -> DeviceImage:
    """Return an image for a device of a program whose kernels have so much static shared memory."""
    image = synthetic_image(program, Target("cuda", ARCHITECTURES[device]))
    kernels = [
        SyntheticKernel(name=one.symbol, parameters=one.parameters, static_smem_bytes=nbytes)
        for one in image.kernels
    ]
    return replace(image, data=synthetic_cubin(kernels, image.target.arch))


def check_beside_static_memory(harness: Harness) -> None:
    """Require that shared memory which the program says is allowed beside a kernel's static one, and no byte more.

    On each device it is that one's own: the build knows an architecture's, and a device may have less. What a kernel
    has unasked is its static memory's too: beside that, as much takes asking.

    Parameters
    ----------
    harness
        The backend.
    """
    static = 4096
    for device in UNLIKE:
        room = most_shared_memory(harness, device) - static
        unasked = harness.simulator.device(device).attribute(DeviceAttribute.MAX_SHARED_MEMORY_PER_BLOCK)
        for nbytes in (unasked, room, room + 1):
            launch = KernelLaunch("k", (), _ONES, _ONES, dynamic_smem_bytes=Const(nbytes))
            program = KernelProgram("p", Signature(()), (CODE,), (launch,))
            error, launched = _launched_beside(harness, program, static, device)
            lacks = nbytes > room
            good = isinstance(error, DeviceRequirementError) if lacks else error is None
            told = f"{nbytes} bytes beside {static} of {room + static} of device {device}: raised {error!r}"
            harness.require(good, told)
            harness.require(launched == (not lacks), f"launched {launched} times")


def _launched_beside(
    harness: Harness, program: KernelProgram, static: int, device: int
) -> tuple[BaseException | None, int]:
    """Return what a program raises whose kernels have static memory, at its build or its call, and what it launches."""
    try:
        artifact = harness.build(program, _with_static_memory(program, static, device))
    except DeviceRequirementError as error:
        return error, 0
    with closing(harness.reopen(program, artifact)) as loaded:
        _, observed = harness.call(loaded, CallSpec(args=(), device=device))
    return observed.error, len(observed.launches)


def check_greatest_constants(harness: Harness) -> None:
    """Require that the greatest grids and blocks that a program can say are launched; core refuses the next ones.

    Parameters
    ----------
    harness
        The backend.
    """
    for grid, block in (
        (_MOST_GRID, _ONES),
        (_ONES, (1024, 1, 1)),
        (_ONES, (1, 1024, 1)),
        (_ONES, (1, 16, 64)),
    ):
        launch = KernelLaunch("k", (), _constants(grid), _constants(block))
        program = KernelProgram("p", Signature(()), (CODE,), (launch,))
        with harness.loaded(program) as loaded:
            check_call(harness, Scenario(program, CallSpec(args=(), device=0)), loaded)


def _constants(extents: tuple[int | Const, ...]) -> tuple[Const, Const, Const]:
    x, y, z = (one if isinstance(one, Const) else Const(one) for one in extents)
    return x, y, z


def _check_two_names(harness: Harness) -> None:
    """Require that a kernel that goes by two names is allowed what the one of them needs that needs the most."""
    sizes = (100 << 10, 60 << 10)
    launches = (
        KernelLaunch(name, (), _ONES, _ONES, dynamic_smem_bytes=Const(size))
        for name, size in zip("kj", sizes, strict=True)
    )
    program = KernelProgram("p", Signature(()), (CODE,), tuple(launches))
    image = synthetic_image(program)
    one = image.kernels[0]
    image = replace(image, kernels=tuple(replace(one, name=kernel.name) for kernel in image.kernels))
    with harness.loaded(program, image) as loaded:
        _, observed = harness.call(loaded, CallSpec(args=(), device=0))
    seen = tuple(launch.dynamic_smem_bytes for launch in observed.launches)
    harness.require(seen == sizes, f"two names of a kernel: launched with {seen}, {observed.error!r}")


def _check_condition(harness: Harness) -> None:
    """Require that a device is asked once for a launch's memory, by the first call in which the condition holds."""
    flag = Symbol("flag", max=1)
    signature = Signature((ScalarParam("flag", dtype("int32"), flag),))
    most = most_shared_memory(harness, 0)
    for nbytes in (most, most + 1):
        asking = KernelLaunch("k", (), _ONES, _ONES, dynamic_smem_bytes=Const(nbytes), when=flag)
        beside = KernelLaunch("j", (), _ONES, _ONES)
        program = KernelProgram(
            "p", signature, (CODE,), (beside, beside, asking)
        )  # the third, of two kernels
        with harness.loaded(program) as loaded:
            loaded.preload(0)
            asked = []
            for value in (0, 1, 1, 0):
                # Not by the way of the example: to bind is to be asked before the launch that is observed.
                observed = observe(harness, functools.partial(loaded.call, (value,), device=0))
                asked.append(_asked(harness))
                lacks = bool(value) and nbytes > most
                good = isinstance(observed.error, DeviceRequirementError) if lacks else observed.error is None
                harness.require(good, f"with flag={value} and {nbytes} bytes: {observed.error!r}")
                launched = len(observed.launches)
                harness.require(
                    launched == (0 if lacks else 2 + value), f"launched {launched}, {nbytes} bytes"
                )
        expected = [[], [nbytes] if nbytes == most else [], [], []]
        harness.require(asked == expected, f"calls asked for {asked}, expected {expected}")


def _asked(harness: Harness) -> list[int]:
    """Return the bytes of dynamic shared memory that kernels were allowed."""
    smem = FunctionAttribute.MAX_DYNAMIC_SHARED_SIZE_BYTES
    events = harness.sabotage.trace(harness.machine.trace)
    return [one.value for one in events if isinstance(one, AttributeSet) and one.attribute == smem]


@law("X4", tier="launch", given=lambda h: aligned_memory(workspace=Capability.WORKSPACE in h.capabilities))
def alignments(harness: Harness, series: Series) -> None:
    """Allocated memory lies at a multiple of its alignment, up to 64 KiB; passed memory that does not is refused."""
    delivers_each(harness, series)
    _check_aligned_enough_for_another(harness, series)
    _check_next_destinations(harness, series)
    (output,) = series.program.signature.outputs
    _check_aligned_block(harness, output.alignment)


def _check_next_destinations(harness: Harness, series: Series) -> None:
    """Require that a destination that looks as the last one did is refused in too short a storage, or less aligned."""
    (output,) = series.program.signature.outputs
    good, *_ = series.calls[0].args
    assert isinstance(good, TensorSpec)
    size, alignment = output.dtype.itemsize, output.alignment or output.dtype.itemsize
    aligned = replace(good, dtype=output.dtype.name, offset=0)
    short = replace(aligned, short=True, offset=AHEAD // size)
    shifted = replace(aligned, offset=(AHEAD + alignment // 2) // size)
    with harness.loaded(series.program) as loaded:
        for wrong in (short, *([shifted] if alignment > size else [])):
            for out in (aligned, wrong):
                call = CallSpec(args=(replace(good, offset=0),), out=(out,))
                check_call(harness, Scenario(series.program, call), loaded, first=False)


def _check_aligned_block(harness: Harness, alignment: int | None) -> None:
    """Require that outputs of several dimensions are contiguous, one of one element among them, as well as aligned."""
    for kind in ("int16", "float4_e2m1fn_x2"):  # of the latter one element is of two numbers of four bits
        block = TensorParam(
            "b", dtype(kind), tuple(map(Const, (30, 1, 20))), access="write", alignment=alignment
        )
        blocks = block, replace(block, name="c")
        program = taking(outputs=blocks)
        with harness.loaded(program) as loaded:
            check_call(harness, Scenario(program, CallSpec(args=(), device=0)), loaded)


def _check_aligned_enough_for_another(harness: Harness, series: Series) -> None:
    """Write into the memory of an argument that was good: it may be aligned well enough for that argument alone."""
    signature = series.program.signature
    (param,), (output,) = signature.tensors, signature.outputs
    count = series.calls[0].args[0].shape  # type: ignore[attr-defined]  # a `TensorSpec`
    start = (param.alignment or param.dtype.itemsize) // param.dtype.itemsize
    spec = TensorSpec(dtype=param.dtype.name, shape=count, strides=(1,), offset=start)
    given = harness.given(CallSpec(args=(spec,)))
    same = given.args[0].view(replace(spec, dtype=output.dtype.name).kind)[: count[0]]
    with harness.loaded(series.program) as loaded:
        for call in (given, replace(given, out=[same])):
            check_given(harness, series.program, call, loaded, first=call is given)


@law("X5", given=lambda h: memory_sizes(workspace=Capability.WORKSPACE in h.capabilities), requires=_DYNAMIC)
def greatest_sizes(harness: Harness, series: Series) -> None:
    """An output or a workspace of a negative extent, or of 2**63 bytes or more, is refused, and never wraps.

    One of a few bytes less, which leave no room to align it, is refused by that error or as too much memory.
    """
    huge = [call for call in series.calls if is_huge(series.program, call)]
    delivers_each(harness, replace(series, calls=tuple(call for call in series.calls if call not in huge)))
    with harness.loaded(series.program) as loaded:
        for call in huge:
            try:
                _, observed = harness.call(loaded, call)
                harness.require(isinstance(observed.error, ArgumentError), f"raised {observed.error!r}")
            except RuntimeError as error:  # torch's own class for that is one
                harness.require(type(error).__name__ == "OutOfMemoryError", f"raised {error!r}")
            harness.require(not harness.observed_launches(), "a refused call launched")


@law(
    "X6",
    given=lambda h: map_layouts(im2col=Capability.TMA_IM2COL in h.capabilities),
    requires=_DYNAMIC | {Capability.TMA_TILED},
)
def greatest_maps(harness: Harness, series: Series) -> None:
    """A map is refused where a number of it is one beyond what a rule allows; every broken rule is named."""
    for described in described_maps(im2col=Capability.TMA_IM2COL in harness.capabilities):
        _check_described(harness, described)
    delivers_each(harness, series)


def _check_described(harness: Harness, described: DescribedMap) -> None:
    """Require that a map whose numbers the program says is described if it is good, and refused for its one mistake."""
    try:
        described.describe()
    except TensorMapError as error:
        named = described.broken and all(described.broken in rule for rule in error.broken)
        harness.require(named, f"{described}: {error}")
        return
    harness.require(not described.broken, f"described {described}")


@law(
    "X7",
    tier="driver",
    given=lambda _: window_ranges(),
    requires=_DYNAMIC | {Capability.ACCESS_POLICY_WINDOW},
)
def greatest_windows(harness: Harness, series: Series) -> None:
    """A window may end with its memory, and is refused where it would reach one byte beyond, or begin before it."""
    delivers_each(harness, series)


_VIEWS = _DYNAMIC | {Capability.STRIDED_TENSORS, Capability.TENSOR_VIEWS}


@law(
    "X8",
    tier="launch",
    given=lambda h: view_layouts(built=Capability.BUILT_STRUCTS in h.capabilities),
    requires=_VIEWS,
)
def greatest_views(harness: Harness, series: Series) -> None:
    """An extent of a view is refused beyond 2**31 - 1; its strides travel in 64 bits."""
    delivers_each(harness, series)


_VAST = (1 << 32) + (1 << 16)
"""Bytes of a tensor that 32 bits do not count."""

_FAR = (1 << 32, (1 << 31) - 256, 1 << 31, (1 << 32) - 256, (1 << 32) + 512, _VAST - 4096)


@law("X9", given=lambda _: st.sampled_from(_FAR), requires=_DYNAMIC, ways=LOADS)
def far_offsets(harness: Harness, start: int) -> None:
    """What lies 4 GiB behind a first element is reached: by an address, a map, a window, and what fills an output."""
    program = _far_program(harness)
    tensor = untouched(harness.simulator, _VAST)
    with harness.loaded(program) as loaded:
        check_given(harness, program, Arguments(args=[tensor, start]), loaded)
    harness.once(_check_alike_in_32_bits, each_way=False)
    if Capability.OUTPUT_FILL in harness.capabilities:
        harness.once(_check_vast_fills)


def _check_alike_in_32_bits(harness: Harness) -> None:
    """Require that tensors are two whose addresses differ in what 32 bits do not hold alone."""
    tensor = TensorParam("a", dtype("uint8"), (Const(64),))
    args: list[Argument] = [tensor]
    if Capability.TMA_TILED in harness.capabilities:
        args.append(tensor.tiled((16,)))
    launch = KernelLaunch("k", tuple(args), _ONES, _ONES)
    program = KernelProgram("p", Signature((tensor,)), (CODE,), (launch,))
    memory = untouched(harness.simulator, _VAST)
    with harness.loaded(program) as loaded:
        for start in (0, 1 << 32, 0, 1 << 32):
            given = Arguments(args=[memory[start : start + 64]])
            check_given(harness, program, given, loaded, first=False)


def _check_vast_fills(harness: Harness) -> None:
    """Require that an output is filled to its end beyond 4 GiB, whichever size an element has, and of unlike parts."""
    count = Symbol("count", min=0)
    for kind, fill in (("uint8", 1), ("float16", 1), ("float32", 1), ("complex64", 1 + 2j)):
        scalar, extent = ScalarParam("count", dtype("int64"), count), (count,)
        output = TensorParam("b", dtype(kind), extent, access="write", fill=fill)
        launch = KernelLaunch("k", (output,), _ONES, _ONES)
        program = KernelProgram("p", Signature((scalar,), (output,)), (CODE,), (launch,))
        size = dtype(kind).itemsize
        tensor = untouched(harness.simulator, _VAST * size)
        tensor = tensor.view(TensorSpec(dtype=kind, shape=(), strides=()).kind)
        filled: list[int] = []
        with harness.loaded(program) as loaded, ExitStack() as until:
            for bits in (8, 16, 32):  # which are not carried out: that takes as much memory as there is
                noted = functools.partial(_note_fill, filled, bits // 8)
                until.enter_context(harness.simulator.intercept(f"cuMemsetD{bits}Async", noted))
                rows = functools.partial(_note_rows, filled, bits // 8)
                until.enter_context(harness.simulator.intercept(f"cuMemsetD2D{bits}Async", rows))
            observed = observe(harness, functools.partial(loaded.entry, _VAST, out=(tensor,), device=0))
        harness.require(observed.error is None, f"a good call was refused: {observed.error!r}")
        harness.require(sum(filled) == _VAST * size, f"{sum(filled)} bytes of {_VAST * size} were filled")


def _note_fill(filled: list[int], width: int, _: Any, __: int, ___: int, count: int, *____: Any) -> None:
    filled.append(width * count)


def _note_rows(
    filled: list[int], size: int, _: Any, __: int, ___: int, ____: int, width: int, height: int, *_____: Any
) -> None:
    filled.append(size * width * height)


def _far_program(harness: Harness) -> KernelProgram:
    """Return a program that reads a tensor from an element on that a call names, in each way that there is."""
    start = Symbol("start", min=0)
    tensor = TensorParam("a", dtype("uint8"), (Const(_VAST),))
    args: list[Argument] = [tensor, start]
    fields: dict[str, Any] = {}
    if Capability.CONSTANTS_AND_OFFSETS in harness.capabilities:
        args.append(tensor.at(start))
    if Capability.TMA_TILED in harness.capabilities:
        args.append(tensor.tiled((16,), shape=(Const(64),), strides=(Const(1),), element_offset=start))
    if Capability.ACCESS_POLICY_WINDOW in harness.capabilities:
        fields["window"] = tensor.window(element_offset=start, nbytes=4096)
    launch = KernelLaunch("k", tuple(args), _ONES, _ONES, **fields)
    signature = Signature((tensor, ScalarParam("start", dtype("int64"), start)))
    return KernelProgram("p", signature, (CODE,), (launch,))
