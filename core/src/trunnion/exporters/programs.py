"""What an exporter asks of a bundle: that variants of a program are called alike, and need what the index says."""

from __future__ import annotations

from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING, Final

from trunnion.artifacts.program_file import program_of, program_of_variants
from trunnion.bundles.conditions import conditions_of
from trunnion.errors import ArgumentValueError, ArtifactError, CorruptArtifactError, shorten
from trunnion.messages import listed

if TYPE_CHECKING:
    from trunnion.artifacts.artifact import Artifact
    from trunnion.bundles.bundle import Bundle
    from trunnion.bundles.conditions import Condition
    from trunnion.bundles.index import Variant
    from trunnion.model.program import KernelProgram

__all__ = ["bundled_programs", "own_conditions", "processor_of"]

_MACHINES: Final = ("aarch64", "x86_64")


def bundled_programs(bundle: Bundle) -> dict[str, KernelProgram]:
    """Return each program of a bundle, by name; its variants are called alike.

    Parameters
    ----------
    bundle
        The bundle.

    Raises
    ------
    ArgumentValueError
        If there is none.
    ProgramError
        If they are not.
    ArtifactError, CorruptArtifactError
        If a part cannot be read.
    """
    if not bundle.index.programs:
        raise ArgumentValueError("bundle", "a bundle of no programs", "one that has a program to export")
    return {
        name: program_of_variants(name, (program_of(artifact) for _, _, artifact in variants))
        for name, variants in groupby(bundle.artifacts(), itemgetter(0))
    }


def own_conditions(variant: Variant, artifact: Artifact) -> tuple[Condition, ...]:
    """Return what an artifact needs where it is loaded: what its own files say, and not what the index does.

    Raises
    ------
    CorruptArtifactError
        If the index leaves something of it out.
    """
    own = conditions_of(artifact)
    lost = [f"{one.fact} {one.rule} {one.value}" for one in own if one not in variant.conditions]
    if lost:
        raise CorruptArtifactError(
            "the index", f"lacks conditions of artifact {variant.digest[:12]}: {listed(lost)}"
        )
    return own


def processor_of(program: str, conditions: tuple[Condition, ...]) -> str:
    """Return the processor that the launcher of a program is for; empty: it is Python, for any.

    Raises
    ------
    ArtifactError
        If it is one for which there is no place, or there are several.
    """
    machines = [one.value for one in conditions if one.fact == "host.machine"]
    if not machines:
        return ""
    if len(machines) > 1 or machines[0] not in _MACHINES:
        raise ArtifactError(
            f"got a launcher of {shorten(program)} for a processor {listed(machines)}, expected "
            f"{' or '.join(_MACHINES)}: for others there is no place in what is exported"
        )
    return machines[0]
