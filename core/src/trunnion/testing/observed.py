"""What came of a call: what the driver was asked to do, and how that compares with the oracle's word."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from trunnion.errors import CorruptArtifactError, TrunnionError
from trunnion.sim.tensormap import decode
from trunnion.sim.trace import Allocated, CallRefused, Event, Launched, TensorMapEncoded
from trunnion.testing.expected import Address, ExpectedLaunch, ExpectedMap, ExpectedNan, ExpectedParameter
from trunnion.testing.rounding import is_nan

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from trunnion.sim.tensormap import TiledRequest
    from trunnion.testing.expected import Expected
    from trunnion.testing.harness import Harness

__all__ = ["Observed", "addresses", "compare_launches", "compare_maps", "observe"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Observed:
    """One call, as the driver and the caller saw it."""

    result: Any
    """What the call returned; None if it raised."""

    error: TrunnionError | None
    """What it raised, if that is one of the library's own errors."""

    given_out: list[Any] | None
    """The destinations that were given."""

    events: tuple[Event, ...]
    """What the driver was asked to do."""

    @property
    def launches(self) -> tuple[Launched, ...]:
        """The launches, in order."""
        return tuple(event for event in self.events if isinstance(event, Launched))

    @property
    def encodes(self) -> tuple[TiledRequest, ...]:
        """The tensor maps that were encoded, in order."""
        return tuple(event.request for event in self.events if isinstance(event, TensorMapEncoded))

    @property
    def allocations(self) -> tuple[Allocated, ...]:
        """The allocations, in order."""
        return tuple(event for event in self.events if isinstance(event, Allocated))

    @property
    def refusals(self) -> tuple[str, ...]:
        """What the driver refused, and why."""
        return tuple(
            f"{event.call}: {event.reason}" for event in self.events if isinstance(event, CallRefused)
        )

    @property
    def outputs(self) -> tuple[Any, ...]:
        """The returned tensors: of None none, of a tuple its members."""
        if self.result is None:
            return ()
        return self.result if isinstance(self.result, tuple) else (self.result,)


def observe(harness: Harness, launch: Callable[[], Any], *, given_out: list[Any] | None = None) -> Observed:
    """Run a call, and return what came of it.

    Parameters
    ----------
    harness
        The backend; its simulator's trace is cleared first.
    launch
        The call.
    given_out
        The destinations that it was given.
    """
    simulator = harness.simulator
    simulator.clear_trace()
    result, caught = None, None
    try:
        result = simulator.call(launch)
    except TrunnionError as error:
        caught = error
    events = harness.sabotage.trace(simulator.trace)
    return Observed(result=result, error=caught, given_out=given_out, events=events)


def addresses(
    harness: Harness, expected: Expected, named: Mapping[str, int], observed: Observed
) -> dict[str, int]:
    """Return where each tensor of a call lies: the inputs, and the outputs as they were returned.

    Raises
    ------
    LawViolation
        If another number of outputs came back.
    """
    outputs = observed.outputs
    harness.require(
        len(outputs) == len(expected.outputs), f"{len(outputs)} outputs for {len(expected.outputs)}"
    )
    returned = {want.name: got.data_ptr() for want, got in zip(expected.outputs, outputs, strict=True)}
    return {**named, **returned}


def compare_launches(
    harness: Harness,
    expected: Sequence[ExpectedLaunch],
    got: Sequence[Launched],
    where: Mapping[str, int],
    symbols: Mapping[str, str],
) -> None:
    """Compare launches with what they must be, parameter by parameter.

    Parameters
    ----------
    harness
        The backend.
    expected
        The oracle's launches.
    got
        The driver's.
    where
        The address of each tensor, by parameter.
    symbols
        Each kernel's exact name in the image, by its name in the program.

    Raises
    ------
    LawViolation
        If anything differs.
    """
    wanted = [symbols[launch.kernel] for launch in expected]
    names = [launch.kernel for launch in got]
    harness.require(wanted == names, f"the launches were {names}, expected {wanted}")
    for index, (want, have) in enumerate(zip(expected, got, strict=True)):
        for difference in _differences(want, have, where):
            harness.violation(f"launch {index}: {difference}")


def _differences(want: ExpectedLaunch, have: Launched, where: Mapping[str, int]) -> Iterator[str]:
    attributes = have.attributes
    facts = (
        ("grid", want.grid, have.grid),
        ("block", want.block, have.block),
        ("dynamic shared memory", want.dynamic_smem_bytes, have.dynamic_smem_bytes),
        ("cluster", want.cluster, attributes.cluster),
        ("cooperative", want.cooperative, bool(attributes.cooperative)),
        ("pdl", want.pdl, bool(attributes.programmatic_stream_serialization)),
        ("number of parameters", len(want.parameters), len(have.parameters)),
    )
    for what, expected, got in facts:
        if expected != got:
            yield f"{what} is {got}, expected {expected}"
    for ordinal, (value, data) in enumerate(zip(want.parameters, have.parameters, strict=False)):
        problem = _parameter_problem(value, data, where)
        if problem:
            yield f"parameter {ordinal}: {problem}"


def _parameter_problem(value: ExpectedParameter, data: bytes, where: Mapping[str, int]) -> str:
    match value:
        case ExpectedNan(dtype):
            return "" if is_nan(data, dtype) else f"{data.hex()} is no NaN of {dtype}"
        case ExpectedMap():
            try:
                have = decode(data)
            except CorruptArtifactError as error:
                return str(error)
            wanted = _resolved(value, where)
            return "" if _fields(have) == wanted else f"the map is {_fields(have)}, expected {wanted}"
        case Address(tensor, offset):
            wanted_bytes = (where[tensor] + offset).to_bytes(8, "little")
        case _:
            wanted_bytes = value
    return "" if data == wanted_bytes else f"{data.hex()}, expected {wanted_bytes.hex()}"


_Fields = tuple[object, ...]


def _resolved(value: ExpectedMap, where: Mapping[str, int]) -> _Fields:
    address = where[value.address.tensor] + value.address.offset
    layout = (value.dims, value.strides, value.box, value.element_strides)
    return (
        address,
        value.dtype,
        *layout,
        value.interleave,
        value.swizzle,
        value.l2_promotion,
        value.oob_fill,
    )


def _fields(have: TiledRequest) -> _Fields:
    layout = (have.dims, have.strides, have.box, have.element_strides)
    modes = (int(have.interleave), int(have.swizzle), int(have.l2_promotion), int(have.oob_fill))
    return (have.address, int(have.data_type), *layout, *modes)


def compare_maps(harness: Harness, expected: Expected, observed: Observed, where: Mapping[str, int]) -> None:
    """Compare the maps that a first call encoded with the distinct maps that its launches read.

    Raises
    ------
    LawViolation
        If one is missing, encoded twice, read by no launch, or encoded after its first reader.
    """
    wanted = sorted(repr(_resolved(value, where)) for value in expected.maps)
    got = sorted(repr(_fields(request)) for request in observed.encodes)
    harness.require(got == wanted, f"encoded {got}, expected {wanted}")
    encoded: set[_Fields] = set()
    launches = iter(expected.launches)
    for event in observed.events:
        if isinstance(event, TensorMapEncoded):
            encoded.add(_fields(event.request))
        elif isinstance(event, Launched):
            late = [value for value in next(launches).maps if _resolved(value, where) not in encoded]
            harness.require(not late, f"maps encoded after a launch that reads them: {late}")
