"""Laws of devices that differ, in one process, and of drivers that do."""

from __future__ import annotations

import functools
import math
import tempfile
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from hypothesis import strategies as st

from trunnion.contract.spec import Target
from trunnion.errors import DeviceRequirementError, DriverError, TensorMapError
from trunnion.model.capability import Capability
from trunnion.model.dtypes import dtype
from trunnion.model.expr import Const, Expr, Symbol, ge, gt
from trunnion.model.facts import device as facts
from trunnion.model.launch import KernelLaunch
from trunnion.model.params import ScalarParam, Signature, TensorParam
from trunnion.model.program import KernelProgram
from trunnion.model.tensormap import TensorMap
from trunnion.sim.abi import DeviceAttribute
from trunnion.sim.tensormap import TiledRequest
from trunnion.sim.trace import LimitSet
from trunnion.testing.arithmetic import evaluate
from trunnion.testing.comparison import check_call
from trunnion.testing.history import Bench
from trunnion.testing.laws import ONE_WAY, law
from trunnion.testing.lone_device import saved_program, told_by_a_lone_device
from trunnion.testing.machine import ALIKE, ARCHITECTURES, UNLIKE, synthetic_image
from trunnion.testing.observed import observe
from trunnion.testing.older_driver import told_by_an_older_driver
from trunnion.testing.portable_image import portable_image
from trunnion.testing.strategies import CallSpec, Scenario, TensorSpec
from trunnion.testing.strategies.choices import choose
from trunnion.testing.strategies.histories import history_programs
from trunnion.testing.strategies.programs import CODE
from trunnion.testing.suite.test_limits import check_beside_static_memory, check_greatest_constants
from trunnion.testing.ways import LOADS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hypothesis.strategies import SearchStrategy

    from trunnion.contract.adapter import LoadedProgram
    from trunnion.testing.harness import Harness

__all__: list[str] = []

_UNLOADED: Final = tuple(way for way in LOADS if way != "preload")
"""A program that is preloaded is so for the devices that are alike, which its image may not be for."""

_MAPS: Final = {Capability.TMA_TILED}
_FACTS: Final = Capability.DEVICE_FACTS
_KIB: Final = (
    1,
    98,
    99,
    100,
    163,
    164,
    227,
    228,
)  # the limits of the devices are among them, and one beyond each
_ROWS: Final = (8, 9, 64, 80)
_VISITS: Final = 6


@dataclass(frozen=True, slots=True)
class Visit:
    """A call on one of several devices."""

    device: int
    """Its ordinal."""

    kib: int = 1
    """The dynamic shared memory of a block, in KiB, if the program leaves that to the call."""

    rows: int = 8
    """The extent of its tensors that is left to the call."""


@dataclass(frozen=True, slots=True)
class Tour:
    """Calls of a program on devices in turns."""

    program: KernelProgram
    """The program."""

    visits: tuple[Visit, ...]
    """The calls."""

    portable: bool = False
    """Whether all devices have one image; else each architecture has its own, loaded from an artifact of its own."""


@st.composite
def _tours(draw: st.DrawFn, harness: Harness) -> Tour:
    """Draw calls on devices that differ, with what they allow and a little more."""
    without = choose(draw, (_MAPS, _MAPS, set()))
    program = draw(history_programs(harness.capabilities - without))
    visits = tuple(
        Visit(choose(draw, UNLIKE), choose(draw, _KIB), choose(draw, _ROWS))
        for _ in range(choose(draw, (1, *(_VISITS,) * 15)))
    )
    return Tour(program, visits, "ptx" in harness.spec.accepts and draw(st.booleans()))


