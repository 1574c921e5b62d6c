"""Examples that are the same in every run, and told in few words when one of them fails."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import hypothesis
from hypothesis import strategies as st

from trunnion.testing.draws import drawn_by_seed_alone

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["for_examples"]

_MOST_TEXT = 4000


class _Example:
    """What was drawn: a program may have names of ten thousand characters, and hypothesis warns of long texts."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def __repr__(self) -> str:
        return repr(self.value)[:_MOST_TEXT]


def for_examples(strategy: st.SearchStrategy[Any], count: int, body: Callable[[Any], None]) -> None:
    """Run a body on examples; none is made smaller when it fails, since each costs a run of the C++ compiler.

    Parameters
    ----------
    strategy
        Of the examples.
    count
        How many.
    body
        Checks one.
    """

    @hypothesis.settings(
        max_examples=count,
        derandomize=True,
        database=None,
        deadline=None,
        phases=(hypothesis.Phase.generate,),
        suppress_health_check=tuple(hypothesis.HealthCheck),
    )
    @hypothesis.given(st.builds(_Example, strategy))
    def check(example: _Example) -> None:
        body(example.value)

    with drawn_by_seed_alone():
        check()
