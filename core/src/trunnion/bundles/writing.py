"""Write bundles: an index, and beside it one file for each architecture."""

from __future__ import annotations

import hashlib
import os
import re
from typing import TYPE_CHECKING, Any, Final

from trunnion.arguments import expect_text, file_path
from trunnion.artifacts.artifact import Artifact
from trunnion.artifacts.program_file import program_of, program_of_variants
from trunnion.built_program import BUNDLE_SUFFIX, target_of
from trunnion.bundles.conditions import conditions_of
from trunnion.bundles.index import Index, Part, Variant, is_part_name, part_name
from trunnion.bundles.parts import write_part
from trunnion.compiled import CompiledProgram
from trunnion.errors import ArgumentTypeError, ArgumentValueError, ArtifactError, shorten
from trunnion.messages import type_name
from trunnion.plain import ForeignError, is_a, pairs, sequence
from trunnion.storage.descriptors import write_through
from trunnion.storage.refusals import advice, said
from trunnion.storage.scratch import temporary_beside
from trunnion.toolchain.processor import LEVELS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from os import PathLike
    from pathlib import Path

__all__ = ["bundle_path", "write_bundle"]

_MOST_VARIANTS: Final = 1 << 16
_STEM: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.+-]{0,127}")
_ARCH: Final = re.compile(r"(\d+)([af]?)$")
_FILE_MODE: Final = 0o644  # never writable by others, whatever the umask: who opens it refuses that
_FOLDER_MODE: Final = 0o755


def write_bundle(
    path: str | PathLike[str],
    programs: Mapping[str, Artifact | CompiledProgram | Iterable[Artifact | CompiledProgram]],
) -> Index:
    """Write programs that were built into a bundle, which `trunnion.load` opens; equal programs give equal bytes.

    Of an artifact that a cache keeps the key is left out: it is made of paths and headers of the machine that built it.

    Of several variants of a program that fit a device the one is preferred that was made for less: a cubin comes before
    PTX, one of ``sm_90a`` before one of ``sm_90``, one of ``x86-64-v4`` before one of every processor; among equals
    the one that was given first.

    Parameters
    ----------
    path
        The index: a name in ``.trn``. The parts are written beside it, and have their digest in their names, as
        ``gemm.sm_90a.0123456789ab.trn`` beside ``gemm.trn``. An index that is there is replaced in one step, the last:
        whoever opened the old one goes on with the old parts, which stay.
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
        If the path is no plain name in ``.trn``, or one that parts have, or a program has no variant, or too many.
    ArgumentTypeError
        If a program's name is no text, or it is neither an artifact nor a compiled program.
    ProgramError
        If the variants of a program take different parameters.
    ArtifactError
        If the files cannot be written, or the index is too large to be read again.
    CorruptArtifactError
        If an image, or the program that an artifact was built from, cannot be read.
    """
    final = bundle_path(path)
    artifacts = dict(_named_artifacts(programs))
    for name, several in artifacts.items():
        program_of_variants(name, map(program_of, several))
    parts: dict[str, list[Artifact]] = {}
    for artifact in (one for several in artifacts.values() for one in several):
        parts.setdefault(_part_of(artifact), []).append(artifact)
    variants = {name: tuple(sorted(map(_variant, several), key=_rank)) for name, several in artifacts.items()}
    try:
        return _write(final, variants, parts)
    except OSError as error:
        raise ArtifactError(f"cannot write {shorten(str(final))}: {said(error)}; {advice(error)}") from error


def bundle_path(path: str | PathLike[str]) -> Path:
    """Return the path of a bundle's index that is to be written.

    Raises
    ------
    ArgumentValueError
        If it is no plain name in ``.trn``, or one that parts have: what is there may be another bundle's.
    ArtifactError
        If a folder is there, or there is no working folder that it could begin at.
    """
    final = file_path(path)
    stem = final.name.removesuffix(BUNDLE_SUFFIX)
    if not final.name.endswith(BUNDLE_SUFFIX) or not _STEM.fullmatch(stem):
        expected = f"a name of letters, digits, '_', '.', '+' and '-' that ends in {BUNDLE_SUFFIX}"
        raise ArgumentValueError("path", shorten(final.name), expected)
    if is_part_name(final.name):
        raise ArgumentValueError(
            "path",
            f"{shorten(final.name)}, as a part of a bundle is called",
            "a name without a digest at its end",
        )
    try:
        final = final.absolute()
    except OSError as error:
        raise ArtifactError(f"cannot write {shorten(str(final))}: {said(error)}; {advice(error)}") from error
    if os.path.isdir(final):  # noqa: PTH112 - False for a name that is too long, where Path.is_dir raises
        raise ArtifactError(f"a folder is at {shorten(str(final))}; choose another name")
    return final


