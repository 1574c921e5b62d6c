"""Export a bundle as a wheel: a Python package whose functions launch its programs, with no compiler where it goes."""

from __future__ import annotations

import base64
import csv
import hashlib
import io
import keyword
import os
import re
import sys
import zipfile
from importlib import metadata
from typing import TYPE_CHECKING, Final

from trunnion.arguments import expect, expect_text, file_path
from trunnion.built_program import BUNDLE_SUFFIX
from trunnion.bundles.bundle import Bundle
from trunnion.bundles.conditions import Machine
from trunnion.distributions import canonical, distribution_of, packages, requirements
from trunnion.errors import ArgumentValueError, ArtifactError, shorten
from trunnion.exporters.programs import bundled_programs, own_conditions, processor_of
from trunnion.exporters.python_module import emit_module
from trunnion.storage.refusals import advice, said
from trunnion.storage.scratch import temporary_beside
from trunnion.version_numbers import version_numbers

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from os import PathLike
    from pathlib import Path

    from trunnion.registry import PluginInfo, Registry

__all__ = ["export_wheel"]

_EPOCH: Final = (1980, 1, 1, 0, 0, 0)
_MODE: Final = 0o100644 << 16
_NAME: Final = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?")
_VERSION: Final = re.compile(r"[0-9]+(?:\.[0-9]+)*(?:(?:a|b|rc)[0-9]+)?(?:\.post[0-9]+)?(?:\.dev[0-9]+)?")
_OLDEST: Final = "2.17"
"""The C library that such a wheel is for at least."""

_LIBSTDCXX: Final = {
    "2.17": "3.4.19",
    "2.24": "3.4.22",
    "2.28": "3.4.24",
    "2.31": "3.4.28",
    "2.34": "3.4.29",
    "2.35": "3.4.30",
    "2.39": "3.4.33",
}
"""The newest symbols of libstdc++ that a platform with a C library is sure to have.

https://github.com/pypa/auditwheel/blob/main/src/auditwheel/policy/manylinux-policy.json
"""


def export_wheel(
    bundle: Bundle, folder: str | PathLike[str], *, name: str, version: str, registry: Registry | None = None
) -> Path:
    """Write a wheel that holds a bundle, and a typed function for each of its programs; nothing is compiled.

    Where it is installed it needs trunnion and the backends, of the very versions that built it, and no compiler. Equal
    bundles give equal wheels.

    Parameters
    ----------
    bundle
        The bundle; the names of its programs become names of functions.
    folder
        Where the wheel goes; it is made if it is not there, and a wheel of that name is replaced.
    name
        The distribution's name, such as ``"my-kernels"``; the package is called ``my_kernels``.
    version
        Its version, such as ``"1.0"``.
    registry
        The plugins, which say what distributions the backends come from; None: those that are installed.

    Returns
    -------
    pathlib.Path
        The wheel. Its name says which machines it is for: any where all launchers are Python, else Linux with the
        processor, the C library and the C++ standard library that the launchers need (``manylinux_2_34_x86_64``).

    Raises
    ------
    ArgumentValueError
        If the name or the version is none, no package can be called so, a program's name cannot be a function's, there
        is no program, or the index is to be renamed.
    ProgramError
        If two variants of a program take other parameters.
    ArtifactError
        If a launcher is for another processor than x86-64 and AArch64, a backend is not installed in the version that
        built a variant, or no distribution brings it, a part cannot be read, or the wheel cannot be written.
    CorruptArtifactError
        If the index leaves out what a launcher or an image needs.
    """
    expect(bundle, Bundle, "bundle", "a Bundle")
    if not _NAME.fullmatch(expect_text(name, "name", "the name of a distribution")):
        raise ArgumentValueError("name", shorten(name), "letters, digits, '.', '-' and '_'")
    if not _VERSION.fullmatch(expect_text(version, "version", "a version")):
        raise ArgumentValueError("version", shorten(version), "a version such as '1.0' or '1.0.post1'")
    package = _package_name(name, registry or bundle.registry)
    files, platforms = _package(bundle, package, name), _platforms(bundle)
    _check_backends(bundle, registry or bundle.registry)
    files |= _metadata(bundle, package, name, version, registry or bundle.registry, platforms)
    place = file_path(folder)
    final = place / f"{package}-{version}-py3-none-{'.'.join(platforms)}.whl"
    try:
        place.mkdir(parents=True, exist_ok=True)
        with temporary_beside(final) as staging:
            _write(staging / final.name, files, f"{package}-{version}.dist-info")
            os.replace(staging / final.name, final)  # noqa: PTH105 - of a file, whatever is there
    except OSError as error:
        raise ArtifactError(f"cannot write {shorten(str(final))}: {said(error)}; {advice(error)}") from error
    return final


