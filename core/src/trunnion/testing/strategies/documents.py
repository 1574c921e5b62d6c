"""Random JSON documents with one thing wrong, of programs and of whatever else is written as JSON."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from hypothesis import strategies as st

from trunnion.testing.strategies.programs import programs

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["changed_documents", "json_programs"]

_VALUES: tuple[object, ...] = (
    None,
    True,
    -1,
    2**70,
    1.5,
    float("inf"),
    "",
    "n +",
    "((((",
    [],
    {},
    [None],
    {"x": 1},
    "\ud800",
)


def json_programs() -> st.SearchStrategy[str]:
    """Draw the text of a program that was changed, as `changed_documents` does.

    Most such texts are no programs. Those that still are must be read like any other.
    """
    return changed_documents(programs().map(lambda program: program.to_json()))


@st.composite
def changed_documents(draw: st.DrawFn, texts: st.SearchStrategy[str]) -> str:
    """Draw a JSON text in which one value was replaced, dropped or added, or that was cut off.

    Parameters
    ----------
    draw
        Hypothesis' own.
    texts
        The texts before that: objects with members.
    """
    text = draw(texts)
    if draw(st.integers(0, 9)) == 0:
        return text[: draw(st.integers(0, len(text) - 1))]
    document = json.loads(text)
    places = list(_places(document))
    holder, key = places[draw(st.integers(0, len(places) - 1))]
    change = draw(st.sampled_from(("replace", "drop", "add")))
    if change == "drop":
        del holder[key]
    elif change == "add" and isinstance(holder, dict):
        holder[draw(st.sampled_from(("extra", "Name", "", "__class__")))] = draw(st.sampled_from(_VALUES))
    else:
        holder[key] = draw(st.sampled_from(_VALUES))
    return json.dumps(document)


def _places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Yield every container of a document with each of its keys."""
    if isinstance(value, dict):
        items = list(value.items())
    elif isinstance(value, list):
        items = list(enumerate(value))
    else:
        return
    for key, member in items:
        yield value, key
        yield from _places(member)