def _write(
    final: Path, variants: Mapping[str, tuple[Variant, ...]], parts: Mapping[str, list[Artifact]]
) -> Index:
    _make_folder(final.parent)
    with temporary_beside(final) as folder:
        made = {name: _write_part(folder, final, name, several) for name, several in parts.items()}
        index = Index(programs=variants, parts=made)
        (folder / final.name).write_bytes(index.to_json())
        for name in (*(part.file for part in made.values()), final.name):
            (folder / name).chmod(_FILE_MODE)
            write_through(folder / name)
            os.replace(folder / name, final.parent / name)  # noqa: PTH105 - of files, whatever is there
    return index


def _write_part(folder: Path, final: Path, name: str, artifacts: Iterable[Artifact]) -> Part:
    made = folder / "part"
    with made.open("xb") as out:
        write_part(out, artifacts)
    with made.open("rb") as data:
        digest = hashlib.file_digest(data, "sha256").hexdigest()
    file = part_name(final.name.removesuffix(BUNDLE_SUFFIX), name, digest)
    made.replace(folder / file)
    return Part(file, (folder / file).stat().st_size)


def _make_folder(folder: Path) -> None:
    """Make a folder, and those above it, to which nobody else may write, whatever the umask."""
    missing = [one for one in (folder, *folder.parents) if not one.exists()]
    for one in reversed(missing):
        one.mkdir(exist_ok=True)
        one.chmod(_FOLDER_MODE)


def _named_artifacts(programs: object) -> Iterator[tuple[str, tuple[Artifact, ...]]]:
    """Yield the name of each program, and what was built of it, each once."""
    expected = "a mapping of names to what was built"
    try:
        given = pairs(programs)
    except ForeignError as error:
        raise ArgumentTypeError("programs", type_name(programs), expected) from error.__cause__
    if given is None:
        raise ArgumentTypeError("programs", type_name(programs), expected)
    for key, value in given:
        name = expect_text(key, "programs", expected)
        artifacts = tuple(
            {one.digest: one for one in map(Artifact.unkeyed, _artifacts(name, value))}.values()
        )
        if not 0 < len(artifacts) <= _MOST_VARIANTS:
            got = f"{len(artifacts)} variants of {shorten(name)}"
            raise ArgumentValueError("programs", got, f"1 to {_MOST_VARIANTS} of each program")
        yield name, artifacts


def _artifacts(name: str, given: Any) -> Iterator[Artifact]:
    expected = "an Artifact, a CompiledProgram, or several"
    try:
        alone = is_a(given, (Artifact, CompiledProgram))
        several = (given,) if alone else sequence(given, _MOST_VARIANTS + 1)
    except ForeignError as error:
        raise ArgumentTypeError(
            "programs", f"{type_name(given)} for {shorten(name)}", expected
        ) from error.__cause__
    for one in (None,) if several is None else several:
        if is_a(one, CompiledProgram):
            yield one.artifact
        elif is_a(one, Artifact):
            yield one
        else:
            raise ArgumentTypeError("programs", f"{type_name(given)} for {shorten(name)}", expected)


def _part_of(artifact: Artifact) -> str:
    """Return the part that an artifact lies in: its architecture, or the kind of device that has only one."""
    target = target_of(artifact)
    return target.arch or target.kind


def _variant(artifact: Artifact) -> Variant:
    return Variant(
        target=artifact.manifest.target,
        backend=artifact.manifest.backend,
        part=_part_of(artifact),
        digest=artifact.digest,
        nbytes=sum(record.size for record in artifact.manifest.files.values()),
        conditions=conditions_of(artifact),
    )


def _rank(variant: Variant) -> tuple[bool, int, int, int]:
    """Return what sorts variants: finished images, the newest architecture, what is for it alone, the highest level."""
    assembled = any(one.rule == "assembles" for one in variant.conditions)
    arch = next((one.value for one in variant.conditions if one.fact == "device"), "")
    found = _ARCH.search(arch)
    number, suffix = (int(found[1]), found[2]) if found else (0, "")
    level = next((LEVELS.index(one.value) for one in variant.conditions if one.fact == "host.level"), 0)
    return assembled, -number, ("a", "f", "").index(suffix), -level