class _Machine:
    """A program on each of several devices."""

    def __init__(self, harness: Harness, tour: Tour, opened: ExitStack) -> None:
        self._harness, self._program, self._opened = harness, tour.program, opened
        self._whole = self._open(portable_image(tour.program)) if tour.portable else None
        self._benches: dict[int, Bench] = {}

    def _open(self, image: Any) -> Any:
        loaded = self._harness.open(self._program, image)
        self._opened.callback(loaded.close)
        return loaded

    def bench(self, device: int) -> Bench:
        """Return the calls of the program on a device."""
        found = self._benches.get(device)
        if found is None:
            target = Target("cuda", ARCHITECTURES[device])
            loaded = self._whole or self._open(synthetic_image(self._program, target))
            found = self._benches[device] = Bench(self._harness, self._program, loaded)
            found.now.on = device
            found.place()
        return found

    def visit(self, visit: Visit) -> None:
        """Make a call; the device may have to refuse it."""
        bench, harness = self.bench(visit.device), self._harness
        bench.now.values["n"] = visit.rows
        if "k" in bench.now.numbers:
            bench.now.numbers["k"] = visit.kib
        bench.reshape()
        lacking = tuple(self._lacking(visit))
        if not lacking:
            bench.call("call")
            self._check_share(visit.device)
            return
        _, observed = harness.call_with(bench.loaded, bench.given())
        told = f"device {visit.device} ({ARCHITECTURES[visit.device]}): {observed.error!r}"
        harness.require(isinstance(observed.error, lacking), told)
        harness.require(not observed.launches, "a refused call launched")

    def _check_share(self, device: int) -> None:
        """Require that no more cache was asked for than the device can set aside: a driver may refuse that."""
        machine = self._harness.machine
        most = machine.attribute(device, DeviceAttribute.MAX_PERSISTING_L2_CACHE_SIZE)
        asked = [event.asked for event in machine.trace if isinstance(event, LimitSet)]
        told = (
            f"{asked} bytes of cache were asked for on device {device}, which sets {most} aside at the most"
        )
        self._harness.require(max(asked, default=0) <= most, told)

    def _lacking(self, visit: Visit) -> Iterator[type[Exception]]:
        """Yield the errors of what the device lacks."""
        most = self._harness.simulator.device(visit.device).attribute(
            DeviceAttribute.MAX_SHARED_MEMORY_PER_BLOCK_OPTIN
        )
        if visit.kib << 10 > most and "k" in self.bench(visit.device).now.numbers:
            yield DeviceRequirementError
        for launch in self._program.launches:
            if launch.when is not None and not self._value(launch.when, visit):
                continue
            blocks = math.prod(self._value(extent, visit) for extent in launch.cluster or ())
            if blocks > 1 and not self._has(visit.device, DeviceAttribute.CLUSTER_LAUNCH):
                yield DeviceRequirementError
            if isinstance(launch.dynamic_smem_bytes, Const) and launch.dynamic_smem_bytes.value > most:
                yield DeviceRequirementError
        maps = (arg for one in self._program.launches for arg in one.args if isinstance(arg, TensorMap))
        if any(maps) and not self._has(visit.device, DeviceAttribute.TENSOR_MAP_ACCESS_SUPPORTED):
            yield from (TensorMapError, DeviceRequirementError)

    def _value(self, number: int | Expr, visit: Visit) -> int:
        """Return a number of a call; of the device's facts it is over none but the first of its capability."""
        major = self._harness.simulator.device(visit.device).attribute(
            DeviceAttribute.COMPUTE_CAPABILITY_MAJOR
        )
        return number if isinstance(number, int) else evaluate(number, {"k": visit.kib}, lambda _: int(major))

    def _has(self, device: int, attribute: int) -> bool:
        return bool(self._harness.simulator.device(device).attribute(attribute))


@law("Z1", given=_tours, ways=_UNLOADED)
def unlike_devices(harness: Harness, tour: Tour) -> None:
    """Each device has its own limits, whatever was learnt on another: it launches, or an error says what it lacks.

    So it does where the program says all numbers, which takes no capability: the greatest launches, and shared memory.
    """
    with ExitStack() as opened:
        machine = _Machine(harness, tour, opened)
        for visit in tour.visits:
            machine.visit(visit)
    harness.once(check_beside_static_memory)
    harness.once(check_greatest_constants)
    if Capability.ACCESS_POLICY_WINDOW in harness.capabilities and "ptx" in harness.spec.accepts:
        harness.once(_check_longest_windows)


