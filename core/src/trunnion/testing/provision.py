"""How the memory that a call provides compares with the oracle's word: outputs, workspaces, and what they hold."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

from trunnion.model.params import TensorParam
from trunnion.sim.trace import Allocated, Launched, MemorySet, PersistingLinesReset, Synchronized
from trunnion.testing.delivery import is_number
from trunnion.testing.expected import Address, TensorFacts
from trunnion.testing.machine import USED, Computed, MemorySeen
from trunnion.testing.observed import Observed, is_work
from trunnion.testing.reference_arguments import bytes_per_element
from trunnion.testing.rounding import SIZES

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from trunnion.model.program import KernelProgram
    from trunnion.testing.expected import CallSignature, Expected, ExpectedOutput
    from trunnion.testing.harness import Harness
    from trunnion.testing.machine import Told

__all__ = [
    "compare_allocations",
    "compare_contents",
    "compare_operations",
    "compare_waits",
    "compare_workspaces",
    "input_addresses",
    "output_addresses",
    "places_set",
]

_LEGACY, _PER_THREAD = (0, 1), 2  # the driver's own streams


def input_addresses(program: KernelProgram, facts: CallSignature) -> dict[Address, int]:
    """Return the address of each input tensor that is there.

    Parameters
    ----------
    program
        What was called.
    facts
        With what.
    """
    return {
        Address(param.name): given.address
        for param, given in zip(program.signature.params, facts.args, strict=True)
        if isinstance(param, TensorParam) and isinstance(given, TensorFacts)
    }


def output_addresses(harness: Harness, expected: Expected, observed: Observed) -> dict[Address, int]:
    """Return where each output lies, as it was returned.

    Raises
    ------
    LawViolation
        If another number of outputs came back.
    """
    outputs = observed.outputs
    harness.require(
        len(outputs) == len(expected.outputs), f"{len(outputs)} outputs for {len(expected.outputs)}"
    )
    where = {Address(want.name): got.data_ptr() for want, got in zip(expected.outputs, outputs, strict=True)}
    for want in expected.outputs:
        address = where[Address(want.name)]
        harness.require(address % want.alignment == 0, f"output {want.name!a} lies at {address:#x}")
    for want, got in zip(expected.outputs, outputs, strict=True):
        harness.require(got.is_contiguous(), f"output {want.name!a} has the strides {tuple(got.stride())}")
    return where


def _output_bytes(output: ExpectedOutput) -> int:
    count = bytes_per_element(output.dtype)
    for extent in output.shape:
        count *= extent
    return count


# Workspaces -------------------------------------------------------------------------------------------------------


def compare_workspaces(
    harness: Harness,
    expected: Expected,
    facts: CallSignature,
    observed: Observed,
    where: Mapping[Address, int],
) -> None:
    """Require that workspaces and outputs lie in memory of this call, each apart, and that no other was allocated.

    Parameters
    ----------
    harness
        The backend.
    expected
        The oracle's word.
    facts
        The call.
    observed
        What came of it.
    where
        The address of each tensor and workspace.

    Raises
    ------
    LawViolation
        If one is too small, not aligned, or shares memory; or if more was allocated than is needed.
    """
    real = observed.allocations
    wanted = [one for one in expected.workspaces if one.nbytes]
    outputs = 0
    if observed.given_out is None:
        outputs = sum(1 for output in expected.outputs if _output_bytes(output))
    harness.require(
        len(real) <= outputs + len(wanted) and (wanted or len(real) == outputs),
        f"{len(real)} allocations for {outputs} outputs and {len(wanted)} workspaces",
    )
    _compare_room(harness, expected, observed)
    for one in expected.workspaces:
        start = where.get(Address(one.name, 0, workspace=True), 0)
        harness.require(one.nbytes or not start, f"workspace {one.name!a} of no bytes lies at {start:#x}")
    for output in expected.outputs if observed.given_out is None else ():
        start, nbytes = where[Address(output.name)], _output_bytes(output)
        held = any(x.address <= start and start + nbytes <= x.address + x.nbytes for x in real)
        harness.require(held or not nbytes, f"output {output.name!a} has no {nbytes} bytes of this call")
    taken = list(_taken(expected, facts, where))
    for one in wanted:
        address = where.get(Address(one.name, 0, workspace=True))
        if address is None:
            harness.violation(f"workspace {one.name!a} is given to no launch")
        harness.require(address % one.alignment == 0, f"workspace {one.name!a} lies at {address:#x}")
        whole = [x for x in real if x.address <= address and address + one.nbytes <= x.address + x.nbytes]
        harness.require(
            whole, f"workspace {one.name!a} has no {one.nbytes} bytes of this call at {address:#x}"
        )
        harness.require(
            all(x.device == expected.device for x in whole), f"workspace {one.name!a} lies on another device"
        )
        taken.append((f"workspace {one.name!a}", address, address + one.nbytes))
    for one_range, other in itertools.combinations(taken, 2):
        apart = one_range[2] <= other[1] or other[2] <= one_range[1]
        harness.require(
            apart or "workspace" not in one_range[0] + other[0], f"{one_range[0]} and {other[0]} share memory"
        )


def _compare_room(harness: Harness, expected: Expected, observed: Observed) -> None:
    """Require that a call takes the bytes that it needs, and what their alignment takes.

    A GPU's allocator rounds up: only machines that do not are asked.
    """
    if harness.machine.tier == "gpu":
        return
    outputs = expected.outputs if observed.given_out is None else ()
    needed = [(_output_bytes(one), one.alignment) for one in outputs]
    needed += [(one.nbytes, one.alignment) for one in expected.workspaces]
    most = sum(nbytes + alignment for nbytes, alignment in needed if nbytes)
    took = sum(event.nbytes for event in observed.allocations)
    harness.require(took <= most, f"{took} bytes were allocated, {most} with their alignment are enough")


def _taken(
    expected: Expected, facts: CallSignature, where: Mapping[Address, int]
) -> Iterator[tuple[str, int, int]]:
    """Yield the ranges of a call's tensors."""
    for index, given in enumerate(facts.args):
        if isinstance(given, TensorFacts) and not given.is_empty:
            yield (
                f"argument {index}",
                given.address,
                given.address + (given.last + 1) * bytes_per_element(given.dtype),
            )
    for output in expected.outputs:
        start = where[Address(output.name)]
        yield f"output {output.name!a}", start, start + _output_bytes(output)


