"""Export a bundle as a folder that Hugging Face's ``kernels`` loads: C++ launchers, and nothing that imports trunnion.

The layout and ``metadata.json`` are those of the page "Kernel requirements" of that library, tried with its version
0.17.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from trunnion.arguments import expect, expect_text, file_path
from trunnion.artifacts.publish import publish
from trunnion.bundles.bundle import Bundle
from trunnion.codegen.cpp.build import LAUNCHER
from trunnion.codegen.cpp.loader import LEAST_RUNTIME
from trunnion.errors import ArgumentTypeError, ArgumentValueError, ArtifactError, ProgramError, shorten
from trunnion.exporters import launchers
from trunnion.exporters.kernels_module import emit_kernels_module
from trunnion.exporters.launchers import Launcher
from trunnion.exporters.programs import bundled_programs, own_conditions, processor_of
from trunnion.image.target import assembling_capabilities, running_capabilities
from trunnion.messages import describe, listed
from trunnion.plain import is_exactly
from trunnion.storage.refusals import advice, said
from trunnion.storage.scratch import temporary_beside
from trunnion.version_numbers import version_numbers

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from os import PathLike

    from trunnion.artifacts.artifact import Artifact
    from trunnion.bundles.conditions import Condition
    from trunnion.bundles.index import Variant
    from trunnion.model.program import KernelProgram

__all__ = ["export_kernels"]

_NAME: Final = re.compile(r"[a-z][-a-z0-9]*[a-z0-9]")
_CUDA: Final = re.compile(r"([0-9]{2})\.([0-9])")
_RELEASE: Final = re.compile(rb"release (\d{2})\.(\d), V")
"""How NVIDIA's assembler and compilers call themselves, in a cubin as in PTX."""

_ARCH: Final = re.compile(r"sm_(\d+)(\d)([af]?)")
_HELPER: Final = "_launchers.py"
_MOST_VERSION: Final = 1 << 31


def export_kernels(
    bundle: Bundle,
    folder: str | PathLike[str],
    *,
    name: str,
    version: int,
    license_id: str,
    cuda: str | None = None,
) -> Path:
    """Write a folder that ``kernels.get_local_kernel`` loads, and that can be uploaded as it is; nothing is compiled.

    Whoever uses it needs apache-tvm-ffi, and neither trunnion nor a compiler. There is one build variant for CPUs and
    one for CUDA, of each processor, as far as the bundle has them, such as ``build/tvm-ffi01-cu130-x86_64-linux``; one
    for CUDA holds the launchers for all architectures. Equal bundles give equal folders.

    Parameters
    ----------
    bundle
        The bundle. Its launchers are in C++; one in Python is left out where the same program has one in C++ for the
        same target.
    folder
        What to write; nothing may be there, or an empty folder.
    name
        The kernel's name: lower-case letters, digits and ``-``, such as ``"my-kernels"``.
    version
        Its version, a number: another one for each change of what can be called.
    license_id
        The licence's identifier, such as ``"apache-2.0"``.
    cuda
        The CUDA version that the variant is for, such as ``"13.0"``: it is used where PyTorch is built for that version
        or a later one of the same major version. None: the newest whose compilers made one of the images.

    Returns
    -------
    pathlib.Path
        The folder.

    Raises
    ------
    ArgumentValueError
        If the name, version or licence is none, a program's name cannot be a function's, there is no program, or the
        images do not say of which CUDA version they are.
    ProgramError
        If a program has only a launcher in Python, is missing from one of the variants, or has builds that take other
        parameters.
    ArtifactError
        If a launcher is for another processor than x86-64 and AArch64, the index has a condition that the folder has no
        place for, something is there already, a part cannot be read, or the folder cannot be written.
    CorruptArtifactError
        If the index leaves out what a launcher or an image needs.
    """
    expect(bundle, Bundle, "bundle", "a Bundle")
    _check_words(name, version, license_id, cuda)
    final = _absent(file_path(folder))
    programs = bundled_programs(bundle)
    head = {"name": name, "version": version, "license": license_id}
    variants = {
        group: _variant(group, head, programs, built, cuda) for group, built in _groups(bundle).items()
    }
    try:
        final.parent.mkdir(parents=True, exist_ok=True)
        with temporary_beside(final) as staging:
            for variant, files in variants.values():
                place = staging / "repository" / "build" / variant
                place.mkdir(parents=True)
                for file, data in files.items():
                    (place / file).write_bytes(data)
            if not publish(staging / "repository", final):
                raise _taken(final)
    except OSError as error:
        raise ArtifactError(f"cannot write {shorten(str(final))}: {said(error)}; {advice(error)}") from error
    return final


