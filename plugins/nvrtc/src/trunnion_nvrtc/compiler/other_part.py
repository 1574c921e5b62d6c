"""What is said of a kernel or a variable that is looked for in one part of the code, and may lie in another."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trunnion.errors import shorten

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from trunnion_nvrtc.compiler.request import Part

__all__ = ["other_part_hints", "part_texts"]


def part_texts(part: Part) -> tuple[str, ...]:
    """Return the texts of a part: its source, unless that is finished code of another kind, and its headers."""
    source = part.code.source
    held = tuple(text for _, text in part.code.includes)
    return (source, *held) if isinstance(source, str) else held


def other_part_hints(
    names: Iterable[str],
    part: Part,
    parts: Sequence[Part],
    *,
    kind: str,
    seen: Callable[[str], Iterable[str]],
) -> list[str]:
    """Return a hint for each name that was looked for in vain: where it is seen, and how a program says so.

    Parameters
    ----------
    names
        The names, as the program spells them.
    part
        Where they were looked for.
    parts
        All of the program's parts; of a program of one part there is nothing to say.
    kind
        What they are: ``"launch"`` or ``"variable"``, by the builder's word.
    seen
        Returns the bare names that a text defines.
    """
    others = [one for one in parts if one is not part]
    hints = []
    for name in names if others else ():
        bare = name.partition("<")[0].rpartition("::")[2].strip()
        found = [one for one in others if bare in _bare_names(one, seen)]
        where = " and ".join(f"{one.field}, {shorten(one.code.name)}" for one in found)
        looked = f"it was looked for in {part.field}, {shorten(part.code.name)}"
        if found:
            hints.append(f"hint: {shorten(name)} is seen in {where}; {looked}: say {kind}(..., code=...)")
        else:
            hints.append(
                f"hint: {looked}; if {shorten(name)} is in another of the {len(parts)} parts, say {kind}(..., code=...)"
            )
    return hints


def _bare_names(part: Part, seen: Callable[[str], Iterable[str]]) -> set[str]:
    return {name.partition("<")[0] for text in part_texts(part) for name in seen(text)}