# Streams ----------------------------------------------------------------------------------------------------------


def compare_allocations(harness: Harness, observed: Observed, stream: int) -> None:
    """Require that a call's memory was allocated where what its last owner launched is over before the call's stream.

    That is the stream itself. The legacy stream has two handles, and tensor libraries know one of them. They do not
    know the per-thread stream, but memory of the legacy stream may serve it: both wait for each other. Another thread's
    stream does not, though, and may be given the memory next, so the call then waits for all that it launched.

    Parameters
    ----------
    harness
        The backend.
    observed
        What came of the call.
    stream
        The ``stream=`` of the call.

    Raises
    ------
    LawViolation
        If memory was allocated elsewhere, or the call did not wait.
    """
    under = {event.stream for event in observed.allocations}
    good = {stream, *(_LEGACY if stream in (*_LEGACY, _PER_THREAD) else ())}
    harness.require(under <= good, f"allocated under {under}, expected {stream:#x}")
    if stream == _PER_THREAD and under - {stream}:
        ends = (event for event in observed.events if is_work(event) or isinstance(event, Synchronized))
        last = list(ends)[-1:]
        harness.require(
            not last or (isinstance(last[0], Synchronized) and last[0].stream == stream),
            "memory of the legacy stream may go to another thread before stream 2 is done with it",
        )


def compare_waits(harness: Harness, observed: Observed) -> None:
    """Require that a call does not wait for what it launched: what the caller does next is done meanwhile.

    It is asked where no other thread does anything, which may wait on its own.
    Two waits must be: for what memory of the legacy stream serves, see `compare_allocations`; and before the lines of a
    window are taken out of the cache.

    Parameters
    ----------
    harness
        The backend.
    observed
        What came of the call.

    Raises
    ------
    LawViolation
        If it waits.
    """
    events = observed.events
    if harness.machine.tier != "sim" or any(isinstance(event, PersistingLinesReset) for event in events):
        return
    behind = itertools.dropwhile(lambda event: not is_work(event), events)
    waits = [
        event
        for event in behind
        if isinstance(event, Synchronized) and not (event.stream == _PER_THREAD and observed.allocations)
    ]
    harness.require(not waits, f"a call waits for its own work: {waits}")


def compare_operations(harness: Harness, observed: Observed) -> None:
    """Require that a call leaves a tensor's elements to its kernels: the tensor library neither reads nor writes any.

    It would launch kernels of its own or wait for the device, be it for an error's words, and neither is captured.

    Parameters
    ----------
    harness
        The backend.
    observed
        What came of the call.

    Raises
    ------
    LawViolation
        If it did.
    """
    done = [event.operation for event in observed.events if isinstance(event, Computed)]
    harness.require(not done, f"a call has the tensor library read or write elements, expected none: {done}")


# Contents ---------------------------------------------------------------------------------------------------------


