"""Our launchers: every way in, of every installed backend that works here."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import trunnion
from launching.subject import NotHereError, Subject
from launching.trial import PythonCall
from trunnion.call_helper import installed_choice

if TYPE_CHECKING:
    from collections.abc import Callable

    from launching.stage import Stage
    from launching.trial import Trial

__all__ = ["BUDGETS", "COMPILED", "SEVERAL_LAUNCHES", "Budget", "Several", "our_subjects"]


@dataclass(frozen=True, slots=True)
class Budget:
    """The most that (call - raw loop) / bare tvm-ffi call may be; three tensors and a scalar."""

    without_maps: float
    """With no tensor map."""

    with_maps: float
    """With three."""


_WORDED = ("by name", "out=", "stream=", "stream= (torch)")
_BY_COMPILED = {
    "entry": Budget(0.95, 1.3),
    "__call__": Budget(1.3, 1.7),
    **dict.fromkeys(_WORDED, Budget(1.9, 2.3)),
}
_PYTHON = {
    "entry": Budget(3.2, 3.2),
    "__call__": Budget(3.6, 3.6),
    **dict.fromkeys(_WORDED, Budget(4.2, 4.2)),
}
_HELPED = {"entry": Budget(2.0, 2.0), "__call__": Budget(2.4, 2.4)}

BUDGETS = {"nvrtc": _PYTHON, "nvrtc + fastcall": _HELPED, "tvm_ffi": _BY_COMPILED, "cutedsl": _BY_COMPILED}
"""By launcher, and by way in: Python's launcher, the same with the compiled call helper, those that are compiled."""

COMPILED = ("tvm_ffi", "cutedsl")
"""The launchers that are compiled."""


@dataclass(frozen=True, slots=True)
class Several:
    """The most that a program of several launches may take, over as many raw launches."""

    called: float
    """Called."""

    bound: float
    """Bound."""


SEVERAL_LAUNCHES = Several(called=1.08, bound=1.03)
"""The budget of compiled launchers."""

_IN_PYTHON = frozenset({"nvrtc"})
"""The backends whose launchers are Python: a call helper makes them faster."""

_OMITS = {
    **dict.fromkeys(("entry", "__call__", *_WORDED), "nothing: every argument is checked on every call"),
    "bind": "what it checked once, when the arguments were bound",
}
_ALLOCATING = ("entry", "__call__", "bind")


def our_subjects() -> tuple[Subject, ...]:
    """Return a row for each way in, of each installed backend, given its output and allocating it.

    A backend whose launchers are Python has them without the call helper, and with the one that is installed.
    """
    names = [spec.name for spec in trunnion.default_registry().backends()]
    helper = installed_choice()
    rows = [(name, name, False) for name in names]
    if helper.helper is not None:
        rows += [(f"{name} + {helper.name}", name, True) for name in names if name in _IN_PYTHON]
    return tuple(
        Subject(
            f"{label} {way}{', allocating' if allocating else ''}",
            "ours",
            omits,
            functools.partial(_prepare, backend=backend, way=way, allocating=allocating, helped=helped),
            needs_gpu=False,
        )
        for label, backend, helped in sorted(rows)
        for allocating in (False, True)
        for way, omits in _OMITS.items()
        if way in _ALLOCATING or not allocating
    )


def _prepare(stage: Stage, *, backend: str, way: str, allocating: bool, helped: bool) -> Trial:
    case, given = stage.case, way == "out="
    passed = case.names[:-1] if allocating or given else case.names
    if (allocating or given) and not passed:
        raise NotHereError("no tensor to take the device from")
    program = stage.program(backend, allocating=allocating or given, helped=helped)
    values = {name: stage.named[name] for name in passed} | stage.numbers
    words = _words(stage, way)
    if way == "bind":
        return _Bound(functools.partial(program.bind, *values.values(), **words))
    arguments = [f"{name}={name}" if way == "by name" else name for name in (*values, "word")]
    text = ", ".join([*arguments, *(f"{name}=said_{name}" for name in words)])
    names = {**values, **{f"said_{name}": value for name, value in words.items()}}
    return PythonCall(f"call({text})", {"call": program.entry if way == "entry" else program, **names})


def _words(stage: Stage, way: str) -> dict[str, Any]:
    """Return what a call says beside its arguments."""
    case = stage.case
    # Without a tensor there is nothing to take the device from: it has to be named.
    words: dict[str, Any] = {} if case.tensors else {"device": 0}
    if way == "out=":
        words["out"] = stage.tensors[-1]
    if way.startswith("stream="):
        words["stream"] = stage.stream if way == "stream= (torch)" else stage.stream.cuda_stream
    return words


class _Bound:
    """A launch whose arguments are bound: the scalar too, so another scalar is another binding."""

    def __init__(self, bind: Callable[[int], Any]) -> None:
        self._bind = bind
        self._timed = PythonCall("bound()", {"bound": bind(0)})

    def once(self, word: int) -> Any:
        """Bind and launch; see `Trial.once`."""
        return self._bind(word)()

    def seconds(self, launches: int) -> float:
        """Time what is bound; see `Trial.seconds`."""
        return self._timed.seconds(launches)