def _package_name(name: str, registry: Registry) -> str:
    """Return what the package of a distribution is called.

    Raises
    ------
    ArgumentValueError
        If no such package can be imported, or it would stand in the place of one that it imports.
    """
    ours = ("torch", "trunnion", *(plugin.distribution for plugin in registry.plugins()))
    needed = {*map(canonical, ours), *(one for own in ours for one in _required(own))}
    brought = packages()
    imported = (one for one, owners in brought.items() if needed & {*owners})
    taken = {*sys.stdlib_module_names, *map(_spelled, ours), *imported}
    package = _spelled(name)
    # One of its own name may be this wheel, of an earlier version.
    others = {_spelled(owner) for owner in brought.get(package, ())} - {package}
    if not package.isidentifier() or keyword.iskeyword(package) or package in taken or others:
        words = (
            "the name of a package that can be imported, other than Python's own, torch, trunnion, its plugins, what "
            "these import, and what another distribution brings here"
        )
        raise ArgumentValueError("name", shorten(name), words)
    return package


def _required(name: str) -> Iterable[str]:
    """Return what a distribution requires, by canonical name; nothing of one that is not installed."""
    try:
        return requirements(distribution_of(canonical(name)))
    except metadata.PackageNotFoundError:
        return ()


def _spelled(name: str) -> str:
    """Return the name of a distribution's package."""
    return re.sub(r"[-_.]+", "_", name).lower()


def _package(bundle: Bundle, package: str, name: str) -> dict[str, bytes]:
    """Return the package's files: the module, that it is typed, and the bundle.

    Raises
    ------
    ArgumentValueError
        If the index has a name that no wheel can hold, or that may be one of the package's own.
    """
    index = bundle.file.name
    if not index.endswith(BUNDLE_SUFFIX) or any("\ud800" <= one <= "\udfff" for one in index):
        expected = f"an index whose name is UTF-8 and ends in {BUNDLE_SUFFIX}: rename it"
        raise ArgumentValueError("bundle", shorten(index), expected)
    files = {f"{package}/{file}": data for file, data in bundle.files().items()}
    text = emit_module(name, index, bundle.digest, bundled_programs(bundle))
    return {**files, f"{package}/__init__.py": text.encode(), f"{package}/py.typed": b""}


def _check_backends(bundle: Bundle, registry: Registry) -> None:
    """Refuse what no backend here could load: the wheel would require the versions here, which are not what built it.

    Raises
    ------
    ArtifactError
        If a variant's backend is not installed, or is of another version.
    """
    machine = Machine(0, registry)
    for program, variants in bundle.index.programs.items():
        for variant in variants:
            lacks = [one.lack(machine) for one in variant.conditions if one.fact == "backend"]
            if any(lacks):
                raise ArtifactError(
                    f"got a variant of {shorten(program)} by {shorten(variant.backend)}, expected one that the "
                    f"backends here can load: {'; '.join(filter(None, lacks))}; export it where it was built"
                )


