"""Why a program is not found in a store: which part of its key differs from what is there."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from trunnion.artifacts.fitting import PROGRAM_INPUT
from trunnion.artifacts.manifest import artifact_key

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from trunnion.artifacts.manifest import Manifest
    from trunnion.artifacts.store import ArtifactStore

__all__ = ["Difference", "Explanation", "explain_key", "program_name"]

_MOST_PLACES: Final = 12


@dataclass(frozen=True, slots=True)
class Difference:
    """One input of a key that differs."""

    name: str
    """Which."""

    here: str | None
    """What it is now; None if there is none."""

    kept: str | None
    """What it was when the other artifact was built."""

    places: tuple[str, ...] = ()
    """Where two JSON documents differ: ``"code[0].source"``; of many, the first ones."""


@dataclass(frozen=True, slots=True)
class Explanation:
    """Whether a store has an artifact, and if not, what is nearest to it."""

    key: str
    """The key that is looked for."""

    hit: bool
    """Whether it is there, and whole."""

    problem: str
    """Why it cannot be used although it is there; empty if that is not so."""

    nearest: Manifest | None
    """What is there of the same program, else of one of that name, else of any, with the fewest other inputs; None if
    it is a hit, or there is nothing."""

    differences: tuple[Difference, ...]
    """In what `nearest` differs, by name."""


def explain_key(store: ArtifactStore, inputs: Mapping[str, str]) -> Explanation:
    """Return whether a store has what has these inputs, and what it has instead. Nothing in the store is changed.

    Parameters
    ----------
    store
        The store.
    inputs
        What the key is made of: `trunnion.compilation.key_inputs`.
    """
    key = artifact_key(inputs)
    problem = store.problem(key)
    if problem == "":
        return Explanation(key, hit=True, problem="", nearest=None, differences=())
    kept = [(one, store.manifest(one.key)) for one in store.entries() if one.key != key]
    found = [
        (_likeness(inputs, manifest), one.used, manifest) for one, manifest in kept if manifest is not None
    ]
    nearest = max(found, key=lambda one: one[:2])[2] if found else None
    differences = () if nearest is None else tuple(_differences(inputs, nearest.key_inputs))
    return Explanation(key, hit=False, problem=problem or "", nearest=nearest, differences=differences)


def program_name(inputs: Mapping[str, str]) -> str:
    """Return the name of the program that a key was made of; empty if it says none, as of a long program."""
    program = _document(inputs.get(PROGRAM_INPUT, ""))
    name = program.get("name") if isinstance(program, dict) else None
    return name if isinstance(name, str) else ""


def _likeness(inputs: Mapping[str, str], manifest: Manifest) -> tuple[bool, bool, int]:
    kept = manifest.key_inputs
    same = inputs.get(PROGRAM_INPUT) == kept.get(PROGRAM_INPUT)
    name = program_name(inputs)
    named = same or (bool(name) and name == program_name(kept))
    return same, named, -sum(inputs.get(name) != kept.get(name) for name in inputs.keys() | kept.keys())


def _differences(inputs: Mapping[str, str], kept: Mapping[str, str]) -> Iterator[Difference]:
    for name in sorted(inputs.keys() | kept.keys()):
        here, there = inputs.get(name), kept.get(name)
        if here != there:
            places = _places(_document(here or ""), _document(there or ""))
            yield Difference(
                name, here, there, tuple(place for place, _ in zip(places, range(_MOST_PLACES), strict=False))
            )


def _document(text: str) -> Any:
    """Return what a JSON text says; None if it is none."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _places(here: Any, kept: Any, place: str = "") -> Iterator[str]:
    """Yield where two documents differ, down to what is no list or object; nothing if either is none."""
    if isinstance(here, dict) and isinstance(kept, dict):
        for name in sorted(here.keys() | kept.keys()):
            path = f"{place}.{name}" if place else name
            if name in here and name in kept:
                yield from _places(here[name], kept[name], path)
            else:
                yield path
    elif isinstance(here, list) and isinstance(kept, list) and len(here) == len(kept):
        for index, (one, other) in enumerate(zip(here, kept, strict=True)):
            yield from _places(one, other, f"{place}[{index}]")
    elif place and here != kept:
        yield place
