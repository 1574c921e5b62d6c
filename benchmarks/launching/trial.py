"""`Trial`: one way to launch, ready to be called once or many times."""

from __future__ import annotations

import timeit
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

__all__ = ["NativeLoop", "PythonCall", "Trial"]


class Trial(Protocol):
    """One way to launch a case."""

    def once(self, word: int) -> Any:
        """Launch once, with that scalar, and return what the call returns."""

    def seconds(self, launches: int) -> float:
        """Launch that many times with the scalar 0 and return the host's time for all of them."""


@dataclass(frozen=True, slots=True)
class PythonCall:
    """A Python expression, timed without a function around it: its names are locals of the timing loop.

    The garbage collector stays on, as it is for a caller.
    """

    text: str
    """The expression. ``word`` stands for the scalar."""

    names: Mapping[str, Any]
    """Every other name in it."""

    scalar: Callable[[int], Any] = int
    """Makes of a number what the launcher takes for an int32."""

    _timer: timeit.Timer = field(init=False, repr=False)

    def __post_init__(self) -> None:
        given = {f"given_{name}": value for name, value in self._all(0).items()}
        setup = "\n".join(["import gc; gc.enable()", *(f"{name[6:]} = {name}" for name in given)])
        object.__setattr__(self, "_timer", timeit.Timer(self.text, setup, globals=given))

    def _all(self, word: int) -> dict[str, Any]:
        return {**self.names, "word": self.scalar(word)}

    def once(self, word: int) -> Any:
        """Evaluate the expression; see `Trial.once`."""
        return eval(self.text, self._all(word))  # noqa: S307 - the expression is written in this benchmark

    def seconds(self, launches: int) -> float:
        """Time the expression; see `Trial.seconds`."""
        return self._timer.timeit(launches)


@dataclass(frozen=True, slots=True)
class NativeLoop:
    """A loop that is compiled, and reads the clock itself."""

    loop: Callable[[int, int], float]
    """Launches (scalar, times) and returns the seconds that it took."""

    def once(self, word: int) -> None:
        """Run the loop once around; see `Trial.once`."""
        self.loop(word, 1)

    def seconds(self, launches: int) -> float:
        """Run the loop; see `Trial.seconds`."""
        return self.loop(0, launches)
