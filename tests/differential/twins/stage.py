"""Who is told of wrong calls: programs that use more or less, each loaded by some backends."""

from __future__ import annotations

import contextlib
import gc
import re
import weakref
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest
from twins.mistakes import FEATURES, GOOD, MISTAKES, UNENCODED, Mistake, program_of
from twins.outcome import notes_of

from trunnion.errors import TrunnionError
from trunnion.sim.status import Status

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from trunnion.contract.adapter import LoadedProgram
    from trunnion.testing.harness import Harness

__all__ = ["CUDA", "HOST", "KINDS", "VARIANTS", "WAYS", "refusal_of", "staged"]

WAYS = ("call", "entry", "names", "mixed", "bind")
"""The ways in; all but the first and the last say everything as people write it."""

KINDS = {
    "nvrtc": "Python",
    "acme": "Python",
    "tvm_ffi": "C++",
    "cutedsl": "C++",
    "interpreted": "interpreter",
    "cpu": "CPU",
}
"""What kind of launcher each backend's is; ``cpu`` is a C++ launcher's on the CPU."""


@dataclass(frozen=True)
class Variant:
    """One form of the program, and who launches it."""

    backends: tuple[str, ...]
    features: frozenset[str] = FEATURES
    nullable: bool = False

    def allows(self, mistake: Mistake) -> bool:
        """Whether a call of it can make a mistake."""
        return not mistake.needs or mistake.needs in self.features


CUDA = (
    Variant(("nvrtc", "tvm_ffi", "interpreted")),
    Variant(("nvrtc", "cutedsl", "interpreted"), nullable=True),
    Variant(("acme", "tvm_ffi", "interpreted"), FEATURES - {"windows"}),
)
"""Where there is a driver. The sample backend declares no windows."""

HOST = Variant(("acme", "cpu"), frozenset(), nullable=True)
"""Without tensor maps, windows and clusters: on the CPU, and beside it on a device."""

VARIANTS = (*CUDA, HOST)


def refusal_of(told: tuple[Any, ...]) -> tuple[str, str]:
    """Return what is the same in all errors of one refusal: the class, and the text without names and values."""
    text = re.sub(r"'[^']*'|\"[^\"]*\"", "'_'", told[1])
    text = re.sub(r"\b(torch\.)?(u?int|b?float|complex)\d+\w*", "T", text)
    return told[0].__name__, re.sub(r"0x[0-9a-f]+|-?\d+(\.\d+)?(e[+-]?\d+)?", "#", text)


@dataclass(frozen=True)
class Launcher:
    """One form of the program, as one backend loaded it."""

    harness: Harness
    loaded: dict[str, LoadedProgram]
    """As it is, as nothing has prepared it, and closed."""