@dataclass(frozen=True, slots=True, order=True)
class _Group:
    """What a build variant is for."""

    kind: str
    """The kind of device."""

    machine: str
    """The processor."""


@dataclass(frozen=True, slots=True)
class _Built:
    """A variant of a program, as it was built."""

    variant: Variant
    artifact: Artifact
    conditions: tuple[Condition, ...]

    @classmethod
    def of(cls, program: str, variant: Variant, artifact: Artifact) -> _Built:
        """Return a variant with what its files need.

        Raises
        ------
        ArtifactError
            If the index asks for something else, too, which nobody would ask for.
        """
        own = own_conditions(variant, artifact)
        more = [f"{one.fact} {one.rule} {one.value}" for one in variant.conditions if one not in own]
        if more:
            raise ArtifactError(
                f"{shorten(program)} for {shorten(variant.target)} has the conditions {listed(more)}, for which such a "
                "folder has no place; export a bundle without them"
            )
        return cls(variant, artifact, own)

    def values(self, fact: str) -> tuple[str, ...]:
        """Return what a fact of the conditions is compared with."""
        return tuple(one.value for one in self.conditions if one.fact == fact)


def _check_words(name: str, version: int, license_id: str, cuda: str | None) -> None:
    if not _NAME.fullmatch(expect_text(name, "name", "the name of a kernel")):
        expected = "two or more lower-case letters, digits and '-', a letter first, no '-' last, such as 'my-kernels'"
        raise ArgumentValueError("name", shorten(name), expected)
    if not is_exactly(version, int):
        raise ArgumentTypeError("version", describe(version), "a number")
    if not 0 <= version < _MOST_VERSION:
        raise ArgumentValueError("version", describe(version), f"0 to {_MOST_VERSION - 1}")
    if not expect_text(license_id, "license_id", "a licence's identifier").strip():
        raise ArgumentValueError(
            "license_id", shorten(license_id), "a licence's identifier, such as 'apache-2.0'"
        )
    if cuda is not None and not _CUDA.fullmatch(expect_text(cuda, "cuda", "a CUDA version")):
        raise ArgumentValueError("cuda", shorten(cuda), "a CUDA version, such as '13.0'")


def _absent(place: Path) -> Path:
    """Return where the folder goes; see `export_kernels`."""
    try:
        final = place.absolute()
        if final.is_dir() and not any(final.iterdir()):
            return final.resolve() if final.is_symlink() else final  # in whose place no folder can be moved
        taken = final.is_symlink() or final.exists()
    except OSError as error:
        raise ArtifactError(f"cannot write {shorten(str(place))}: {said(error)}; {advice(error)}") from error
    if taken:
        raise _taken(final)
    return final


def _taken(final: Path) -> ArtifactError:
    return ArtifactError(f"something is at {shorten(str(final))} already; name another folder, or remove it")


def _groups(bundle: Bundle) -> dict[_Group, dict[str, list[_Built]]]:
    """Return the builds of each program, for each build variant.

    Raises
    ------
    ProgramError
        If a program has only a launcher in Python, or is missing from a variant.
    """
    groups: dict[_Group, dict[str, list[_Built]]] = {}
    for program, variants in groupby(bundle.artifacts(), itemgetter(0)):
        every = [_Built.of(*variant) for variant in variants]
        compiled = [one for one in every if LAUNCHER in one.artifact.files]
        targets = {one.variant.target for one in compiled}
        for one in every:
            if one.variant.target not in targets:
                raise ProgramError(
                    f"the launcher of {shorten(program)} for {shorten(one.variant.target)} by "
                    f"{shorten(one.variant.backend)} is Python that imports trunnion; build it with a backend whose "
                    "launchers are C++",
                    field="programs",
                )
        for one in compiled:
            machine = processor_of(program, one.conditions)
            group = _Group(one.variant.target.partition(":")[0], machine)
            groups.setdefault(group, {}).setdefault(program, []).append(one)
    for group, programs in groups.items():
        missing = sorted(bundle.index.programs.keys() - programs.keys())
        if missing:
            raise ProgramError(
                f"{shorten(missing[0])} has no launcher for {group.kind} on {group.machine}, where others have: all "
                "variants of such a folder offer the same functions; build it for that too, or export two bundles",
                field="programs",
            )
    return dict(sorted(groups.items()))


