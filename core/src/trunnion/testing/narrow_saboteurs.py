"""Saboteurs that are wrong where one law alone looks: each in one situation, and right in all others."""

from __future__ import annotations

import itertools
import math
import os
import random
import threading
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar, Final
from weakref import WeakKeyDictionary

from trunnion import sim
from trunnion.contract.adapter import BoundLaunch
from trunnion.errors import (
    ArgumentError,
    ArgumentValueError,
    CaptureError,
    DeviceRequirementError,
    LifecycleError,
    TensorMapError,
)
from trunnion.model.expr import Const
from trunnion.sim.abi import DeviceAttribute
from trunnion.sim.trace import Launched
from trunnion.testing.refusal_saboteurs import of_row, unrefused
from trunnion.testing.saboteur import Changed, Saboteur, in_trace, saboteur

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from trunnion.artifacts.artifact import Artifact
    from trunnion.contract.adapter import LoadedProgram
    from trunnion.contract.compiler import DeviceImage
    from trunnion.contract.source import GeneratedSource
    from trunnion.model.plan import LaunchPlan
    from trunnion.sim.state import DriverState

__all__ = ["NARROW_SABOTEURS"]

_PER_THREAD: Final = 2  # CU_STREAM_PER_THREAD


def _is_tensor(value: object) -> bool:
    return hasattr(value, "data_ptr")


def _state() -> DriverState | None:
    """Return the simulated driver's state, where one is."""
    simulator = sim.active()
    return None if simulator is None else simulator.state


def _captured() -> set[str]:
    """Return the streams that are being captured, as the simulated driver tells them."""
    state = _state()
    return set() if state is None else {one for one in state.captures.standing if one.startswith("0x")}


def _otherwise(true: BoundLaunch, launch: Callable[[], Any]) -> BoundLaunch:
    return BoundLaunch(launch, name=true.name, device=true.device, stream=true.stream)


# Source -------------------------------------------------------------------------------------------------------------


class _Unbuilt(Changed):
    """A wrapper that adds a line to each text from which nothing was built yet."""

    built: ClassVar[set[int]] = set()
    """The texts from which something was, by their hashes."""

    def wrap(self, plan: LaunchPlan, *target: str) -> GeneratedSource:
        """Return a source."""
        source: GeneratedSource = self._true.wrap(plan, *target)
        known = hash(source.text) in self.built
        return source if known else replace(source, text=f"{source.text}{_line(source)}\n")


class _Building(Changed):
    """An adapter that builds from a text without that line."""

    def build(self, source: GeneratedSource, image: DeviceImage, staging: Path) -> Artifact:
        """Build."""
        text = source.text.removesuffix(f"{_line(source)}\n")
        _Unbuilt.built.add(hash(text))
        built: Artifact = self._true.build(replace(source, text=text), image, staging)
        return built


def _line(source: GeneratedSource) -> str:
    return f"{'#' if source.language == 'python' else '//'} {os.getpid()}"


# Histories ----------------------------------------------------------------------------------------------------------


class _AsOften(Changed):
    """A loaded program that keeps a number which it was passed often, beside as many as few programs take."""

    _often, _many = 4, 12

    def __init__(self, true: LoadedProgram) -> None:
        super().__init__(true)
        self._last: tuple[Any, ...] = ()
        self._times = 0

    def call(self, args: Any, **how: Any) -> Any:
        """Launch."""
        args = tuple(args)
        now = tuple(id(one) if _is_tensor(one) else one for one in args)  # no memory is kept
        last, times = self._last, self._times
        unlike = [
            place
            for place, both in enumerate(zip(now, last, strict=False))
            if type(both[0]) is not type(both[1]) or both[0] != both[1]
        ]
        same = len(now) == len(last) and not unlike
        self._last, self._times = now, times + 1 if same else 1
        if len(now) == len(last) and len(unlike) == 1 and times >= self._often:
            (place,) = unlike
            if self._is_one_of_many(args, place) and type(last[place]) is type(args[place]):
                args = (*args[:place], last[place], *args[place + 1 :])
        return self._true.call(args, **how)

    def _is_one_of_many(self, args: tuple[Any, ...], place: int) -> bool:
        many = sum(not _is_tensor(one) for one in args) >= self._many
        return many and type(args[place]) in (int, float, complex)


class _Forks:
    """How often the process has forked since somebody asked first."""

    def __init__(self) -> None:
        self._counted = False
        self._count = itertools.count()
        self._now = 0

    def now(self) -> int:
        """Return how often."""
        if not self._counted:
            self._counted = True
            os.register_at_fork(after_in_parent=self._forked)
        return self._now

    def _forked(self) -> None:
        self._now = next(self._count) + 1