def compare_contents(
    harness: Harness,
    expected: Expected,
    observed: Observed,
    where: Mapping[Address, int],
    stream: int | None = None,
) -> None:
    """Require that filled outputs and zeroed workspaces were set before the first launch, on its stream.

    Parameters
    ----------
    harness
        The backend.
    expected
        The oracle's word.
    observed
        What came of the call.
    where
        The address of each tensor and workspace.
    stream
        The handle of the stream that the call was given; None: the launches' own.

    Raises
    ------
    LawViolation
        If a byte differs, or memory was set twice, late, elsewhere or without need.
    """
    before = list(itertools.takewhile(lambda event: not isinstance(event, Launched), observed.events))
    sets = [event for event in observed.events if isinstance(event, MemorySet)]
    late = [event for event in sets if event not in before] + _changed(before, observed.events[len(before) :])
    harness.require(not late, f"memory was set after a launch: {late}")
    streams = {event.stream for event in observed.launches} | ({stream} if stream is not None else set())
    for event in sets:
        harness.require(
            event.device == expected.device and (not streams or event.stream in streams),
            f"memory was set on stream {event.stream:#x} of device {event.device}, the launches are on {streams}",
        )
    ranges = []
    for output in expected.outputs:
        start, nbytes = where[Address(output.name)], _output_bytes(output)
        if output.fill is not None and nbytes:
            data = _set_bytes(harness, before, (f"output {output.name!a}", start, nbytes))
            size = SIZES[output.dtype]
            good = is_number(output.fill, data[:size]) and data == data[:size] * (nbytes // size)
            harness.require(good, f"output {output.name!a} holds {data[:64].hex()}, expected {output.fill!r}")
            ranges.append((start, nbytes))
    for one in expected.workspaces:
        start = where.get(Address(one.name, 0, workspace=True), 0)
        if one.zeroed and one.nbytes:
            data = _set_bytes(harness, before, (f"workspace {one.name!a}", start, one.nbytes))
            harness.require(not any(data), f"workspace {one.name!a} holds {data[:64].hex()}, expected zeros")
            ranges.append((start, one.nbytes))
    stray: list[object] = [
        event for event in sets if event.count and not any(_within(event, each) for each in ranges)
    ]
    stray += [place for seen in _last_seen(before).values() for place in _written(seen, ranges)]
    harness.require(not stray, f"memory was set that need not be: {stray}")


def places_set(events: Sequence[Told]) -> frozenset[int]:
    """Return where memory was set: the first byte of each piece.

    Parameters
    ----------
    events
        What the machine told.
    """
    sets = {event.address for event in events if isinstance(event, MemorySet) and event.count}
    seen = (event for event in events if isinstance(event, MemorySeen))
    return frozenset(sets.union(*(_written(each, ()) for each in seen)))


def _last_seen(events: Sequence[Told]) -> dict[int, MemorySeen]:
    """Return what each piece of memory held in the end."""
    return {event.address: event for event in events if isinstance(event, MemorySeen)}


def _written(seen: MemorySeen, ranges: Sequence[tuple[int, int]]) -> list[int]:
    """Return where memory outside of some ranges was written to: the first byte of the piece that was seen."""
    data = bytearray(seen.data)
    for start, nbytes in ranges:
        first, last = max(start - seen.address, 0), min(start + nbytes - seen.address, len(data))
        if first < last:
            data[first:last] = bytes((USED,)) * (last - first)
    written = len(data.lstrip(bytes((USED,))))
    return [seen.address + len(data) - written] if written else []


def _changed(before: Sequence[Told], after: Sequence[Told]) -> list[MemorySeen]:
    """Return the memory that held something else in the end than when the first kernel began: none of them writes."""
    first, last = _last_seen(before), _last_seen(after)
    return [seen for address, seen in first.items() if last.get(address, seen) != seen]


def _rows(event: MemorySet) -> Iterator[tuple[int, bytes]]:
    data = (event.value % (1 << 8 * event.itemsize)).to_bytes(event.itemsize, "little") * event.count
    for row in range(event.rows):
        yield event.address + row * event.pitch, data


def _within(event: MemorySet, memory: tuple[int, int]) -> bool:
    start, nbytes = memory
    last = event.address + (event.rows - 1) * event.pitch + event.count * event.itemsize
    return start <= event.address and last <= start + nbytes


def _set_bytes(harness: Harness, events: Sequence[Told], memory: tuple[str, int, int]) -> bytes:
    """Return what memory holds after it was set; every byte must have been, once it was allocated."""
    what, start, nbytes = memory
    data, known = bytearray(nbytes), bytearray(nbytes)
    for event in events:
        if isinstance(event, Allocated) and event.address <= start < event.address + event.nbytes:
            known = bytearray(nbytes)
        if isinstance(event, MemorySeen):
            rows = [(event.address, event.data)]
        elif isinstance(event, MemorySet):
            rows = list(_rows(event))
        else:
            continue
        for address, row in rows:
            first, last = max(address, start), min(address + len(row), start + nbytes)
            if first < last:
                data[first - start : last - start] = row[first - address : last - address]
                known[first - start : last - start] = b"\1" * (last - first)
    harness.require(all(known), f"{known.count(0)} of the {nbytes} bytes of {what} were not set")
    return bytes(data)
