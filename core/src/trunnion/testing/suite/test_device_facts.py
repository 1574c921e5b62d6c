"""Laws of facts of a device: what a launch is sized by that no call says."""

from __future__ import annotations

from contextlib import ExitStack, suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from hypothesis import strategies as st

from trunnion.contract.compiler import DeviceImage, ImageKernel
from trunnion.contract.spec import Target
from trunnion.errors import DriverError
from trunnion.image import SyntheticKernel, pack_parameters, synthetic_cubin
from trunnion.model.capability import Capability
from trunnion.model.dtypes import dtype
from trunnion.model.expr import Const, Expr, Symbol, minimum
from trunnion.model.facts import device, occupancy
from trunnion.model.launch import KernelLaunch
from trunnion.model.params import ScalarParam, Signature, TensorParam
from trunnion.model.program import KernelProgram
from trunnion.sim.abi import DeviceAttribute
from trunnion.testing.comparison import check_expected, check_refused
from trunnion.testing.expected import Refused
from trunnion.testing.history import Bench
from trunnion.testing.laws import law
from trunnion.testing.machine import ALIKE, ARCHITECTURES, UNLIKE, synthetic_image
from trunnion.testing.portable_image import portable_image
from trunnion.testing.reference import expect, parameter_layouts
from trunnion.testing.strategies import CallSpec, TensorSpec
from trunnion.testing.strategies.choices import choose
from trunnion.testing.strategies.histories import history_programs
from trunnion.testing.strategies.limits import Series
from trunnion.testing.strategies.programs import CODE, FACTS, PARTS
from trunnion.testing.suite.test_launches import delivers_each
from trunnion.testing.symbols import kernel_symbol
from trunnion.testing.ways import LOADS

if TYPE_CHECKING:
    from trunnion.contract.adapter import LoadedProgram
    from trunnion.testing.harness import Harness

__all__: list[str] = []

_FACTS: Final = frozenset({Capability.DEVICE_FACTS})
_MAPS: Final = {Capability.TMA_TILED}  # which not every device has
_UNLOADED: Final = tuple(way for way in LOADS if way != "preload")
"""A program that is preloaded is so for the devices that are alike, which its image may not be for."""

_EVERY: Final = tuple(dict.fromkeys((*ALIKE, *UNLIKE)))
_ROWS: Final = 8


# Attributes ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Sized:
    """A program that is sized by its device, and the devices on which it is called, one after another."""

    program: KernelProgram
    """The program."""

    devices: tuple[int, ...]
    """Their ordinals."""

    portable: bool
    """Whether all devices have one image; else each architecture has its own."""


@st.composite
def _sized(draw: st.DrawFn, harness: Harness) -> Sized:
    """Draw a program whose first launch is over facts, and calls on devices that differ."""
    program = draw(history_programs(harness.capabilities - _MAPS))
    first, *others = program.launches
    given = draw(st.lists(st.sampled_from(FACTS), min_size=1, max_size=4))
    blocks = choose(draw, (device.multiprocessor_count, device.max_blocks_per_multiprocessor))
    grid: Expr = choose(
        draw, (blocks * 2, minimum(blocks, 1 << 20), blocks - device.compute_capability_minor)
    )
    first = replace(
        first,
        args=(*first.args, *given, given[0] * 3 - device.warp_size),
        grid=(grid, Const(1), Const(1)),
        block=(device.warp_size * 2, Const(1), Const(1)),
    )
    devices = draw(st.permutations((*_EVERY, *_EVERY)).map(tuple))
    portable = "ptx" in harness.spec.accepts and draw(st.booleans())
    return Sized(replace(program, launches=(first, *others)), devices, portable)


class _Machine:
    """A program on each of several devices."""

    def __init__(self, harness: Harness, sized: Sized, opened: ExitStack) -> None:
        self._harness, self._sized, self._opened = harness, sized, opened
        self._loaded: dict[str, LoadedProgram] = {}
        self._benches: dict[int, Bench] = {}

    def _program(self, arch: str) -> LoadedProgram:
        """Return the program that is loaded for an architecture; empty: for all of them."""
        program, harness = self._sized.program, self._harness
        if arch not in self._loaded:
            image = synthetic_image(program, Target("cuda", arch)) if arch else portable_image(program)
            self._loaded[arch] = self._opened.enter_context(harness.loaded(program, image))
        return self._loaded[arch]

    def bench(self, ordinal: int) -> Bench:
        """Return the calls of the program on a device."""
        if ordinal not in self._benches:
            loaded = self._program("" if self._sized.portable else ARCHITECTURES[ordinal])
            self._fail(loaded, ordinal)
            self._benches[ordinal] = bench = Bench(self._harness, self._sized.program, loaded)
            bench.now.on = ordinal
            bench.place()
        return self._benches[ordinal]

    def _fail(self, loaded: LoadedProgram, ordinal: int) -> None:
        """Let the device refuse once to tell what the grid is over: it is to be asked again, not taken for told."""
        with self._harness.simulator.fault("cuDeviceGetAttribute", when=_sizes), suppress(DriverError):
            loaded.preload(ordinal)


def _sizes(_: int, attribute: int, __: int) -> bool:
    return attribute in (DeviceAttribute.MULTIPROCESSOR_COUNT, DeviceAttribute.MAX_BLOCKS_PER_MULTIPROCESSOR)


@law("Z6", given=_sized, requires=_FACTS, ways=_UNLOADED, cost="toolchain")
def sized_by_its_device(harness: Harness, sized: Sized) -> None:
    """A launch is sized by the facts of the device on which it runs, whatever those of others are."""
    with ExitStack() as opened:
        machine = _Machine(harness, sized, opened)
        for ordinal in sized.devices:
            machine.bench(ordinal).call("call")
    if Capability.DYNAMIC_SHAPES in harness.capabilities:
        harness.once(_check_sized_by_a_number)


