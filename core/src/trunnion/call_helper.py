"""Find the installed call helper, and have it read torch's tensors. What is wrong with it is said, and hurts nobody."""

from __future__ import annotations

import functools
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from trunnion.attempts import Failure, attempt
from trunnion.contract.call_helper import CALL_HELPER_VERSION
from trunnion.distributions import announced, name_and_version
from trunnion.messages import describe, shorten

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from importlib.metadata import EntryPoint

    from trunnion.contract.call_helper import CallHelper

__all__ = [
    "GROUP",
    "NONE",
    "VARIABLE",
    "Choice",
    "HelpedRuntime",
    "choose",
    "installed_choice",
    "installed_helper",
    "no_helper",
]

GROUP: Final = "trunnion.call_helper"
"""The group of entry points; each names a `trunnion.contract.call_helper.CallHelper`."""

VARIABLE: Final = "TRUNNION_CALL_HELPER"
"""The environment variable that names the helper to use, by its entry point; read once, at the first launch."""

NONE: Final = "none"
"""Its value for: no helper at all."""


@dataclass(frozen=True, slots=True)
class Choice:
    """Which call helper is used, or why none is."""

    helper: CallHelper | None
    """The helper; None: none."""

    name: str
    """Its entry point's name; empty if there is none to speak of."""

    distribution: str
    """Name and version of what installed it."""

    reason: str
    """Why it is used, or is not."""

    broken: bool = False
    """Whether there is one that should be used, and cannot be."""

    advice: str = "mend, update or uninstall it"
    """What to do if it is broken."""


def choose(points: Iterable[EntryPoint], wanted: str = "") -> Choice:
    """Load the call helper that is to be used.

    Parameters
    ----------
    points
        The entry points of `GROUP`.
    wanted
        The value of `VARIABLE`; empty: the one that is installed.
    """
    found = sorted(points, key=lambda point: point.name)
    names = ", ".join(f"{point.name} ({_owner(point)})" for point in found) or "none is installed"
    if wanted == NONE:
        return Choice(None, "", "", f"{VARIABLE} is {NONE}")
    fitting = [point for point in found if wanted in ("", point.name)]
    if wanted and not fitting:
        reason = f"{VARIABLE} is {shorten(wanted)}, and there is: {names}"
        known = (
            f"set it to {' or '.join(point.name for point in found)}"
            if found
            else "install what brings that helper"
        )
        return Choice(None, wanted, "", reason, broken=True, advice=f"unset {VARIABLE}, or {known}")
    if not fitting:
        return Choice(None, "", "", names)
    if len(fitting) > 1:
        advice = f"set {VARIABLE} to one's name, or uninstall the others"
        return Choice(None, "", "", f"there are several: {names}", broken=True, advice=advice)
    (point,) = fitting
    loaded: Any = attempt(point.load)
    refusal: Any = loaded if isinstance(loaded, Failure) else attempt(lambda: _refusal(loaded))
    refusal = refusal.reason if isinstance(refusal, Failure) else refusal
    if refusal:
        return Choice(None, point.name, _owner(point), f"it cannot be used: {refusal}", broken=True)
    reason = f"{VARIABLE} names it" if wanted else "it is installed"
    return Choice(loaded, point.name, _owner(point), reason)


def _owner(point: EntryPoint) -> str:
    return point.value if point.dist is None else " ".join(name_and_version(point.dist)).strip() or "unknown"


def _refusal(helper: Any) -> str:
    """Return why an object is no helper; empty if it is one."""
    version = getattr(helper, "contract_version", None)
    if type(version) is not int or version != CALL_HELPER_VERSION:
        return f"its contract_version is {describe(version)}, expected {CALL_HELPER_VERSION}"
    missing = [name for name in ("tensor_reader", "caller") if not callable(getattr(helper, name, None))]
    return f"it has no function {' and no function '.join(missing)}" if missing else ""


@functools.cache
def installed_choice() -> Choice:
    """Return the choice for this process; made once."""
    return choose(announced(GROUP), os.environ.get(VARIABLE, ""))


def installed_helper() -> CallHelper | None:
    """Return the call helper of this process, if there is one that works."""
    return installed_choice().helper


def no_helper() -> None:
    """Return no call helper, in the place of `installed_helper`."""


class HelpedRuntime:
    """The part of a `Runtime` that a call helper has, for torch's tensors.

    Parameters
    ----------
    find_helper
        Returns the call helper that launchers are to use, or None; called when one is first wanted.
    """

    def __init__(self, find_helper: Callable[[], CallHelper | None] = installed_helper) -> None:
        self._find_helper = find_helper

    def caller(
        self, function: int, addresses: tuple[int, int, int, int], kept: object
    ) -> Callable[[], int] | None:
        """Return the call helper's caller; see `Runtime.caller`."""
        helper = self._find_helper()
        if helper is None:
            return None
        made: Any = attempt(lambda: helper.caller(function, addresses, kept))
        return made if callable(made) else None  # a `Failure` cannot be called

    def _reader(
        self, exchange: int, tensor_type: Any, tensors: tuple[Any, ...]
    ) -> Callable[..., tuple[int, ...] | None] | None:
        """Return the call helper's reader of tensors; see `Runtime.reader`.

        Parameters
        ----------
        exchange
            The address of the ``DLPackExchangeAPI`` of `tensor_type`; 0: it has none.
        tensor_type
            The class of every tensor.
        tensors
            Tensors that a launcher has checked.
        """
        helper = self._find_helper()
        if helper is None or not exchange:
            return None
        # The exchange API shows a lazily negated or conjugated tensor as if it were none. By its private _neg_view
        # torch negates tensors of any type.
        lazy: dict[bool, tuple[Callable[[Any], object], ...]] = {
            True: (tensor_type.is_neg, tensor_type.is_conj),
            False: (tensor_type.is_neg,),
        }
        questions = tuple(lazy[tensor.dtype.is_complex] for tensor in tensors)
        made: Any = attempt(lambda: helper.tensor_reader(exchange, tensor_type, tensors, questions))
        return made if callable(made) else None  # a `Failure` cannot be called
