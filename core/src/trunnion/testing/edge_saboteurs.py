"""Saboteurs of what stands at an edge: narrow ones, of numbers, maps, windows, clusters and results."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from trunnion import sim
from trunnion.errors import ArgumentTypeError, DeviceRequirementError
from trunnion.model.plan import Encode, LaunchPlan, MapArgument, PlannedLaunch
from trunnion.sim.abi import DeviceAttribute, FunctionAttribute
from trunnion.sim.trace import AttributeSet, Launched
from trunnion.testing.refusal_saboteurs import of_row, unrefused
from trunnion.testing.saboteur import Changed, Saboteur, each_launch, saboteur

if TYPE_CHECKING:
    from collections.abc import Callable

    from trunnion.contract.adapter import LoadedProgram
    from trunnion.testing.machine import Told

__all__ = ["EDGE_SABOTEURS"]


# Plan and emitter ---------------------------------------------------------------------------------------------------


def _merged(ignored: str) -> Callable[[LaunchPlan], LaunchPlan]:
    """Return the change of a plan that takes maps for one which differ in one field alone."""

    def key(encode: Encode) -> Encode:
        fields = encode.fields
        if hasattr(fields, ignored):
            fields = replace(fields, **{ignored: 0})  # type: ignore[arg-type]  # a field that is an integer
        return replace(encode, index=0, readers=(0,), fields=fields)

    def merged(plan: LaunchPlan) -> LaunchPlan:
        first: dict[str, int] = {}
        for encode in plan.encodes:
            first.setdefault(repr(key(encode)), encode.index)
        kept = [first[repr(key(encode))] for encode in plan.encodes]

        def changed(launch: PlannedLaunch) -> PlannedLaunch:
            args = (
                MapArgument(kept[one.encode]) if isinstance(one, MapArgument) else one for one in launch.args
            )
            return replace(launch, args=tuple(args))

        every = tuple(range(len(plan.launches)))
        encodes = tuple(
            replace(one, readers=every) if kept.count(one.index) > 1 else one for one in plan.encodes
        )
        return replace(plan, encodes=encodes, launches=tuple(map(changed, plan.launches)))

    return merged


def _longer_on_streams(launch: PlannedLaunch) -> PlannedLaunch:
    window = launch.window
    if window is None or window.policy != "stream":
        return launch
    return replace(launch, window=replace(window, limit_bytes=window.limit_bytes + 4))


def _real_fills(plan: LaunchPlan) -> LaunchPlan:
    """Fill both parts of a complex number with its real one."""

    def half(data: bytes) -> bytes:
        return data[: len(data) // 2] * 2

    tensors = (
        replace(one, fill=half(one.fill))
        if one.fill is not None and one.dtype.name.startswith("complex")
        else one
        for one in plan.tensors
    )
    return replace(plan, tensors=tuple(tensors))


# Driver -------------------------------------------------------------------------------------------------------------


def _allows_wide(event: Told) -> bool:
    return (
        isinstance(event, AttributeSet)
        and event.attribute == FunctionAttribute.NON_PORTABLE_CLUSTER_SIZE_ALLOWED
    )


def _twice_ahead(events: tuple[Told, ...]) -> tuple[Told, ...]:
    """Allow wide clusters twice where a device is prepared before any call."""
    if any(isinstance(event, Launched) for event in events):
        return events
    return tuple(event for event in events for _ in range(1 + _allows_wide(event)))


class _AllowsAgain:
    """Allows a kernel wide clusters in each call, once a call has."""

    def __init__(self) -> None:
        self._allowed: dict[str, AttributeSet] = {}

    def loaded(self, program: LoadedProgram) -> LoadedProgram:
        """Forget them."""
        self._allowed.clear()
        return program

    def __call__(self, events: tuple[Told, ...]) -> tuple[Told, ...]:
        launched = {event.kernel for event in events if isinstance(event, Launched)}
        again = tuple(event for name, event in self._allowed.items() if name in launched)
        now = [event for event in events if isinstance(event, AttributeSet) and _allows_wide(event)]
        self._allowed |= {event.kernel: event for event in now if event.kernel in launched}
        return (*again, *events)


# Lifecycle ----------------------------------------------------------------------------------------------------------


class _EmptyResults(Changed):
    """A loaded program that returns a tuple of nothing where it has no output."""

    def call(self, *args: Any, **how: Any) -> Any:
        """Launch."""
        result = self._true.call(*args, **how)
        return () if result is None else result


class _NumbersOnNull(Changed):
    """A loaded program that knows no current stream where no tensor tells the device."""

    def call(self, args: Any, *, out: Any = None, stream: int | None = None, **how: Any) -> Any:
        """Launch."""
        if stream is None and not out and not any(hasattr(one, "data_ptr") for one in args):
            stream = 0
        return self._true.call(args, out=out, stream=stream, **how)


class _BytesAlone(Changed):
    """A loaded program that takes no buffer whose items are of several bytes."""

    def call(self, args: Any, **how: Any) -> Any:
        """Launch."""
        if any(isinstance(one, memoryview) and one.itemsize > 1 for one in args):
            raise ArgumentTypeError("", "a buffer of words", "one of bytes")
        return self._true.call(args, **how)


class _AsksForDecided:
    """Asks a device for clusters of several blocks where a call may decide on one."""

    def __init__(self) -> None:
        self._decided = False

    def emitted(self, plan: LaunchPlan) -> LaunchPlan:
        """Note whether a call decides on a cluster."""
        self._decided = any(
            one.field == "cluster" and one.exprs for launch in plan.launches for one in launch.attributes
        )
        return plan

    def loaded(self, program: LoadedProgram) -> Any:
        """Return a program that asks when it is preloaded."""
        return _Asking(program) if self._decided else program


class _Asking(Changed):
    """A loaded program that asks for clusters when it is preloaded."""

    def preload(self, device: int) -> None:
        """Prepare, or not."""
        if (simulator := sim.active()) and not simulator.device(device).attribute(
            DeviceAttribute.CLUSTER_LAUNCH
        ):
            raise DeviceRequirementError("clusters", f"device {device}, which has none", "")
        self._true.preload(device)


_ALLOWS_AGAIN, _ASKS_FOR_DECIDED = _AllowsAgain(), _AsksForDecided()


EDGE_SABOTEURS: tuple[Saboteur, ...] = (
    saboteur(
        "lossy-casts",
        "Does nothing where a cast to 16 bits with sign, or 32 without, loses.",
        "A2",
        stage="lifecycle",
        loaded=unrefused(
            lambda error: any(of_row("cast", f" fit {one} (")(error) for one in ("int16", "uint32"))
        ),
    ),
    saboteur(
        "same-bits",
        "Takes a number for equal that has the same 64 bits.",
        "A3",
        stage="lifecycle",
        loaded=unrefused(of_row("value", str(2**64 - 1))),
    ),
    saboteur(
        "empty-results", "Returns a tuple of no outputs.", "O1", stage="lifecycle", loaded=_EmptyResults
    ),
    saboteur(
        "numbers-on-null",
        "Launches on the null stream where there is no tensor.",
        "N1",
        stage="lifecycle",
        loaded=_NumbersOnNull,
    ),
    saboteur("bytes-alone", "Takes no buffer of words.", "V3", stage="lifecycle", loaded=_BytesAlone),
    saboteur(
        "too-wide",
        "Does nothing where a cluster has too many blocks.",
        "L17",
        stage="lifecycle",
        loaded=unrefused(of_row("wide-cluster")),
    ),
    saboteur(
        "absent-windows",
        "Does nothing where the tensor of a window is left out.",
        "V6",
        stage="lifecycle",
        loaded=unrefused(of_row("absent", "window")),
    ),
    saboteur(
        "asks-for-decided",
        "Asks devices for clusters that calls decide on.",
        "Z8",
        stage="lifecycle",
        emitted=_ASKS_FOR_DECIDED.emitted,
        loaded=_ASKS_FOR_DECIDED.loaded,
    ),
    saboteur(
        "merged-fills",
        "Merges maps that differ in what fills them.",
        "T1",
        stage="plan",
        plan=_merged("oob_fill"),
    ),
    saboteur(
        "merged-columns",
        "Merges maps that differ in the pixels of a column.",
        "T4",
        stage="plan",
        plan=_merged("pixels_per_column"),
    ),
    saboteur(
        "real-fills", "Fills complex numbers by real parts.", "O3", stage="emitter", emitted=_real_fills
    ),
    saboteur(
        "allowed-twice-ahead",
        "Allows wide clusters twice at first.",
        "L14",
        stage="driver",
        trace=_twice_ahead,
    ),
    saboteur(
        "allows-again",
        "Allows wide clusters in each call.",
        "L18",
        stage="driver",
        loaded=_ALLOWS_AGAIN.loaded,
        trace=_ALLOWS_AGAIN,
    ),
    saboteur(
        "long-stream-windows",
        "Lets windows that a stream holds reach an element too far.",
        "P2",
        stage="emitter",
        emitted=each_launch(_longer_on_streams),
    ),
)
"""The saboteurs."""
