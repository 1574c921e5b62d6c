"""Write bundles: an index, and beside it one file for each architecture."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from trunnion.arguments import expect, file_path
from trunnion.artifacts.artifact import Artifact
from trunnion.built_program import BUNDLE_SUFFIX
from trunnion.bundles.conditions import conditions_of
from trunnion.bundles.index import Index, Variant
from trunnion.bundles.parts import write_part
from trunnion.compiled import CompiledProgram
from trunnion.errors import ArgumentTypeError, ArgumentValueError, ArtifactError, shorten
from trunnion.plain import is_a, sequence
from trunnion.storage.refusals import advice, said
from trunnion.storage.scratch import temporary_folder
from trunnion.wording import type_name

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from os import PathLike
    from pathlib import Path

__all__ = ["write_bundle"]

_MOST_VARIANTS: Final = 1 << 16
_STEM: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.+-]{0,127}")
_ARCH: Final = re.compile(r"(\d+)([a-z]?)$")
_MODE: Final = 0o644  # never writable by others, whatever the umask: who opens it refuses that


def write_bundle(
    path: str | PathLike[str],
    programs: Mapping[str, Artifact | CompiledProgram | Iterable[Artifact | CompiledProgram]],
) -> Index:
    """Write programs that were built into a bundle, which `trunnion.load` opens; equal programs give equal bytes.

    Of several variants of a program that fit a device the one is preferred that was made for less: a cubin comes before
    PTX, one of ``sm_90a`` before one of ``sm_90``; among equals the one that was given first.

    Parameters
    ----------
    path
        The index: a name in ``.trn``. The parts are written beside it: ``gemm.sm_90a.trn`` beside ``gemm.trn``. What is
        there under these names is replaced, the index last.
    programs
        The variants of each program, by the name that it is to have: one or several, built for other targets or by
        other backends.

    Returns
    -------
    Index
        What was written.

    Raises
    ------
    ArgumentValueError
        If the path does not end in ``.trn``, or is no plain name.
    ArgumentTypeError
        If a program is neither an artifact nor a compiled program.
    ArtifactError
        If the files cannot be written.
    CorruptArtifactError
        If an image cannot be read.
    """
    final = file_path(path).absolute()
    stem = final.name.removesuffix(BUNDLE_SUFFIX)
    if not final.name.endswith(BUNDLE_SUFFIX) or not _STEM.fullmatch(stem):
        raise ArgumentValueError("path", shorten(final.name), f"a plain name that ends in {BUNDLE_SUFFIX}")
    expect(programs, Mapping, "programs", "a mapping of names to what was built")
    artifacts = {name: tuple(_artifacts(name, given)) for name, given in programs.items()}
    parts: dict[str, list[Artifact]] = {}
    for artifact in (one for several in artifacts.values() for one in several):
        parts.setdefault(_part_of(artifact), []).append(artifact)
    index = Index(
        programs={
            name: tuple(sorted(map(_variant, several), key=_rank)) for name, several in artifacts.items()
        },
        parts={part: f"{stem}.{part}{BUNDLE_SUFFIX}" for part in parts},
    )
    try:
        _write(final, index, parts)
    except OSError as error:
        raise ArtifactError(f"cannot write {shorten(str(final))}: {said(error)}; {advice(error)}") from error
    return index


def _write(final: Path, index: Index, parts: Mapping[str, list[Artifact]]) -> None:
    final.parent.mkdir(parents=True, exist_ok=True)
    with temporary_folder(final.parent, f".{final.name[:64]}.") as folder:
        for part, artifacts in parts.items():
            with (folder / index.parts[part]).open("xb") as out:
                write_part(out, artifacts)
        (folder / final.name).write_bytes(index.to_json())
        for name in (*index.parts.values(), final.name):  # an index never names what is not there yet
            (folder / name).chmod(_MODE)
            os.replace(folder / name, final.parent / name)  # noqa: PTH105 - of files, whatever is there


def _artifacts(name: str, given: Any) -> Iterator[Artifact]:
    several = (given,) if is_a(given, (Artifact, CompiledProgram)) else sequence(given, _MOST_VARIANTS)
    for one in several or ():
        if is_a(one, CompiledProgram):
            yield one.artifact
        elif is_a(one, Artifact):
            yield one
        else:
            several = None
    if several is None:
        raise ArgumentTypeError(
            "programs",
            f"{type_name(given)} for {shorten(name)}",
            "an Artifact, a CompiledProgram, or several",
        )


def _part_of(artifact: Artifact) -> str:
    """Return the part that an artifact lies in: its architecture, or the kind of device that has only one."""
    kind, _, arch = artifact.manifest.target.partition(":")
    return arch or kind


def _variant(artifact: Artifact) -> Variant:
    return Variant(
        target=artifact.manifest.target,
        backend=artifact.manifest.backend,
        part=_part_of(artifact),
        digest=artifact.digest,
        nbytes=sum(record.size for record in artifact.manifest.files.values()),
        conditions=conditions_of(artifact),
    )


def _rank(variant: Variant) -> tuple[bool, int, bool]:
    """Return what sorts variants: finished images first, of the newest architecture, made for it alone."""
    assembled = any(one.rule == "assembles" for one in variant.conditions)
    arch = next((one.value for one in variant.conditions if one.fact == "device"), "")
    found = _ARCH.search(arch)
    number, suffix = (int(found[1]), found[2]) if found else (0, "")
    return assembled, -number, not suffix