_LONG: Final = 1 << 14  # bytes: more than some of the devices allow a window


def _check_longest_windows(harness: Harness) -> None:
    """Require that a window without a length ends where each device has it, after calls on other devices."""
    tensor = TensorParam("a", dtype("uint8"), (Const(_LONG),))
    launch = KernelLaunch("k", (tensor,), (Const(1),) * 3, (Const(1),) * 3, window=tensor.window())
    program = KernelProgram("p", Signature((tensor,)), (CODE,), (launch,))
    with harness.loaded(program, portable_image(program)) as loaded:
        for device in (*UNLIKE, *UNLIKE):
            spec = TensorSpec(dtype="uint8", shape=(_LONG,), strides=(1,), device=device)
            check_call(harness, Scenario(program, CallSpec(args=(spec,))), loaded)


def _strangers(harness: Harness) -> SearchStrategy[Any]:
    orders = st.permutations((*UNLIKE, *ALIKE)).map(tuple)
    of_some = _MAPS | {Capability.COMPUTED_ATTRIBUTES}  # a cluster too is what not every device has
    return st.tuples(history_programs(harness.capabilities - of_some), orders)


@law("Z2", given=_strangers, ways=_UNLOADED, cost="toolchain")
def foreign_images(harness: Harness, example: tuple[KernelProgram, tuple[int, ...]]) -> None:
    """An image that a device cannot run is an error that names both, launches nothing, and still runs where it can."""
    program, devices = example
    with harness.loaded(program) as loaded:
        for device in devices:
            bench = Bench(harness, program, loaded)
            bench.now.on = device
            bench.place()
            if device in ALIKE:
                bench.call("call")
                continue
            _, observed = harness.call_with(loaded, bench.given())
            error: Any = observed.error
            good = isinstance(error, DeviceRequirementError) or (
                isinstance(error, DriverError) and error.code_name == "CUDA_ERROR_NO_BINARY_FOR_GPU"
            )
            both = [ARCHITECTURES[one].rstrip("a") for one in (ALIKE[0], device)]
            harness.require(good, f"an image for {both[0]} on {both[1]}: {error!r}")
            harness.require(
                all(one in str(error) for one in both), f"names not both architectures, {both}: {error}"
            )
            harness.require(not observed.launches, "a refused call launched")


_BEYOND_OLDER: Final = 200 << 10  # bytes of shared memory that all devices but the oldest allow


@st.composite
def _clustered(draw: st.DrawFn, harness: Harness) -> Tour:
    """Draw a program of which a launch has a cluster, and devices; a condition may skip that launch."""
    program = draw(history_programs(harness.capabilities - _MAPS))
    first, *others = program.launches
    conditions, skipped = _conditions(harness, program), draw(st.booleans())
    if conditions and skipped:
        cluster, nbytes = choose(draw, (((2, 1, 1), 0), ((16, 1, 1), 0), ((1, 1, 1), _BEYOND_OLDER)))
        first = replace(
            first,
            grid=(Const(16), Const(1), Const(1)),
            cluster=cluster,
            dynamic_smem_bytes=Const(nbytes),
            when=choose(draw, conditions),
        )
        launches = (*others, first)  # a call that is refused for it launches none of the others
    else:
        launches = (replace(first, cluster=choose(draw, ((2, 1, 1), (1, 1, 1)))), *others)
    devices = draw(st.permutations((*UNLIKE, *UNLIKE)))
    visits = tuple(Visit(device, choose(draw, (1, 2))) for device in devices)
    portable = "ptx" in harness.spec.accepts and draw(st.booleans())
    return Tour(replace(program, launches=launches), visits, portable)


def _conditions(harness: Harness, program: KernelProgram) -> tuple[Expr, ...]:
    """Return conditions that a backend can tell: one of calls, and one that holds on no device without clusters."""
    if Capability.CONDITIONAL_LAUNCH not in harness.capabilities:
        return ()
    counted = (one.symbol for one in program.signature.scalars if one.symbol is not None)
    newer = (ge(facts.compute_capability_major, 9),)
    return (*(gt(symbol, 1) for symbol in counted), *(newer if _FACTS in harness.capabilities else ()))


