"""What is drawn: a matter of the seed alone, and told in few words."""

from __future__ import annotations

import contextlib
import re
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from hypothesis.strategies import SearchStrategy

__all__ = ["Drawn", "drawn_by_seed_alone", "drawn_from", "for_examples"]

_LONG = re.compile(r"(.)\1{80,}")
_MOST_TEXT = 12_000
_READ, _NONE, _CHOSEN = "_get_local_constants", "Constants", "CONSTANTS_CACHE"


@contextlib.contextmanager
def drawn_by_seed_alone() -> Iterator[None]:
    """Let Hypothesis draw, in the block, the same examples for the same seed in every process.

    Of its own it now and then draws a constant that it read in the text of a module that is imported, so what it draws
    depends on which modules that are, and on when it first looked; on whatever ran before, that is. Its own list of
    troublesome constants stays. Versions that read no modules are left as they are.
    """
    from hypothesis.internal.conjecture import providers  # noqa: PLC0415 - only a run of the suite needs it

    if not all(hasattr(providers, name) for name in (_READ, _NONE, _CHOSEN)):
        yield
        return
    changes: dict[str, Any] = {_READ: getattr(providers, _NONE), _CHOSEN: {}}
    with patch.multiple(providers, **changes):
        yield


class Drawn:
    """What was drawn, with a text of bearable length: names may have ten thousand characters."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def __repr__(self) -> str:
        text = _LONG.sub(lambda match: match[0][:20] + "..." + match[0][-20:], repr(self.value))
        return text if len(text) < _MOST_TEXT else f"{text[:_MOST_TEXT]}... ({len(text)} characters)"


def drawn_from(strategy: SearchStrategy[Any]) -> SearchStrategy[Drawn]:
    """Return a strategy of the same values, each as a `Drawn`."""
    from hypothesis import strategies as st  # noqa: PLC0415 - only a run of the suite needs it

    @st.composite
    def drawn(draw: st.DrawFn) -> Drawn:
        return Drawn(draw(strategy))

    return drawn()


def for_examples(
    strategy: SearchStrategy[Any], count: int, body: Callable[[Any], object], *, seed: int = 0
) -> None:
    """Run a body on examples, the same in every run; none is made smaller when it fails.

    It is for bodies of which each costs a run of a compiler.

    Parameters
    ----------
    strategy
        Of the examples.
    count
        How many.
    body
        Checks one.
    seed
        What the examples follow from.
    """
    import hypothesis  # noqa: PLC0415 - only a run of the suite needs it

    @hypothesis.seed(seed)
    @hypothesis.settings(
        max_examples=count,
        database=None,
        deadline=None,
        phases=(hypothesis.Phase.generate,),
        suppress_health_check=tuple(hypothesis.HealthCheck),
    )
    @hypothesis.given(drawn_from(strategy))
    def check(example: Drawn) -> None:
        body(example.value)

    with drawn_by_seed_alone():
        check()