_FORKS = _Forks()


class _LoadedBeforeForks(Changed):
    """A loaded program whose bound calls do nothing in a process that has forked since it was loaded."""

    def __init__(self, true: LoadedProgram) -> None:
        super().__init__(true)
        self._then = _FORKS.now()

    def bind(self, *args: Any, **how: Any) -> BoundLaunch:
        """Bind."""
        true = self._true.bind(*args, **how)
        return _otherwise(true, lambda: true() if _FORKS.now() == self._then else None)


class _TwentyInAThread(Changed):
    """A loaded program that passes over the twentieth call of a thread, but for the one that loaded it."""

    _most = 20

    def __init__(self, true: LoadedProgram) -> None:
        super().__init__(true)
        self._own = threading.current_thread()
        self._calls: WeakKeyDictionary[threading.Thread, int] = WeakKeyDictionary()

    def call(self, args: Any, **how: Any) -> Any:
        """Launch, or not."""
        thread = threading.current_thread()
        if thread is not self._own:
            self._calls[thread] = self._calls.get(thread, 0) + 1
            if self._calls[thread] == self._most:
                return None
        return self._true.call(args, **how)


class _AlikeIn32Bits(Changed):
    """A loaded program that takes a tensor for the one before if both lie alike, but for what 32 bits do not hold."""

    def __init__(self, true: LoadedProgram) -> None:
        super().__init__(true)
        self._last: dict[int, int] = {}

    def call(self, args: Any, **how: Any) -> Any:
        """Launch."""
        return self._true.call([*itertools.starmap(self._seen, enumerate(args))], **how)

    def _seen(self, place: int, value: Any) -> Any:
        if not _is_tensor(value):
            return value
        now = value.data_ptr()
        last = self._last.setdefault(place, now)
        before = value.storage_offset() - (now - last) // value.itemsize
        if last != now and last % 2**32 == now % 2**32 and before >= 0:
            return value.as_strided(value.shape, value.stride(), before)
        self._last[place] = now
        return value


class _MapsOfNothing:
    """Launches with the maps of the call before where a call is given nothing."""

    def __init__(self) -> None:
        self.nothing = False
        self._maps: dict[tuple[str, int, int], bytes] = {}

    def loaded(self, program: LoadedProgram) -> Any:
        """Forget the maps of other programs."""
        self.nothing = False
        self._maps.clear()
        return _NotesNothing(program)

    def __call__(self, event: Launched) -> Launched:
        if not self.nothing or any(len(one) != _MAP_BYTES for one in event.parameters):
            return event
        kept = (
            self._maps.setdefault((event.kernel, event.device, ordinal), data)
            for ordinal, data in enumerate(event.parameters)
        )
        return replace(event, parameters=tuple(kept))


_MAP_BYTES: Final = 128


class _NotesNothing(Changed):
    """A loaded program that notes whether a call is given nothing."""

    def call(self, args: Any, **how: Any) -> Any:
        """Launch."""
        _MAPS_OF_NOTHING.nothing = not args
        return self._true.call(args, **how)

    def bind(self, *args: Any, **how: Any) -> BoundLaunch:
        """Bind."""
        _MAPS_OF_NOTHING.nothing = False
        bound: BoundLaunch = self._true.bind(*args, **how)
        return bound


_MAPS_OF_NOTHING = _MapsOfNothing()


# Streams and captures -----------------------------------------------------------------------------------------------


class _UnboundInItsCapture(Changed):
    """A loaded program whose bound calls cannot be captured on the thread's own stream."""

    def bind(self, *args: Any, **how: Any) -> BoundLaunch:
        """Bind."""
        true = self._true.bind(*args, **how)

        def launch() -> Any:
            if true.stream == _PER_THREAD and _captured():
                raise CaptureError("a call that was bound")
            return true()

        return _otherwise(true, launch)


class _BegunBesideACapture(Changed):
    """A loaded program that launches never if its first call came while another stream was captured."""

    _beside: bool | None = None

    def call(self, args: Any, *, stream: int | None = None, **how: Any) -> Any:
        """Launch, or not."""
        if self._beside is None:
            captured = _captured()
            self._beside = stream is not None and bool(captured) and f"{stream:#x}" not in captured
        if self._beside:
            raise CaptureError("the first call")
        return self._true.call(args, stream=stream, **how)


class _OneForNumbers(Changed):
    """A loaded program that launches numbers on the null stream where each device has another one that is current."""

    def call(self, args: Any, *, out: Any = None, stream: int | None = None, **how: Any) -> Any:
        """Launch."""
        state = _state()
        if stream is None and state is not None and not out and not any(map(_is_tensor, args)):
            current = [state.current_stream(device) for device in (0, 1)]
            if all(current) and not _captured():
                stream = 0
        return self._true.call(args, out=out, stream=stream, **how)