@law("Z3", given=_clustered, requires=frozenset({Capability.CLUSTER}), ways=_UNLOADED, cost="toolchain")
def clusters_of_some_devices(harness: Harness, tour: Tour) -> None:
    """A cluster that a device lacks is a DeviceRequirementError when it is preloaded, or where a condition is met.

    What calls skip by a condition is asked of no device. So is shared memory, which the build refuses without one.
    """
    with ExitStack() as opened:
        machine = _Machine(harness, tour, opened)
        for visit in tour.visits:
            (demanding,) = (one for one in tour.program.launches if one.cluster is not None)
            if demanding.when is not None:
                machine.bench(visit.device).loaded.preload(visit.device)
            elif ARCHITECTURES[visit.device] == "sm_80" and demanding.cluster != (1, 1, 1):
                _check_lacking(harness, machine, visit.device)
                continue
            machine.visit(visit)
    if "ptx" in harness.spec.accepts:
        harness.once(_check_never)


def _check_never(harness: Harness) -> None:
    """Require that a launch which never happens asks no device for anything."""
    one = (Const(1),) * 3
    never = [KernelLaunch("never", (), (Const(0), Const(2), Const(1)), one, cluster=(1, 2, 1))]
    if Capability.CONDITIONAL_LAUNCH in harness.capabilities:
        never.append(replace(never[0], grid=(Const(2), Const(2), Const(1)), when=Const(0)))
    beside = [KernelLaunch("k", (), one, one)] if Capability.MULTI_LAUNCH in harness.capabilities else []
    for launch in never:
        program = KernelProgram("p", Signature(()), (CODE,), (launch, *beside))
        with harness.loaded(program, portable_image(program)) as loaded:
            for device in UNLIKE:
                loaded.preload(device)
                check_call(harness, Scenario(program, CallSpec(args=(), device=device)), loaded)


def _check_lacking(harness: Harness, machine: _Machine, device: int) -> None:
    """Require that a device that lacks what every call needs says so, whoever asks."""
    bench = machine.bench(device)
    preloading = observe(harness, functools.partial(bench.loaded.preload, device))
    _, called = harness.call_with(bench.loaded, bench.given())
    for what, seen in (("preloading", preloading), ("calling", called)):
        error = seen.error
        harness.require(isinstance(error, DeviceRequirementError), f"{what} raised {error!r}")
        harness.require(not seen.launches, f"{what} launched")


_NEWER_SWIZZLES: Final = ("128B_ATOM_32B", "128B_ATOM_32B_FLIP_8B", "128B_ATOM_64B")


_SPAN: Final = (
    64  # elements of two bytes: no box's row is longer than the 128 bytes that these swizzles permute
)


@dataclass(frozen=True, slots=True)
class NewerMap:
    """A map in a swizzle that only some devices have; whether it can be described at all is for the law to see."""

    swizzle: str
    """The swizzle."""

    rows: int
    """The rows of its tensor, of 256 elements of two bytes each."""

    inner: int
    """The elements of a row of its box."""

    def scenario(self, device: int) -> Scenario:
        """Return a call of a program with that map on a device.

        Raises
        ------
        TensorMapError
            If it breaks a rule of every device.
        """
        tensor = TensorParam("a", dtype("float16"), (Const(self.rows), Const(256)))
        ones = (Const(1), Const(1), Const(1))
        tensor_map = tensor.tiled((1, self.inner), swizzle=self.swizzle)
        launch = KernelLaunch("k", (tensor_map,), ones, ones)
        program = KernelProgram("p", Signature((tensor,)), (CODE,), (launch,))
        spec = TensorSpec(dtype="float16", shape=(self.rows, 256), strides=(256, 1), device=device)
        return Scenario(program, CallSpec(args=(spec,)))


def _newer_maps() -> SearchStrategy[tuple[NewerMap, tuple[int, ...]]]:
    """Return a strategy of good maps, and of devices."""
    inner = st.sampled_from((_SPAN, 8, 32))
    maps = st.builds(NewerMap, st.sampled_from(_NEWER_SWIZZLES), st.integers(1, 9), inner)
    return st.tuples(maps, st.permutations(UNLIKE).map(tuple))