def _metadata(
    bundle: Bundle, package: str, name: str, version: str, registry: Registry, platforms: list[str]
) -> dict[str, bytes]:
    brought = {plugin.name: plugin for plugin in registry.plugins()}
    backends = {one.backend for variants in bundle.index.programs.values() for one in variants}
    needed = {f"trunnion=={metadata.version('trunnion')}"}
    needed |= {_requirement(brought[backend]) for backend in backends}
    lines = ["Metadata-Version: 2.1", f"Name: {name}", f"Version: {version}", "Requires-Python: >=3.11"]
    lines += [f"Requires-Dist: {one}" for one in sorted(needed)]
    lines += ["Summary: GPU kernels that trunnion launches, compiled ahead of time"]
    wheel = ["Wheel-Version: 1.0", f"Generator: trunnion {metadata.version('trunnion')}"]
    wheel += [
        f"Root-Is-Purelib: {str(platforms == ['any']).lower()}",
        *(f"Tag: py3-none-{one}" for one in platforms),
    ]
    folder, said = f"{package}-{version}.dist-info", {"METADATA": lines, "WHEEL": wheel}
    return {f"{folder}/{name}": ("\n".join(text) + "\n").encode() for name, text in said.items()}


def _requirement(plugin: PluginInfo) -> str:
    """Return what a wheel requires for a backend.

    Raises
    ------
    ArtifactError
        If no installed distribution brings it: nobody could install such a wheel, or it could launch nothing.
    """
    try:
        distribution_of(canonical(plugin.distribution))
    except metadata.PackageNotFoundError:
        raise ArtifactError(
            f"got backend {shorten(plugin.name)} of {shorten(plugin.distribution)}, expected one that an installed "
            "distribution brings: a wheel requires that; install the backend's distribution, and export it with that"
        ) from None
    return f"{plugin.distribution}=={plugin.version}" if plugin.version else plugin.distribution


def _platforms(bundle: Bundle) -> list[str]:
    """Return the platforms' tags (PEP 600): for each processor what every variant for it can be used on."""
    newest: dict[str, str] = {}
    for program, variant, artifact in bundle.artifacts():
        conditions = own_conditions(variant, artifact)
        machine = processor_of(program, conditions)
        asked = [one.value for one in conditions if one.fact == "host.libc"]
        asked += [_libc_with(one.value) for one in conditions if one.fact == "host.libstdcxx"]
        versions = [_OLDEST, newest.get(machine, _OLDEST), *asked]
        newest[machine] = max(versions, key=version_numbers)
    newest.pop("", None)
    tags = ["_".join(map(str, version_numbers(version)[:2])) for version in newest.values()]
    return sorted(f"manylinux_{tag}_{machine}" for tag, machine in zip(tags, newest, strict=True)) or ["any"]


def _libc_with(libstdcxx: str) -> str:
    """Return the oldest C library of the platforms that have a libstdc++; of one that none is sure to have, the newest.

    Such a wheel may be installed where that is missing, and its bundle says what is.
    """
    enough = (
        libc for libc, here in _LIBSTDCXX.items() if version_numbers(here) >= version_numbers(libstdcxx)
    )
    return next(enough, next(reversed(_LIBSTDCXX)))


def _write(file: Path, files: Mapping[str, bytes], info: str) -> None:
    record = io.StringIO()
    rows = [(name, f"sha256={_digest(data)}", len(data)) for name, data in sorted(files.items())]
    csv.writer(record, lineterminator="\n").writerows([*rows, (f"{info}/RECORD", "", "")])
    every = {**files, f"{info}/RECORD": record.getvalue().encode()}
    with zipfile.ZipFile(file, "x", zipfile.ZIP_DEFLATED) as archive:
        for name, data in sorted(every.items()):
            entry = zipfile.ZipInfo(name, _EPOCH)
            entry.create_system, entry.external_attr, entry.compress_type = 3, _MODE, zipfile.ZIP_DEFLATED
            archive.writestr(entry, data)


def _digest(data: bytes) -> str:
    """Return a digest as RECORD spells it: base64 for URLs, without padding."""
    return base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
