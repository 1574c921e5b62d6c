"""What a backend made of a call, told so that another backend's word for it is the same."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any

from trunnion.sim.tensormap import decode
from trunnion.sim.trace import Launched, MemoryCopied, MemorySet
from trunnion.testing.delivery import locate_workspaces
from trunnion.testing.expected import Address, Expected, ExpectedMap, ExpectedStruct, ExpectedView, Refused
from trunnion.testing.observed import is_work
from trunnion.testing.provision import input_addresses, output_addresses
from trunnion.testing.variables import variable_addresses

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from trunnion.model.program import KernelProgram
    from trunnion.testing.expected import CallSignature, ExpectedLaunch
    from trunnion.testing.harness import Harness
    from trunnion.testing.observed import Observed

__all__ = ["Outcome", "notes_of", "outcome_of"]


@dataclass(frozen=True)
class Outcome:
    """One call.

    Each backend allocates for itself and loads a library of its own, so an address in either is told as the name of
    the tensor, of the workspace or of the module variable, and the bytes from its start. Everything else is as the
    driver saw it.
    """

    error: tuple[Any, ...] | None
    launches: tuple[Any, ...]
    sets: tuple[Any, ...]
    copies: tuple[Any, ...]
    outputs: tuple[Any, ...]
    workspaces: tuple[Any, ...]

    def differences(self, other: Outcome) -> list[str]:
        """Return in what two calls differ, a text for each place."""
        pairs = ((part.name, getattr(self, part.name), getattr(other, part.name)) for part in fields(self))
        return [text for name, one, two in pairs for text in _differences(name, one, two)]


def _differences(place: str, one: Any, two: Any) -> Iterator[str]:
    """Yield the differences of two values, at the innermost places that both have."""
    if one == two:
        return
    if isinstance(one, tuple) and isinstance(two, tuple) and len(one) == len(two):
        one, two = dict(enumerate(one)), dict(enumerate(two))
    if isinstance(one, dict) and isinstance(two, dict) and one.keys() == two.keys():
        for key in one:
            yield from _differences(f"{place}[{key}]", one[key], two[key])
    else:
        yield f"{place}:\n  {one}\n  {two}"


def outcome_of(
    harness: Harness,
    program: KernelProgram,
    facts: CallSignature,
    expected: Expected | Refused,
    observed: Observed,
) -> Outcome:
    """Return what a backend made of a call; ``expected`` says which parameters are addresses, and of what."""
    if observed.error is not None or isinstance(expected, Refused):
        launches = tuple(launch.kernel for launch in observed.launches)
        return Outcome(_told(observed.error), launches, (), (), (), ())
    places = {
        **locate_workspaces(expected.launches, observed.launches),
        **variable_addresses(harness, program, observed),
        **output_addresses(harness, expected, observed),
    }
    every = {**input_addresses(program, facts), **places}
    pairs = zip(expected.launches, observed.launches, strict=True)
    return Outcome(
        error=None,
        launches=tuple(_launch(want, have, places) for want, have in pairs),
        sets=tuple(_set(event, every) for event in observed.events if isinstance(event, MemorySet)),
        copies=tuple(
            _copy(event, places)
            for event in observed.events
            if observed.launches and isinstance(event, MemoryCopied) and is_work(event)
        ),
        outputs=tuple(
            (tuple(got.shape), got.stride(), got.dtype, got.device, _filled(harness, want, got))
            for want, got in zip(expected.outputs, observed.outputs, strict=True)
        ),
        workspaces=tuple(sorted((one.nbytes, one.device, one.stream) for one in observed.allocations)),
    )


def notes_of(error: BaseException) -> tuple[str, ...]:
    """Return the notes of an error."""
    return tuple(getattr(error, "__notes__", ()))


def _told(error: Exception | None) -> tuple[Any, ...] | None:
    """Return all that an error says: class, text, attributes, and the notes that a traceback shows."""
    return None if error is None else (type(error), str(error), vars(error), notes_of(error))


def _filled(harness: Harness, want: Any, got: Any) -> bytes | None:
    return None if want.fill is None else harness.contents(got)


def _launch(want: ExpectedLaunch, have: Launched, places: Mapping[Address, int]) -> dict[str, Any]:
    parameters = tuple(
        _parameter(value, data, places) for value, data in zip(want.parameters, have.parameters, strict=True)
    )
    told: dict[str, Any] = {part.name: getattr(have, part.name) for part in fields(have)}
    window = want.window
    if window is not None and window.address.base in places:
        start = places[window.address.base]
        attributes = have.attributes
        told["attributes"] = replace(attributes, window=_moved(attributes.window, start))
        told["window"] = _moved(have.window, start)
    del told["library"]  # a handle: each has its own
    return {**told, "parameters": parameters}


def _moved(window: Any, start: int) -> Any:
    return window and replace(window, address=window.address - start)


def _parameter(value: Any, data: bytes, places: Mapping[Address, int]) -> Any:
    if isinstance(value, Address):
        return _address(value, data, places)
    if isinstance(value, ExpectedView):
        strides = slice(value.stride_offset, value.stride_offset + len(value.strides))
        return (
            _address(value.address, data[:8], places),
            data[8 : 8 + len(value.extents)],
            data[strides],
            len(data),
        )
    if isinstance(value, ExpectedMap):
        request = decode(data)
        if value.address.base in places:
            return value.address.base, replace(request, address=request.address - places[value.address.base])
        return request
    if isinstance(value, ExpectedStruct):
        fields = [_parameter(one, data[offset : offset + size], places) for offset, size, one in value.fields]
        return len(data), fields
    return data


def _address(value: Address | None, data: bytes, places: Mapping[Address, int]) -> Any:
    number = int.from_bytes(data, "little")
    if value is None or value.base not in places:
        return number
    return value.base, number - places[value.base]


def _set(event: MemorySet, places: Mapping[Address, int]) -> tuple[Any, ...]:
    """Return a fill, by the nearest start of a tensor or workspace before it."""
    starts = [(start, address) for address, start in places.items() if 0 < start <= event.address]
    start, address = max(starts, key=lambda one: one[0])
    return address, replace(event, address=event.address - start)


def _copy(event: MemoryCopied, places: Mapping[Address, int]) -> tuple[Any, ...]:
    """Return a copy, each end by the name of what lies there, if that is the backend's own."""
    names = {start: address for address, start in places.items()}
    return tuple(names.get(one, one) for one in (event.source, event.target)), replace(
        event, source=0, target=0
    )