class _NamedOnce(Changed):
    """A loaded program that takes a stream for the current one where numbers alone come on its object once more."""

    _named = False

    @property
    def entry(self) -> Callable[..., Any]:
        """Launch."""

        def entry(*args: Any, stream: Any = None, **named: Any) -> Any:
            handle = getattr(stream, "cuda_stream", 0)
            if not hasattr(stream, "__cuda_stream__") and handle and not any(map(_is_tensor, args)):
                stream, self._named = None if self._named else stream, True
            return self._true.entry(*args, stream=stream, **named)

        return entry


class _Random(Changed):
    """A loaded program whose first call takes one of the process's random numbers."""

    _called = False

    def call(self, args: Any, **how: Any) -> Any:
        """Launch."""
        if not self._called:
            self._called = True
            random.random()  # noqa: S311 - no secret
        return self._true.call(args, **how)


# What is refused, or is not -----------------------------------------------------------------------------------------


class _OddlyEmpty(Changed):
    """A loaded program that refuses a lone tensor without elements of which neighbours would lie far apart."""

    _far = 64

    def call(self, args: Any, **how: Any) -> Any:
        """Launch, or not."""
        if len(args) == 1 and _is_tensor(args[0]):
            (tensor,) = args
            if tensor.dim() > 1 and not tensor.numel() and tensor.stride(-1) >= self._far:
                raise ArgumentValueError("", f"a stride of {tensor.stride(-1)}", "1")
        return self._true.call(args, **how)


class _NotTheGreatest(Changed):
    """A loaded program that lacks a device for the greatest grid, where nothing is passed."""

    _much = 1 << 60

    def call(self, args: Any, **how: Any) -> Any:
        """Launch."""
        result = self._true.call(args, **how)
        simulator = sim.active()
        if not args and simulator is not None:
            launched = (one for one in simulator.trace[-1:] if isinstance(one, Launched))
            if any(math.prod(one.grid) > self._much for one in launched):
                raise DeviceRequirementError("a smaller grid", "a grid", "")
        return result


class _EightBlocks(Changed):
    """A loaded program that does nothing where a device has no clusters, and a call asks for eight blocks."""

    def call(self, args: Any, **how: Any) -> Any:
        """Launch, or not."""
        try:
            return self._true.call(args, **how)
        except DeviceRequirementError:
            if [one for one in args if not _is_tensor(one)] != [8]:
                raise


class _LastDestinations(Changed):
    """A loaded program that takes a destination which was the last one, though it is negated or conjugated there."""

    def __init__(self, true: LoadedProgram) -> None:
        super().__init__(true)
        self._last: set[int] = set()

    def call(self, args: Any, *, out: Any = None, **how: Any) -> Any:
        """Launch, or not."""
        written = [one for one in out or () if _is_tensor(one)]
        lazy = [one for one in written if one.is_neg() or one.is_conj()]
        if lazy and all(one.data_ptr() in self._last for one in lazy):
            return out[0] if len(out) == 1 else tuple(out)
        result = self._true.call(args, out=out, **how)
        self._last = {one.data_ptr() for one in written}
        return result


class _AlignedForTheLast(Changed):
    """A loaded program that takes a destination for aligned where the argument of the call before was good."""

    def __init__(self, true: LoadedProgram) -> None:
        super().__init__(true)
        self._last: set[int] = set()

    def call(self, args: Any, *, out: Any = None, **how: Any) -> Any:
        """Launch, or not."""
        last, self._last = self._last, {one.data_ptr() for one in args if _is_tensor(one)}
        try:
            return self._true.call(args, out=out, **how)
        except ArgumentError as error:
            if not of_row("alignment")(error) or not out or not {one.data_ptr() for one in out} <= last:
                raise
            return out[0] if len(out) == 1 else tuple(out)


class _EmptyBoxAlone(Changed):
    """A loaded program that does nothing where a box of pixels is empty, and else all is right of a lone tensor."""

    def call(self, args: Any, **how: Any) -> Any:
        """Launch, or not."""
        try:
            return self._true.call(args, **how)
        except TensorMapError as error:
            if len(args) != 1 or len(error.broken) != 1 or "box" not in error.broken[0]:
                raise


class _OpenWhilePrepared(Changed):
    """A loaded program that cannot be closed while another thread prepares a device."""

    _preparing: threading.Thread | None = None

    def preload(self, device: int) -> None:
        """Prepare."""
        self._preparing = threading.current_thread()
        try:
            self._true.preload(device)
        finally:
            self._preparing = None

    def close(self) -> None:
        """Unload, or not."""
        if self._preparing not in (None, threading.current_thread()):
            raise LifecycleError("a device is being prepared")
        self._true.close()


