"""A mutant: one edit of one file, and what it does to the file's text."""

from __future__ import annotations

import dataclasses
import difflib
import hashlib
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Mutant:
    """One edit of one file of the repository."""

    path: str
    """Relative to the repository, with forward slashes."""

    digest: str
    """Of the file's text before: the edit fits no other."""

    operator: str
    """Which operator made it."""

    family: str
    """What the operator is one of, such as ``"comparison"``."""

    start: int
    """Where the edit begins, in characters."""

    end: int
    """Where what it replaces ends."""

    text: str
    """What is there instead."""

    line: int
    """The line in which it begins, from 1."""

    before: str
    """That line, or those lines, before: with `after`, what a person says of the mutant is found by."""

    after: str
    """The same after."""

    @property
    def id(self) -> str:
        """A digest of all of it."""
        return hashlib.sha256(repr(dataclasses.astuple(self)).encode()).hexdigest()[:12]

    @property
    def is_cpp(self) -> bool:
        """Whether it is one of the C++ runtime."""
        return not self.path.endswith(".py")

    def applied(self, text: str) -> str:
        """Return the file's text with the edit.

        Raises
        ------
        ValueError
            If the file is not what it was.
        """
        if digest(text) != self.digest:
            raise ValueError(f"{self.path} is not what it was when its mutants were drawn: draw them anew")
        return text[: self.start] + self.text + text[self.end :]

    def diff(self) -> str:
        """Return the edit, for people."""
        return "\n".join([f"{self.path}:{self.line}", *_marked("-", self.before), *_marked("+", self.after)])

    def document(self) -> dict[str, Any]:
        """Return the mutant as values of JSON."""
        return dataclasses.asdict(self)


def _marked(mark: str, lines: str) -> list[str]:
    return [f"{mark} {line}".rstrip() for line in lines.split("\n")]


def digest(text: str) -> str:
    """Return what identifies a file's text."""
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def edit(path: str, text: str, mutated: str, *, operator: str, family: str) -> Mutant:
    """Return the mutant that makes one text of another.

    Parameters
    ----------
    path
        `Mutant.path`.
    text
        The file's text.
    mutated
        Another one.
    operator
        `Mutant.operator`.
    family
        `Mutant.family`.
    """
    start = _same(text, mutated)
    rest, other = text[start:], mutated[start:]
    same = _same(rest[::-1], other[::-1])
    before, after = _changed_lines(text, mutated)
    return Mutant(
        path=path,
        digest=digest(text),
        operator=operator,
        family=family,
        start=start,
        end=len(text) - same,
        text=other[: len(other) - same],
        line=text.count("\n", 0, start) + 1,
        before=before,
        after=after,
    )


def _same(text: str, other: str) -> int:
    """Return how many characters two texts begin with alike."""
    pairs = enumerate(zip(text, other, strict=False))
    return next((index for index, (one, two) in pairs if one != two), min(len(text), len(other)))


def _changed_lines(text: str, mutated: str) -> tuple[str, str]:
    """Return the lines that differ, of both texts, without the indentation that they share."""
    old, new = text.splitlines(), mutated.splitlines()
    blocks = difflib.SequenceMatcher(None, old, new, autojunk=False).get_opcodes()
    changed = [block for block in blocks if block[0] != "equal"]
    first, last = changed[0], changed[-1]
    lines = old[first[1] : last[2]], new[first[3] : last[4]]
    indent = min(
        (len(line) - len(line.lstrip()) for some in lines for line in some if line.strip()), default=0
    )
    before, after = ("\n".join(line[indent:] for line in some) for some in lines)
    return before, after
