"""What is installed of trunnion, and what can be: read from the metadata of distributions, never by importing one."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from trunnion.messages import nearest

if TYPE_CHECKING:
    from collections.abc import Iterable
    from importlib.metadata import Distribution

__all__ = ["PREFIX", "canonical", "installation_hint", "installed", "requirements"]

PREFIX = "trunnion-"
"""What the names of distributions begin with that bring a plugin or an importer, as a rule."""

_EVERY = "pip install 'trunnion[all]'"
_NAME = re.compile(r"\s*([A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?)")
_EXTRA = re.compile(r"""extra\s*==\s*["']([^"']+)["']""")
_SEPARATORS = re.compile(r"[-_.]+")


def canonical(name: str) -> str:
    """Return a distribution's name in the one form in which names are compared (PEP 503)."""
    return _SEPARATORS.sub("-", name).lower()


def installed() -> dict[str, Distribution]:
    """Return every distribution by its canonical name: of two of one name the one that Python finds first."""
    from importlib import metadata  # noqa: PLC0415 - takes longer to import than all of trunnion

    found: dict[str, Distribution] = {}
    for distribution in metadata.distributions():
        name = distribution.name or ""  # one whose metadata are damaged has none
        found.setdefault(canonical(name), distribution)
    return found


def requirements(distribution: Distribution) -> dict[str, frozenset[str]]:
    """Return the canonical names of what a distribution requires, each with the extras that ask for it.

    Parameters
    ----------
    distribution
        The distribution.

    Returns
    -------
    dict[str, frozenset[str]]
        No extra beside a name: it is required always.
    """
    found: dict[str, frozenset[str]] = {}
    for line in distribution.requires or ():
        name = _NAME.match(line)
        if name is not None:
            extras = frozenset(canonical(extra) for extra in _EXTRA.findall(line))
            known = found.get(canonical(name[1]))
            # What is required always needs no extra, whoever else asks for it.
            every = extras if known is None else known | extras if known and extras else frozenset[str]()
            found[canonical(name[1])] = every
    return found


def installation_hint(name: str, role: str, known: Iterable[str] = ()) -> str:
    """Return what to install for a plugin that is not there; empty if one that is there was meant.

    Parameters
    ----------
    name
        What was asked for.
    role
        What it should have been, in words.
    known
        The names of those that are there.
    """
    if nearest(name, known):
        return ""
    there = installed()
    wanted = PREFIX + canonical(name)
    if wanted in there:
        return f"{wanted} is installed and announces no {role} of that name"
    extras = _extras(there.get("trunnion"))
    meant = nearest(name, (extra for extra in extras if PREFIX + extra not in there))
    if meant:
        return f"{PREFIX}{meant} is not installed: pip install 'trunnion[{meant}]'"
    return f"for more: {_EVERY}, or the distribution that brings one, as a rule {PREFIX}<name>"


def _extras(core: Distribution | None) -> Iterable[str]:
    """Return those extras of core that install the distribution of their name."""
    needed = {} if core is None else requirements(core)
    return [
        name.removeprefix(PREFIX)
        for name, extras in needed.items()
        if name.startswith(PREFIX) and name.removeprefix(PREFIX) in extras
    ]