def _check_sized_by_a_number(harness: Harness) -> None:
    """Require that a grid is over a fact and a number of the call, among calls on tensors that are alike."""
    rows = Symbol("rows", min=1)
    tensor, scalar = (
        TensorParam("a", dtype("float32"), (Const(_ROWS),)),
        ScalarParam("rows", dtype("int32"), rows),
    )
    grid, one = (device.multiprocessor_count * rows, Const(1), Const(1)), (Const(1),) * 3
    program = KernelProgram(
        "p", Signature((tensor, scalar)), (CODE,), (KernelLaunch("k", (tensor,), grid, one),)
    )
    spec = TensorSpec(dtype="float32", shape=(_ROWS,), strides=(1,))
    delivers_each(harness, Series(program, tuple(CallSpec(args=(spec, value)) for value in (1, 2, 2, 1))))


# Occupancy ----------------------------------------------------------------------------------------------------------

_KIB: Final = 1 << 10
_BLOCKS: Final[tuple[int | tuple[int, ...], ...]] = (1, 32, 33, 96, 128, 256, 640, 1024, (16, 16), (8, 4, 4))
_SMEM: Final = (
    0, 1, 8 * _KIB, 48 * _KIB, 48 * _KIB + 1, 60_000, 75 * _KIB, 98 * _KIB, 99 * _KIB, 113 * _KIB, 163 * _KIB,
    227 * _KIB, 227 * _KIB + 1, 1 << 20,
)  # fmt: skip
"""The limits of the devices are among them, and one beyond each."""

_RESOURCES: Final = (
    (32, 0),
    (32, 0),
    (16, 1000),
    (40, 0),
    (64, 16 * _KIB),
    (128, 0),
    (200, 5000),
    (255, 40_000),
)
_KERNELS: Final = ("light", "heavy", "third")


@dataclass(frozen=True, slots=True)
class Held:
    """A program that asks how many blocks of its kernels a multiprocessor holds, and the devices that it asks."""

    program: KernelProgram
    """The program."""

    resources: tuple[tuple[str, tuple[int, int]], ...]
    """Of each kernel the registers of a thread and the static shared memory, in bytes."""

    devices: tuple[int, ...]
    """The ordinals."""

    def image(self, arch: str) -> DeviceImage:
        """Return an image of kernels that take as much."""
        used, target = dict(self.resources), Target("cuda", arch)
        kernels, synthetic = [], []
        for index, ((name, _), layout) in enumerate(parameter_layouts(self.program).items()):
            parameters = pack_parameters(layout, arch)
            kernels.append(ImageKernel(name, kernel_symbol(index), parameters))
            registers, static = used[name]
            fields: dict[str, Any] = {"registers": registers, "static_smem_bytes": static}
            synthetic.append(SyntheticKernel(name=kernel_symbol(index), parameters=parameters, **fields))
        return DeviceImage(
            kind="cubin", data=synthetic_cubin(synthetic, arch), target=target, kernels=tuple(kernels)
        )


@st.composite
def _held(draw: st.DrawFn, harness: Harness) -> Held:
    """Draw a program with one launch, or three, each over the occupancy of some kernel, not always its own."""
    several = Capability.MULTI_LAUNCH in harness.capabilities
    names = draw(st.permutations(_KERNELS))[: 3 if several else 1]
    x = TensorParam("x", dtype("float32"), (Const(_ROWS),))
    launches, parts = [], draw(st.permutations(PARTS[:2]))
    for part, name in enumerate(names):
        asked = [occupancy(choose(draw, names), choose(draw, _BLOCKS), choose(draw, _SMEM)) for _ in range(3)]
        grid = (asked[0] * device.multiprocessor_count + choose(draw, (0, 1)), Const(1), Const(1))
        smem = Const(choose(draw, (0, 0, 1024)))
        launches.append(
            KernelLaunch(
                name,
                (x, *asked),
                grid,
                (Const(32), Const(1), Const(1)),
                dynamic_smem_bytes=smem,
                code=parts[part % len(parts)],
            )
        )
    code = tuple(parts[: len(launches)])
    program = KernelProgram("held", Signature((x,)), code, tuple(launches))
    resources = tuple((name, choose(draw, _RESOURCES)) for name in names)
    return Held(program, resources, tuple(draw(st.permutations(_EVERY))))


@law("Z7", given=_held, requires=_FACTS, ways=_UNLOADED)
def occupancy_of_its_kernel(harness: Harness, held: Held) -> None:
    """Occupancy is what the device answers for that kernel, that block and that shared memory, once it is allowed.

    What no device allows, of that it holds none; and a launch that needs less is launched all the same.
    """
    program = held.program
    with ExitStack() as opened:
        loaded: dict[str, LoadedProgram] = {}
        for ordinal in held.devices:
            arch = ARCHITECTURES[ordinal]
            if arch not in loaded:
                loaded[arch] = opened.enter_context(harness.loaded(program, held.image(arch)))
            spec = TensorSpec(dtype="float32", shape=(_ROWS,), strides=(1,), device=ordinal)
            facts, observed = harness.call(loaded[arch], CallSpec(args=(spec,)))
            facts = replace(facts, resources=dict(held.resources))
            expected = expect(program, facts)
            if isinstance(expected, Refused):
                check_refused(harness, expected, observed)
            else:
                check_expected(harness, program, facts, (expected, observed))
