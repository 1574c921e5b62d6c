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

__all__ = ["BUDGETS", "Budget", "our_subjects"]


@dataclass(frozen=True, slots=True)
class Budget:
    """The most that (``entry`` - raw loop) / bare tvm-ffi call may be; three tensors and a scalar."""

    without_maps: float
    """With no tensor map."""

    with_maps: float
    """With three."""


BUDGETS = {"nvrtc": Budget(4.0, 5.2), "tvm_ffi": Budget(1.4, 1.7), "cutedsl": Budget(1.4, 1.7)}
"""By backend: the first launches from Python, and has it without a call helper, the others from compiled code."""

_IN_PYTHON = frozenset({"nvrtc"})
"""The backends whose launchers are Python: a call helper makes them faster."""

_OMITS = {
    "entry": "nothing: every argument is checked on every call",
    "__call__": "nothing; takes out=, stream= and device= too",
    "bind": "what it checked once, when the arguments were bound",
}


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
    )


def _prepare(stage: Stage, *, backend: str, way: str, allocating: bool, helped: bool) -> Trial:
    case = stage.case
    passed = case.names[:-1] if allocating else case.names
    if allocating and not passed:
        raise NotHereError("no tensor to take the device from")
    program = stage.program(backend, allocating=allocating, helped=helped)
    values = tuple(stage.named[name] for name in passed)
    arguments = ", ".join([*passed, "word"])
    # Without a tensor there is nothing to take the device from: it has to be named.
    options = {} if case.tensors else {"device": 0}
    if way == "bind":
        if not hasattr(program, "bind"):
            raise NotHereError("this version has no bind()")
        return _Bound(functools.partial(program.bind, *values, **options))
    named = "".join(f", {name}={value}" for name, value in options.items())
    call = program.entry if way == "entry" else program
    return PythonCall(f"call({arguments}{named})", {"call": call, **dict(zip(passed, values, strict=True))})


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
