"""Which variables a piece of a launcher's text sets and reads.

The text is this package's own: one statement a line, targets in front of ``=``, names in string literals only where a
user's text stands. So a line tells what a parser would, at a small part of its time; the tests compare the two.
"""

from __future__ import annotations

import re

__all__ = ["assigned", "assigned_conditionally", "read"]

_TARGETS = re.compile(r"^( *)((?:[a-z]\w*(?:, | = ))*[a-z]\w*,?) = (?!=)", re.MULTILINE)
_LITERAL = re.compile(r"'(?:[^'\\\n]|\\.)*'|\"(?:[^\"\\\n]|\\.)*\"")
_NAME = re.compile(r"(?<![.\w])[A-Za-z_]\w*\b(?!=[^=])")
_SEPARATOR = re.compile("[ ,=]+")


def assigned(text: str) -> list[str]:
    """Return the variables that a text sets, sorted."""
    return sorted({name for match in _TARGETS.finditer(text) for name in _split(match.group(2))})


def assigned_conditionally(text: str) -> list[str]:
    """Return the variables that a text sets only inside of ``if`` blocks that stand on their own, sorted."""
    always: set[str] = set()
    sometimes: set[str] = set()
    within = False
    for line in text.splitlines():
        if not line.startswith(" "):
            within = line.startswith(("if ", "elif ", "else:"))
        match = _TARGETS.match(line)
        if match:
            names = _split(match.group(2))
            if within and line.startswith(" "):
                sometimes.update(name for name in names if name not in always)
            else:
                always.update(names)
    return sorted(sometimes)


def read(text: str) -> set[str]:
    """Return the variables that a text may read: every name outside of literals that is no attribute or keyword."""
    return set(_NAME.findall(_LITERAL.sub("''", text)))


def _split(targets: str) -> list[str]:
    return [name for name in _SEPARATOR.split(targets) if name]