@law("Z5", given=lambda _: _newer_maps(), requires=frozenset(_MAPS), ways=_UNLOADED, cost="toolchain")
def swizzles_of_some_devices(harness: Harness, example: tuple[NewerMap, tuple[int, ...]]) -> None:
    """A map in a swizzle that came with compute capability 10.0 arrives there, and is a TensorMapError elsewhere.

    One whose rows are longer than what it permutes is a TensorMapError everywhere, when it is described or called.
    """
    newer, devices = example
    harness.once(_check_packed)
    for device in devices:
        _check_newer(harness, newer, device)
        for swizzle in _NEWER_SWIZZLES:
            _check_newer(harness, replace(newer, swizzle=swizzle, inner=newer.inner + _SPAN), device)
    if "ptx" in harness.spec.accepts and newer.inner <= _SPAN:
        program = newer.scenario(devices[0]).program
        with harness.loaded(program, portable_image(program)) as loaded:
            for device in (*devices, *devices):  # none by what was found out of another
                _check_arrival(harness, newer, loaded, device)


_ROWS_OF_MAP: Final = 8


def _check_packed(harness: Harness) -> None:
    """Require that a map of elements of four bits reaches as far as its memory, two elements to a byte."""
    dynamic = Capability.DYNAMIC_SHAPES in harness.capabilities
    whole = Const(_ROWS_OF_MAP)
    tensor = TensorParam("a", dtype("uint8"), (Symbol("n", min=1) if dynamic else whole, Const(64)))
    layout = {"dtype": "16U4_ALIGN8B", "shape": (whole, Const(128)), "strides": (Const(128), Const(1))}
    launch = KernelLaunch("k", (tensor.tiled((1, 64), **layout),), (Const(1),) * 3, (Const(1),) * 3)
    program = KernelProgram("p", Signature((tensor,)), (CODE,), (launch,))
    device = next(one for one in UNLIKE if ARCHITECTURES[one] == "sm_100a")
    image = synthetic_image(program, Target("cuda", ARCHITECTURES[device]))
    with harness.loaded(program, image) as loaded:
        for more in (0, -1, 1) if dynamic else (0,):
            rows = _ROWS_OF_MAP + more
            spec = TensorSpec(dtype="uint8", shape=(rows, 64), strides=(64, 1), device=device)
            _, observed = harness.call(loaded, CallSpec(args=(spec,)))
            told = f"with {rows} rows: {observed.error!r}, {observed.encodes}"
            if more < 0:
                harness.require(isinstance(observed.error, TensorMapError) and not observed.launches, told)
                continue
            seen = [
                (one.dims, one.strides, one.box) for one in observed.encodes if isinstance(one, TiledRequest)
            ]
            good = set(seen) <= {((128, _ROWS_OF_MAP), (64,), (64, 1))} and (seen or more)
            harness.require(observed.error is None and good, told)
    if dynamic:
        _check_packed_strides(harness, device)


def _check_packed_strides(harness: Harness, device: int) -> None:
    """Require that rows of such elements which begin or end within a byte are refused."""
    tensor = TensorParam("a", dtype("uint8"), (Const(8), Const(64)))
    step, extent = Symbol("step", min=0), Symbol("extent", min=1)
    layout = {"dtype": "16U4_ALIGN8B", "shape": (Const(2), extent), "strides": (step, Const(1))}
    launch = KernelLaunch("k", (tensor.tiled((1, 64), **layout),), (Const(1),) * 3, (Const(1),) * 3)
    numbers = (ScalarParam("step", dtype("int32"), step), ScalarParam("extent", dtype("int32"), extent))
    signature = Signature((tensor, *numbers))
    program = KernelProgram("p", signature, (CODE,), (launch,))
    spec = TensorSpec(dtype="uint8", shape=(8, 64), strides=(64, 1), device=device)
    with harness.loaded(program, synthetic_image(program, Target("cuda", ARCHITECTURES[device]))) as loaded:
        for given in ((64, 64), (65, 64), (63, 64), (96, 64), (96, 63), (96, 62)):
            _, observed = harness.call(loaded, CallSpec(args=(spec, *given)))
            odd = any(one % 2 for one in given)
            good = isinstance(observed.error, TensorMapError) if odd else observed.error is None
            harness.require(
                good, f"with rows of elements of four bits, step and extent {given}: {observed.error!r}"
            )


