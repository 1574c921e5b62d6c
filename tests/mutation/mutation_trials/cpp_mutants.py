"""Mutants of C++ files, by position in the text: outside of comments, strings, characters and the preprocessor's lines.

The files are formatted: a binary operator has a space on both sides, and a bracket of a template has none.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final

from mutation_trials.mutant import Mutant, edit
from mutation_trials.sample import Place

if TYPE_CHECKING:
    import random
    from collections.abc import Iterator, Mapping

_OPAQUE = re.compile(
    r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|(?<![0-9a-fA-F])\'(?:\\.|[^\'\\\n])+\'|^[ \t]*#(?:\\\n|[^\n])*',
    re.DOTALL | re.MULTILINE,
)
_DECLARED = re.compile(r"(?:template|static_assert|using|namespace|extern|typedef)\b[^;{]*[;{]")

_OPERATORS: Final[Mapping[str, tuple[str, tuple[str, ...]]]] = {
    " == ": ("comparison", (" != ",)),
    " != ": ("comparison", (" == ",)),
    " < ": ("comparison", (" <= ", " > ")),
    " <= ": ("comparison", (" < ", " > ")),
    " > ": ("comparison", (" >= ", " < ")),
    " >= ": ("comparison", (" > ", " < ")),
    " && ": ("connective", (" || ",)),
    " || ": ("connective", (" && ",)),
    " + ": ("arithmetic", (" - ",)),
    " - ": ("arithmetic", (" + ",)),
    " * ": ("arithmetic", (" + ", " / ")),
    " / ": ("arithmetic", (" * ",)),
    " % ": ("arithmetic", (" / ",)),
    " & ": ("arithmetic", (" | ",)),
    " | ": ("arithmetic", (" & ",)),
    " >> ": ("arithmetic", (" << ",)),
    " += ": ("arithmetic", (" -= ", " = ")),
    " -= ": ("arithmetic", (" += ", " = ")),
    " |= ": ("arithmetic", (" &= ", " = ")),
    " &= ": ("arithmetic", (" |= ", " = ")),
}
"""What stands between two operands, its family, and what may stand there instead."""

_BETWEEN = re.compile("|".join(re.escape(one) for one in sorted(_OPERATORS, key=len, reverse=True)))
_SHIFT = re.compile(r"(?<=[0-9a-z)]) << (?=\d|\w+(?:\)|;))")
_NUMBER = re.compile(r"(?<![\w.'])(?:0x[0-9a-fA-F]+|\d+)(?=[uUlL]*\b)(?![\w.']*[.'p])")
_TRUTH = re.compile(r"\b(?:true|false)\b")
_NOT = re.compile(r"(?<=[ (])!(?=[\w(:])")
_CONDITION = re.compile(r"\b(?:if|while) \(")
_STATEMENT = re.compile(
    r"^[ \t]+(?:[\w:.\->\[\]*]+\([^;{}]*\)|[\w.\->\[\]*]+ (?:[-+*/|&^]|<<|>>)?= [^;{}]*|(?:\+\+|--)[\w.\->\[\]]+);",
    re.MULTILINE,
)
_NO_STATEMENT = re.compile(r"\s*(?:return|break|continue|delete|case|else|if|for|while|goto|throw)\b")
_HEAD = re.compile(r"^\w[^\n]*", re.MULTILINE)
_TEXT = re.compile(r'<< (?:"|\()|(?:text|got|expected|message|what) << |\bText\b')
"""What a statement has that writes the text of an error."""


@dataclass(frozen=True, slots=True)
class _Spot:
    """One place, and what may stand there instead."""

    start: int
    end: int
    family: str
    others: tuple[str, ...]


def visible(text: str) -> str:
    """Return a text of the same length, with blanks where nothing is mutated: comments, strings, declarations."""

    def blank(match: re.Match[str]) -> str:
        return re.sub(r"[^\n]", " ", match[0])

    return _DECLARED.sub(blank, _OPAQUE.sub(blank, text))


def places(path: str, text: str) -> Iterator[Place]:
    """Yield the places of a file where something can be mutated.

    Left out is what writes the text of an error: statements that have ``<<`` before a string, or name a `Text`, and
    functions whose name begins with ``describe``.

    Parameters
    ----------
    path
        Relative to the repository.
    text
        The file's text.
    """
    seen = visible(text)
    for spot in _spots(seen):
        if _TEXT.search(_statement(text, seen, spot.start)) or _in_description(text, spot.start):
            continue
        line = text.count("\n", 0, spot.start) + 1
        where = line, spot.start - text.rfind("\n", 0, spot.start)
        yield Place(path=path, family=spot.family, where=where, make=partial(_made, path, text, spot))


def _made(path: str, text: str, spot: _Spot, generator: random.Random) -> Mutant:
    other = generator.choice(spot.others)
    mutated = text[: spot.start] + other + text[spot.end :]
    operator = f"{spot.family}: {other.strip() or 'left out'}"[:40]
    return edit(path, text, mutated, operator=operator, family=spot.family)


def _spots(seen: str) -> Iterator[_Spot]:
    for match in _BETWEEN.finditer(seen):
        family, others = _OPERATORS[match[0]]
        yield _Spot(match.start(), match.end(), family, others)
    for match in _SHIFT.finditer(seen):
        yield _Spot(match.start(), match.end(), "arithmetic", (" >> ",))
    for match in _NUMBER.finditer(seen):
        value = int(match[0], 0)
        others = tuple(str(one) for one in (value - 1, value + 1) if one >= 0)
        yield _Spot(match.start(), match.end(), "number", others)
    for match in _TRUTH.finditer(seen):
        yield _Spot(match.start(), match.end(), "constant", ("false" if match[0] == "true" else "true",))
    for match in _NOT.finditer(seen):
        yield _Spot(match.start(), match.end(), "negation", ("",))
    for match in _CONDITION.finditer(seen):
        end = _closing(seen, match.end() - 1)
        yield _Spot(match.end(), end, "condition", ("false", "true"))
    for match in _STATEMENT.finditer(seen):
        start = match.end() - len(match[0].lstrip())
        if not _NO_STATEMENT.match(match[0]) and seen[: match.start()].rstrip()[-1:] in (
            "{",
            "}",
            ";",
            ")",
            ":",
        ):
            yield _Spot(start, match.end(), "statement", (";",))


def _closing(seen: str, start: int) -> int:
    """Return where the bracket is closed that is opened at a place."""
    depth = 0
    for index in range(start, len(seen)):
        depth += {"(": 1, ")": -1}.get(seen[index], 0)
        if not depth:
            return index
    raise ValueError("a bracket is never closed")


def _statement(text: str, seen: str, position: int) -> str:
    """Return the statement around a place, with its strings."""
    first = max(seen.rfind(mark, 0, position) for mark in ";{}") + 1
    ends = [end for end in (seen.find(mark, position) for mark in ";{}") if end >= 0]
    return text[first : min(ends, default=len(text))]


def _in_description(text: str, position: int) -> bool:
    """Whether a place lies in a function that describes something."""
    heads = list(_HEAD.finditer(text, 0, position))
    return bool(heads) and "describe_" in heads[-1][0]