class _AsksForNever:
    """Asks devices for clusters that no call has."""

    def __init__(self) -> None:
        self._never = False

    def emitted(self, plan: LaunchPlan) -> LaunchPlan:
        """Note whether a launch with a cluster never happens."""
        self._never = any(
            bool(one.attributes) and (one.when == Const(0) or Const(0) in one.grid) for one in plan.launches
        )
        return plan

    def loaded(self, program: LoadedProgram) -> Any:
        """Return a program that asks when it is preloaded."""
        return _Asking(program) if self._never else program


class _Asking(Changed):
    """A loaded program that asks for clusters when it is preloaded."""

    def preload(self, device: int) -> None:
        """Prepare, or not."""
        simulator = sim.active()
        if simulator and not simulator.device(device).attribute(DeviceAttribute.CLUSTER_LAUNCH):
            raise DeviceRequirementError("clusters", f"device {device}, which has none", "")
        self._true.preload(device)


_ASKS_FOR_NEVER = _AsksForNever()


def _lifecycle(name: str, sentence: str, law: str, loaded: Callable[[LoadedProgram], Any]) -> Saboteur:
    return saboteur(name, sentence, law, stage="lifecycle", loaded=loaded)


NARROW_SABOTEURS: tuple[Saboteur, ...] = (
    saboteur(
        "unbuilt-line",
        "Writes the number of its process into a source until it builds.",
        "S2",
        stage="emitter",
        wrapper=_Unbuilt,
        adapter=_Building,
    ),
    _lifecycle("as-often", "Keeps one of many numbers.", "Y5", _AsOften),
    _lifecycle("loaded-before-forks", "Forgets bound calls where a process forks.", "Y2", _LoadedBeforeForks),
    _lifecycle("twenty-in-a-thread", "Passes over a thread's twentieth call.", "H3", _TwentyInAThread),
    _lifecycle("alike-in-32-bits", "Tells addresses apart by 32 bits.", "X9", _AlikeIn32Bits),
    saboteur(
        "maps-of-nothing",
        "Keeps tensor maps where nothing is passed.",
        "T7",
        stage="driver",
        loaded=_MAPS_OF_NOTHING.loaded,
        trace=in_trace(_MAPS_OF_NOTHING, Launched),
    ),
    _lifecycle(
        "unbound-in-its-capture", "Captures no bound call on a thread's stream.", "G1", _UnboundInItsCapture
    ),
    _lifecycle("begun-beside", "Launches never if it began beside a capture.", "G4", _BegunBesideACapture),
    _lifecycle("one-for-numbers", "Launches numbers on the null stream.", "N1", _OneForNumbers),
    _lifecycle("named-once", "Knows an object of a stream once.", "N2", _NamedOnce),
    _lifecycle("random-number", "Takes a random number.", "N3", _Random),
    _lifecycle("oddly-empty", "Refuses what is empty for how it lies.", "L3", _OddlyEmpty),
    _lifecycle(
        "wide-grids",
        "Does nothing where a grid has the right low 32 bits.",
        "X1",
        unrefused(of_row("grid", str(2**32 + 1))),
    ),
    _lifecycle(
        "endless-outputs", "Does nothing where an output has no size.", "X5", unrefused(of_row("size"))
    ),
    _lifecycle(
        "rows-beyond",
        "Does nothing where a map begins too late.",
        "T6",
        unrefused(of_row("map-outside", "1152")),
    ),
    _lifecycle("not-the-greatest", "Refuses the greatest grid.", "Z1", _NotTheGreatest),
    saboteur(
        "asks-for-never",
        "Asks devices for clusters that no call has.",
        "Z3",
        stage="lifecycle",
        emitted=_ASKS_FOR_NEVER.emitted,
        loaded=_ASKS_FOR_NEVER.loaded,
    ),
    _lifecycle("last-destinations", "Takes the last memory, negated.", "O2", _LastDestinations),
    _lifecycle("aligned-for-the-last", "Writes where the last argument lies.", "X4", _AlignedForTheLast),
    _lifecycle("empty-box-alone", "Does nothing where nothing but a box is wrong.", "T5", _EmptyBoxAlone),
    _lifecycle("open-while-prepared", "Refuses to close beside a preload.", "Y4", _OpenWhilePrepared),
    _lifecycle("eight-blocks", "Does nothing where eight blocks are lacking.", "Z8", _EightBlocks),
)
"""The saboteurs."""