class Stage:
    """One form of the program, loaded by its backends.

    Parameters
    ----------
    variant
        The form.
    order
        The parameters' names, in their order.
    launchers
        The program by backend.
    """

    def __init__(self, variant: Variant, order: Sequence[str], launchers: dict[str, Launcher]) -> None:
        self._variant, self._order, self._launchers = variant, order, launchers
        self.mistakes = tuple(filter(variant.allows, MISTAKES))
        self._made: dict[tuple[str, str, int], Any] = {}
        self._simulated = launchers[variant.backends[0]].harness
        self._elsewhere = self._simulated.machine.new_stream(1)
        self._captured = self._simulated.machine.new_stream(0)

    @staticmethod
    def ways(mistakes: Sequence[Mistake]) -> tuple[str, ...]:
        """Return the ways in by which mistakes can be made."""
        return WAYS[1:-1] if any(one.by_word for one in mistakes) else WAYS

    def told(self, mistakes: Sequence[Mistake], way: str) -> tuple[Any, ...]:
        """Return what a wrong call raises, through every backend: class, text, attributes, notes."""
        said = [self._told(launcher, mistakes, way) for launcher in self._launchers.values()]
        if self._variant is HOST:  # whose memory lies elsewhere
            said = [(kind, re.sub("0x[0-9a-f]+", "0x", text)) for kind, text, *_ in said]
        assert all(one == said[0] for one in said), (*map(str, mistakes), way, said)
        return said[0]

    def launched(self, way: str) -> None:
        """Make a call in which nothing is wrong, through every backend: it launches."""
        for launcher in self._launchers.values():
            machine = launcher.harness.machine
            machine.clear_trace()
            args, words = self._call(launcher.harness, {})
            machine.call(partial(_made, launcher.loaded["open"], way, (self._order, args, False), words))
            assert launcher.harness.observed_launches(), (launcher.harness.name, way)

    def _told(self, launcher: Launcher, mistakes: Sequence[Mistake], way: str) -> tuple[Any, ...]:
        by_slot = {one.slot: one for one in mistakes}
        state, planted = (by_slot[slot].value if slot in by_slot else None for slot in ("state", "driver"))
        loaded = launcher.loaded["open" if state is None else state]
        args, words = self._call(launcher.harness, by_slot)
        more = by_slot["count"].value if "count" in by_slot else 0
        launch = partial(
            _made, loaded, way, (self._order, args[:more] if more < 0 else args, more > 0), words
        )
        with contextlib.ExitStack() as stack:
            if state in ("open", "fresh"):
                stack.enter_context(launcher.harness.machine.capture(self._captured, 0))
            if planted is not None:
                status = Status.OUT_OF_MEMORY if planted == "allocate" else Status.NOT_SUPPORTED
                stack.enter_context(launcher.harness.simulator.fault(planted, status))
            told, kept = _raised(partial(launcher.harness.machine.call, launch))
        assert kept() is None, (launcher.harness.name, *map(str, mistakes), way, "keeps its own error")
        return told

    def _call(self, harness: Harness, by_slot: dict[str, Mistake]) -> tuple[list[Any], dict[str, Any]]:
        """Return a call's arguments, and its words beside them."""
        planted = by_slot.get("driver")
        good = GOOD | {"y": UNENCODED} if planted is not None and "Encode" in planted.value else GOOD
        args = [
            self._thing(harness, name, by_slot[name].value if name in by_slot else good[name])
            for name in self._order
        ]
        words = {
            slot: self._thing(harness, slot, by_slot[slot].value)
            for slot in ("out", "stream", "device")
            if slot in by_slot
        }
        if words.get("stream") == 1:
            words["stream"] = self._elsewhere
        return args, words

    def _thing(self, harness: Harness, slot: str, value: Any) -> Any:
        """Return what is passed, made once for all backends of a machine: a refused call changes none of it."""
        key = harness.machine.kind, slot, id(value)
        if key not in self._made:
            several = isinstance(value, tuple)
            made = harness.arguments(value if several else (value,))
            self._made[key] = tuple(made) if several else made[0]
        return self._made[key]


def _raised(launch: Callable[[], object]) -> tuple[tuple[Any, ...], Callable[[], object]]:
    """Return what a wrong call raises, and what says whether anybody but Python's collector still has it.

    An error that one of its own frames has in a variable keeps all that these have: the call's tensors.
    """
    was = gc.isenabled()
    gc.disable()
    try:
        launch()
    except (TrunnionError, RuntimeError) as error:
        told = type(error), str(error), dict(vars(error)), notes_of(error)
        return told, weakref.ref(error) if isinstance(error, TrunnionError) else lambda: None
    finally:
        if was:
            gc.enable()
    pytest.fail("nothing was raised")


def _made(
    loaded: LoadedProgram, way: str, given: tuple[Sequence[str], list[Any], bool], words: dict[str, Any]
) -> None:
    """Make a call in some way, with an argument too many or not."""
    names, args, surplus = given
    if way in ("names", "mixed"):
        by_position = len(names) // 2 if way == "mixed" else 0
        named = dict(zip(names[by_position:], args[by_position:], strict=False))
        loaded.entry(*args[:by_position], **named, **({"nobody": 1} if surplus else {}), **words)
        return
    args = [*args, *([1] if surplus else [])]
    if way == "entry":
        loaded.entry(*args, **words)
    elif way == "call":
        loaded.call(args, **words)
    else:
        loaded.bind(args, **words).entry()


@contextlib.contextmanager
def staged(harnesses: Sequence[Harness], order: Sequence[str]) -> Iterator[dict[Variant, Stage]]:
    """Load every form of the program, its parameters in one order, and close all of them at the end of the block.

    Parameters
    ----------
    harnesses
        Of all backends.
    order
        The parameters' names, in their order.
    """
    by_name = {harness.name if harness.machine.kind == "cuda" else "cpu": harness for harness in harnesses}
    with contextlib.ExitStack() as stack:
        stages = {}
        for variant in VARIANTS:
            program = program_of(order, variant.features, nullable=variant.nullable)
            launchers = {}
            for name in variant.backends:
                harness = by_name[name]
                artifact = harness.built(program)
                loaded = {state: harness.reopen(program, artifact) for state in ("open", "fresh", "closed")}
                for one in loaded.values():
                    stack.callback(one.close)
                loaded["closed"].close()
                loaded["open"].preload(0)
                launchers[name] = Launcher(harness, loaded)
            stages[variant] = Stage(variant, order, launchers)
        yield stages