def _check_newer(harness: Harness, newer: NewerMap, device: int) -> None:
    """Require that a map arrives if it is good on a device, and is refused if it is not."""
    try:
        scenario = newer.scenario(device)
    except TensorMapError as error:
        harness.require(newer.inner > _SPAN, f"a good map was refused: {error}")
        return
    image = synthetic_image(scenario.program, Target("cuda", ARCHITECTURES[device]))
    with harness.loaded(scenario.program, image) as loaded:
        _check_arrival(harness, newer, loaded, device)


def _check_arrival(harness: Harness, newer: NewerMap, loaded: LoadedProgram, device: int) -> None:
    """Require that a map that its description allows arrives on a device that knows its swizzle, and on no other."""
    scenario = newer.scenario(device)
    if ARCHITECTURES[device] == "sm_100a" and newer.inner <= _SPAN:
        check_call(harness, scenario, loaded, first=False)
        return
    _, observed = harness.call(loaded, scenario.call)
    lacking = isinstance(observed.error, (TensorMapError, DeviceRequirementError))
    harness.require(lacking, f"{ARCHITECTURES[device]}: raised {observed.error!r}")
    harness.require(not observed.launches, "a refused call launched")


@st.composite
def _undecided(draw: st.DrawFn, harness: Harness) -> Tour:
    """Draw a program of which a call decides the cluster, and calls with and without one of several blocks."""
    width = Symbol("k", min=1, max=8)
    x = TensorParam("x", dtype("float32"), (Const(8),))
    launch = KernelLaunch(
        "k",
        (x,),
        (width, Const(1), Const(1)),
        (Const(32), Const(1), Const(1)),
        cluster=(width, Const(1), Const(1)),
    )
    params = (x, ScalarParam("k", dtype("int32"), width))
    visits = draw(
        st.lists(st.builds(Visit, st.sampled_from((*UNLIKE, *ALIKE)), st.sampled_from((1, 2, 8))), min_size=6)
    )
    portable = "ptx" in harness.spec.accepts and draw(st.booleans())
    return Tour(KernelProgram("p", Signature(params), (CODE,), (launch,)), tuple(visits), portable)


@law(
    "Z8",
    given=_undecided,
    requires=frozenset({Capability.CLUSTER, Capability.COMPUTED_ATTRIBUTES, Capability.DYNAMIC_SHAPES}),
    ways=_UNLOADED,
    cost="toolchain",
)
def decided_clusters_of_some_devices(harness: Harness, tour: Tour) -> None:
    """A call that decides on a cluster of blocks is a DeviceRequirementError where there are none, and no other is."""
    with ExitStack() as opened:
        machine = _Machine(harness, tour, opened)
        for visit in tour.visits:
            machine.bench(visit.device).loaded.preload(visit.device)
            machine.visit(visit)


@law("Z4", given=lambda _: st.sampled_from((12000, 12040, 12080)), cost="process", ways=ONE_WAY)
def older_drivers(harness: Harness, version: int) -> None:
    """An older driver launches all that it knows; a launch attribute that is newer is a DeviceRequirementError.

    Where there is one device, threads without a context launch, and each driver call that fails is named. A process
    takes up what another one built and saved, refuses under ``python -O`` too, and ends well with a program open.
    """
    with tempfile.TemporaryDirectory(prefix="trunnion-suite-") as folder:
        saved = Path(folder) / "artifact"
        harness.built(saved_program()).save(saved)
        told = told_by_a_lone_device(harness.name, saved)
    harness.require(not told, f"where there is one device: {told}")
    told = told_by_an_older_driver(harness.name, version)
    harness.require(not told, f"on a driver of CUDA {version}: {told}")
