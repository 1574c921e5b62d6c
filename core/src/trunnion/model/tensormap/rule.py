"""What a rule about tensor maps is: a sentence, where it comes from, where it holds, and how to judge it."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, TypeVar

from trunnion.model.tensormap.fields import MapFields

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

__all__ = [
    "EVERYWHERE",
    "Architectures",
    "H200Answer",
    "Origin",
    "Rule",
    "innermost_first",
    "outermost_first",
    "outside",
]

_F_contra = TypeVar("_F_contra", bound=MapFields, contravariant=True)


class Origin(enum.Enum):
    """Where a rule comes from."""

    DOCUMENTED = "documented"
    """CUDA Driver API, "Tensor Map Object Managment"."""

    MEASURED = "measured"
    """The documentation is silent; a driver refuses (H200, driver 580, CUDA 13.0)."""

    OURS = "ours"
    """Nobody refuses, but such a map cannot be meant."""


class H200Answer(enum.Enum):
    """What the driver of an H200 says to a request that breaks one rule alone."""

    REFUSES = "refuses"
    """It refuses."""

    ACCEPTS = "accepts"
    """It accepts; the rule's `Rule.reason` says why we do not."""

    UNSEEN = "not to be seen"
    """It cannot be asked: other rules refuse all such requests there."""


@dataclass(frozen=True, slots=True)
class Architectures:
    """Some compute capabilities."""

    majors: range | None = None
    """Their major numbers; None: every one."""

    def __contains__(self, capability: object) -> bool:
        """Whether a compute capability is one of them; an unknown one (None) is only of all."""
        if self.majors is None:
            return True
        return isinstance(capability, tuple) and capability[0] in self.majors

    def __str__(self) -> str:
        if self.majors is None:
            return "all"
        first, end = self.majors.start, self.majors.stop
        return f"{first}.0 to below {end}.0" if first else f"below {end}.0"


EVERYWHERE = Architectures()
"""Every compute capability."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule(Generic[_F_contra]):
    """One constraint."""

    text: str
    """The constraint, as a sentence without a full stop."""

    violations: Callable[[_F_contra], Iterator[str]]
    """Yields what is wrong; nothing if the rule holds or cannot be judged yet."""

    origin: Origin = Origin.DOCUMENTED
    """Where it comes from."""

    architectures: Architectures = EVERYWHERE
    """Where it holds. A measured rule holds where it was measured."""

    h200: H200Answer = H200Answer.REFUSES
    """What the driver of an H200 says."""

    reason: str = ""
    """Why we refuse what that driver accepts."""


def outermost_first(name: str, values: Sequence[object], index: int) -> str:
    """Return how an author writes one of some values, which lie in the driver's order: from the outermost on."""
    return f"{name}[{len(values) - 1 - index}] (outermost first)"


def innermost_first(name: str, index: int) -> str:
    """Return how the driver calls one of some values for which an author has no name."""
    return f"{name}[{index}] (innermost first)"


def outside(name: str, values: Sequence[int], low: int, high: int) -> Iterator[str]:
    """Yield the values that lie outside a range.

    Parameters
    ----------
    name
        What an author calls them.
    values
        The values, in the driver's order.
    low
        The least allowed.
    high
        The greatest allowed.
    """
    for index, value in enumerate(values):
        if not low <= value <= high:
            yield f"{outermost_first(name, values, index)} is {value}"
