"""`attempt`: plugins' code is run, and whatever it raises is that plugin's failure: a value."""

from __future__ import annotations

import traceback
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeVar

from trunnion.contract.spec import Availability
from trunnion.messages import cut, type_name, visible

if TYPE_CHECKING:
    from collections.abc import Callable

    from trunnion.contract.spec import BackendSpec, CompilerSpec

__all__ = ["Failure", "PluginRuleError", "attempt", "probe"]

_T = TypeVar("_T")

_MOST_REASON: Final = 1_000
_MOST_TRACEBACK: Final = 20_000


@dataclass(frozen=True, slots=True)
class Failure:
    """What a plugin's code raised."""

    reason: str
    """The exception, in one line."""

    traceback: str
    """Where it was raised; empty if it is a rule that the plugin breaks."""


class PluginRuleError(Exception):
    """A plugin breaks a rule of the registry; `attempt` makes a `Failure` of it."""


def attempt(call: Callable[[], _T], *passing: type[BaseException]) -> _T | Failure:
    """Run a plugin's code; return what it raised as a value.

    That is so of what would end the process, too, such as `SystemExit`: a plugin has no say in that. What the user asks
    for at the keyboard is no plugin's: `KeyboardInterrupt` passes, and whatever else the caller says.
    """
    try:
        return call()
    except PluginRuleError as error:
        return Failure(str(error), "")
    except KeyboardInterrupt:
        raise
    except passing:
        raise
    except BaseException as error:  # noqa: BLE001 - foreign code may raise anything, and one broken plugin must not hurt another
        return _failure(error)


def _failure(error: BaseException) -> Failure:
    """Return what was raised, as far as that lets itself be told: its class is a plugin's, too."""
    try:
        reason = _line(error)
        told = "".join(traceback.format_exception(error))
    except KeyboardInterrupt:
        raise
    except BaseException:  # noqa: BLE001 - to tell of an error runs its own code
        reason, told = f"{type_name(error)}, which cannot be told", ""
    return Failure(visible(cut(reason, _MOST_REASON)), visible(cut(told, _MOST_TRACEBACK), lines=True))


def _line(error: BaseException) -> str:
    """Return the exception in one line: the last, unless that is one of its notes."""
    told = traceback.TracebackException(type(error), error, None)
    told.__notes__ = None
    return [*told.format_exception_only()][-1].strip()


def probe(spec: BackendSpec | CompilerSpec) -> Availability:
    """Return what a spec's probe says; one that raises, against the contract, is reported as unusable."""
    found: object = attempt(spec.probe)  # a plugin's answer: its annotation proves nothing
    if isinstance(found, Availability):
        return found
    what = found.reason if isinstance(found, Failure) else f"it returned {type_name(found)}"
    return Availability(usable=False, detail=f"its probe failed: {what}")