def _variant(
    group: _Group,
    head: Mapping[str, Any],
    programs: Mapping[str, KernelProgram],
    built: Mapping[str, list[_Built]],
    cuda: str | None,
) -> tuple[str, dict[str, bytes]]:
    """Return a build variant's name, and its files."""
    every = [one for several in built.values() for one in several]
    device = "cpu" if group.kind == "cpu" else f"cu{_cuda_version(every, cuda).replace('.', '')}"
    ffi = "".join(LEAST_RUNTIME.split(".")[:2])
    files: dict[str, bytes] = {_HELPER: Path(launchers.__file__).read_bytes()}
    choices = {name: [_launcher(name, one, files) for one in several] for name, several in built.items()}
    libc = max(
        (version for one in every for version in one.values("host.libc")), key=version_numbers, default=""
    )
    needs = (group.machine, libc, LEAST_RUNTIME)
    text = emit_kernels_module(str(head["name"]), programs, choices, needs)
    files["__init__.py"] = text.encode()
    digests = {name: _digest(data) for name, data in sorted(files.items())}
    whole = hashlib.sha256(json.dumps([head, digests], sort_keys=True).encode()).hexdigest()
    archs = {"archs": sorted({arch for one in every for arch in _archs(one)})} if group.kind != "cpu" else {}
    metadata = {
        **head,
        "id": f"_{str(head['name']).replace('-', '_')}_{group.kind}_{whole[:12]}",
        "python-depends": ["tvm-ffi"],
        "backend": {"type": group.kind, **archs},
        "digest": {"algorithm": "sha256", "files": digests},
    }
    files["metadata.json"] = (json.dumps(metadata, indent=2, sort_keys=True) + "\n").encode()
    return f"tvm-ffi{ffi}-{device}-{group.machine}-linux", files


def _launcher(program: str, built: _Built, files: dict[str, bytes]) -> Launcher:
    """Add the files of a launcher, and return what it is for."""
    artifact, stem = built.artifact, f"{program}.{built.artifact.digest[:12]}"
    files[f"{stem}.so"] = artifact.files[LAUNCHER]
    if built.variant.target.startswith("cpu"):
        return Launcher(f"{stem}.so")
    (kind, image), rule = next(iter(artifact.images.items())), built.conditions
    spans = [_SPANS[one.rule](one.value) for one in rule if one.fact == "device"]
    least, most = spans[0]
    if image in artifact.files[LAUNCHER]:
        return Launcher(f"{stem}.so", least, most)
    files[f"{stem}.{kind}"] = image
    symbols = artifact.manifest.symbols
    return Launcher(f"{stem}.so", least, most, f"{stem}.{kind}", symbols)


_SPANS: Final[Mapping[str, Callable[[str], tuple[tuple[int, int], tuple[int, int]]]]] = {
    "runs": running_capabilities,
    "assembles": assembling_capabilities,
}


def _archs(built: _Built) -> list[str]:
    """Return the architectures as such a folder spells them: ``"9.0a"``, ``"8.0+PTX"``."""
    found = []
    for one in built.conditions:
        match = _ARCH.fullmatch(one.value) if one.fact == "device" else None
        if match:
            found.append(f"{match[1]}.{match[2]}{match[3]}{'+PTX' if one.rule == 'assembles' else ''}")
    return found


def _cuda_version(built: list[_Built], given: str | None) -> str:
    """Return the CUDA version that a variant is for.

    Raises
    ------
    ArgumentValueError
        If the images do not say it, were made by several major versions, or by another one than is given.
    """
    found = {
        f"{int(major)}.{int(minor)}"
        for one in built
        for image in one.artifact.images.values()
        for major, minor in _RELEASE.findall(image)
    }
    majors = {one.partition(".")[0] for one in found}
    if given is not None:
        if majors - {given.partition(".")[0]}:  # a driver of an older major version loads none of them
            raise ArgumentValueError("cuda", given, f"that of the images, {' and '.join(sorted(found))}")
        return given
    if len(majors) != 1:
        got = f"images made by {' and '.join(sorted(found)) or 'what does not say'}"
        raise ArgumentValueError("cuda", got, "images of one major version; or say which one it is")
    return max(found, key=version_numbers)


def _digest(data: bytes) -> str:
    """Return a digest as ``metadata.json`` spells it: base64, with padding."""
    return base64.b64encode(hashlib.sha256(data).digest()).decode()
