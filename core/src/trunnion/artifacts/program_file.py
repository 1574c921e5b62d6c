"""The program that an artifact was built from: a file of it that core adds, whatever the backend."""

from __future__ import annotations

from dataclasses import fields
from itertools import zip_longest
from typing import TYPE_CHECKING, Final

from trunnion.errors import CorruptArtifactError, ProgramError, shorten
from trunnion.messages import type_name
from trunnion.model.expr import Expr
from trunnion.model.expr_text import format_expr
from trunnion.model.program import KernelProgram

if TYPE_CHECKING:
    from collections.abc import Iterable

    from trunnion.artifacts.artifact import Artifact
    from trunnion.artifacts.manifest import Manifest
    from trunnion.model.params import Param, Signature
    from trunnion.model.plan import LaunchPlan

__all__ = ["PROGRAM_FILE", "check_plan", "program_of", "program_of_variants", "signature_difference"]

PROGRAM_FILE: Final = "program.json"
"""The file of an artifact that holds the program that it was built from."""


def program_of(artifact: Artifact) -> KernelProgram:
    """Return the program that an artifact was built from.

    Raises
    ------
    CorruptArtifactError
        If it holds none.
    """
    text = artifact.files.get(PROGRAM_FILE)
    if text is None:
        raise CorruptArtifactError(
            PROGRAM_FILE, "is missing from the artifact; build it again from the program"
        )
    try:
        return KernelProgram.from_json(text.decode())
    except ValueError as error:
        raise CorruptArtifactError(PROGRAM_FILE, f"is not a program: {error}") from error


def check_plan(manifest: Manifest, plan: LaunchPlan) -> None:
    """Refuse a plan that is not the one that an artifact's launcher was built from.

    Raises
    ------
    CorruptArtifactError
        If it is not, or the manifest tells of other kernels or variables.
    """
    if plan.hash != manifest.plan_hash:
        raise CorruptArtifactError(PROGRAM_FILE, "is not the program that the launcher was built from")
    if [kernel.name for kernel in manifest.kernels] != [kernel.name for kernel in plan.kernels]:
        raise CorruptArtifactError("manifest.json", "its kernels are not those of the program")
    if [one.name for one in manifest.variables] != [one.name for one in plan.variables]:
        raise CorruptArtifactError("manifest.json", "its variables are not those of the program")


def program_of_variants(name: str, programs: Iterable[KernelProgram]) -> KernelProgram:
    """Return the first of the programs that variants were built from; all of them are called alike.

    Parameters
    ----------
    name
        The name that they have in common.
    programs
        What each variant was built from, of one at least.

    Raises
    ------
    ProgramError
        If they are not called alike.
    """
    first, *others = programs
    for other in others:
        if other.signature != first.signature:
            how = signature_difference(first.signature, other.signature)
            raise ProgramError(
                f"the variants of {shorten(name)} take different parameters; give each signature a name of its own: "
                f"{how}",
                field="programs",
            )
    return first


def signature_difference(one: Signature, other: Signature) -> str:
    """Return the first thing in which two signatures differ, in words: what stands in the one, then in the other."""
    for kind, mine, theirs in (
        ("parameter", one.params, other.params),
        ("output", one.outputs, other.outputs),
    ):
        for place, (here, there) in enumerate(zip_longest(mine, theirs)):
            if here is None or there is None:
                return f"{len(mine)} {kind}s and {len(theirs)}"
            if type(here) is not type(there) or here.name != there.name:
                return f"{kind} {place} is {_shown(here)} and {_shown(there)}"
            for row in fields(here):
                values = getattr(here, row.name), getattr(there, row.name)
                if row.compare and values[0] != values[1]:
                    shown = " and ".join(map(_said, values))
                    return f"{kind} {place}, {shorten(here.name)}, has {row.name} {shown}"
    return "they check other things"


def _said(value: object) -> str:
    """Return what a field of a parameter says: extents and strides as their author wrote them."""
    extents = value if isinstance(value, tuple) and all(isinstance(one, Expr) for one in value) else None
    return str(value) if extents is None else f"({', '.join(map(format_expr, extents))})"


def _shown(param: Param) -> str:
    return f"the {type_name(param).removesuffix('Param').lower()} {shorten(param.name)}"
