"""Provenance: what a bundle was built from, by what, as an in-toto statement in plain JSON.

The statement is of version 1 (in-toto.io/Statement/v1), what it states is SLSA's provenance of version 1
(slsa.dev/provenance/v1). Nothing in it is secret or differs from machine to machine unless the build does: no path, no
user, no host; and no time unless one is given.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib import metadata
from pathlib import PurePosixPath
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from trunnion.arguments import expect, expect_text
from trunnion.artifacts.artifact import Artifact
from trunnion.artifacts.json_document import JsonDocument, spelled
from trunnion.artifacts.manifest import DIGEST
from trunnion.artifacts.plain_file import write_plain_file
from trunnion.artifacts.program_file import PROGRAM_FILE, program_of
from trunnion.bundles.bundle import Bundle
from trunnion.errors import ArgumentValueError, shorten
from trunnion.messages import describe

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from pathlib import Path

    from trunnion.bundles.index import Variant

__all__ = [
    "MAX_PROVENANCE_BYTES",
    "PROVENANCE_SUFFIX",
    "UNNAMED_BUILDER",
    "Builder",
    "is_provenance",
    "provenance",
    "stated_digests",
    "write_provenance",
]

PROVENANCE_SUFFIX: Final = ".provenance.json"
"""What the name of a statement ends in; the bundle's index is called as it is without that."""

UNNAMED_BUILDER: Final = "urn:trunnion:builder:unnamed"
"""The builder of which nobody said what it is: a name, not an address. It vouches for nothing."""

MAX_PROVENANCE_BYTES: Final = 1 << 24
"""No statement may be larger: 16 MiB."""

_BUILD_TYPE: Final = "urn:trunnion:build:1"
_STATEMENT: Final = "https://in-toto.io/Statement/v1"
_PREDICATE: Final = "https://slsa.dev/provenance/v1"
_URI: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:[!-~]+")
_MOST_SECONDS: Final = 253402300799  # the end of the year 9999, the last one of RFC 3339
_HEADER: Final = "environment "
_FINGERPRINTS: Final[Mapping[str, str]] = MappingProxyType(
    {"backend": "launcher", "compiler": "device compiler"}
)


@dataclass(frozen=True, slots=True)
class Builder:
    """Who built something, and when, as far as it is to be said.

    Raises
    ------
    ArgumentTypeError, ArgumentValueError
        If the name is no URI, or the time none.
    """

    id: str = UNNAMED_BUILDER
    """A URI that whoever reads the statement knows: of a machine, a service, an organisation."""

    finished: int | None = None
    """When it was built, in seconds since 1970, such as ``SOURCE_DATE_EPOCH``; None: it is not said."""

    def __post_init__(self) -> None:
        if not _URI.fullmatch(expect_text(self.id, "builder", "a URI")):
            expected = "a URI, such as https://example.org/builders/1"
            raise ArgumentValueError("builder", shorten(self.id), expected)
        if self.finished is None:
            return
        if not 0 <= expect(self.finished, int, "finished", "seconds since 1970, or None") <= _MOST_SECONDS:
            expected = f"seconds since 1970: 0 to {_MOST_SECONDS}"
            raise ArgumentValueError("finished", describe(self.finished), expected)


_UNNAMED: Final = Builder()


def provenance(bundle: Bundle, builder: Builder = _UNNAMED, built: Iterable[Artifact] = ()) -> bytes:
    """Return the statement of what a bundle was built from; equal bundles have equal ones.

    Its subjects are the bundle's files. What it says of sources and compilers is what the artifacts' manifests say; a
    statement proves nothing before somebody who is trusted signs it.

    Parameters
    ----------
    bundle
        The bundle; every byte of it is verified.
    builder
        Who built it, and when.
    built
        What went into it, as it was built. What a bundle leaves out of that is stated too: the key, the headers that
        code could reach, and what compilers say of themselves.

    Raises
    ------
    ArgumentTypeError
        If it is no bundle, no builder, or something built is no artifact.
    ArtifactError, CorruptArtifactError
        If the bundle cannot be read, or is not whole.
    """
    expect(bundle, Bundle, "bundle", "a Bundle")
    expect(builder, Builder, "builder", "a Builder")
    files = bundle.files()
    known = {expect(one, Artifact, "built", "Artifacts").unkeyed().digest: one for one in built}
    builds = [
        (name, variant, known.get(variant.digest, artifact)) for name, variant, artifact in bundle.artifacts()
    ]
    definition = {
        "buildType": _BUILD_TYPE,
        "externalParameters": {
            "programs": {
                name: [{"backend": one.backend, "target": one.target} for one in variants]
                for name, variants in bundle.index.programs.items()
            }
        },
        "internalParameters": {"variants": [_variant(*build) for build in builds]},
        "resolvedDependencies": _sources(builds),
    }
    return spelled(
        {
            "_type": _STATEMENT,
            "subject": [_resource(name, data) for name, data in sorted(files.items())],
            "predicateType": _PREDICATE,
            "predicate": {"buildDefinition": definition, "runDetails": _run(builder)},
        }
    )


def write_provenance(bundle: Bundle, builder: Builder = _UNNAMED, built: Iterable[Artifact] = ()) -> Path:
    """Write the statement of what a bundle was built from beside it, ``kernels.trn.provenance.json``; return where.

    Parameters are those of `provenance`.

    Raises
    ------
    ArgumentTypeError, CorruptArtifactError
        As `provenance`.
    ArtifactError
        If the bundle cannot be read, or the statement not be written, or is too large to be read again.
    """
    data = provenance(bundle, builder, built)
    file = bundle.file.with_name(bundle.file.name + PROVENANCE_SUFFIX)
    write_plain_file(file, data, MAX_PROVENANCE_BYTES)
    return file


def is_provenance(members: object) -> bool:
    """Return whether a JSON document says that it is an in-toto statement of provenance."""
    return (
        isinstance(members, dict)
        and members.get("_type") == _STATEMENT
        and members.get("predicateType") == _PREDICATE
    )


def stated_digests(data: bytes, name: str) -> dict[str, str]:
    """Return the SHA-256, in hex, of each file that a statement is about, by its plain name.

    Parameters
    ----------
    data
        The bytes of the statement, whoever wrote it; fields that are not known are passed over, as in-toto has it.
    name
        What errors call it.

    Raises
    ------
    CorruptArtifactError
        If it is no statement of provenance, or a subject has no plain name or no SHA-256, or two have one name.
    """
    document = JsonDocument(name, MAX_PROVENANCE_BYTES)
    members = document.members(data)
    if not is_provenance(members):
        got = members.get("predicateType") if isinstance(members, dict) else members
        raise document.corrupt(f"got predicate type {describe(got)}, expected a statement of {_PREDICATE}")
    found: dict[str, str] = {}
    for subject in document.typed(members.get("subject"), list, "the subjects"):
        named = document.typed(
            document.typed(subject, dict, "a subject").get("name"), str, "a subject's name"
        )
        digests = document.typed(subject.get("digest"), dict, "a subject's digest")
        digest = document.typed(digests.get("sha256"), str, "a subject's SHA-256")
        if PurePosixPath(named).name != named or named in {"", "..", *found} or "\0" in named:
            raise document.corrupt(f"names {shorten(named)}, expected plain names of files, each once")
        if not DIGEST.fullmatch(digest):
            raise document.corrupt(f"got SHA-256 {shorten(digest)}, expected 64 hex digits")
        found[named] = digest
    if not found:
        raise document.corrupt("is about nothing, expected at least one subject")
    return found


def _resource(name: str, data: bytes, **more: str) -> dict[str, Any]:
    return {"name": name, "digest": {"sha256": hashlib.sha256(data).hexdigest()}, **more}


def _run(builder: Builder) -> dict[str, Any]:
    version = {"trunnion": metadata.version("trunnion")}
    details: dict[str, Any] = {"builder": {"id": builder.id, "version": version}}
    if builder.finished is None:
        return details
    time = datetime.fromtimestamp(builder.finished, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    return {**details, "metadata": {"finishedOn": time}}


def _variant(name: str, variant: Variant, artifact: Artifact) -> dict[str, Any]:
    """Return what one variant was built with: of its inputs the hash, which whoever builds it again can compare."""
    manifest = artifact.manifest
    fingerprints = {
        role: _pathless(manifest.key_inputs[field])
        for field, role in _FINGERPRINTS.items()
        if field in manifest.key_inputs
    }
    return {
        "program": name,
        "target": variant.target,
        "backend": variant.backend,
        "artifact": variant.digest,
        "emitter": manifest.emitter,
        "contractVersion": manifest.contract_version,
        "plan": manifest.plan_hash,
        "key": manifest.key,
        "toolchain": {one: _pathless(version) for one, version in manifest.toolchain.items()},
        "fingerprints": fingerprints,
    }


def _sources(builds: list[tuple[str, Variant, Artifact]]) -> list[dict[str, Any]]:
    """Return each source once: programs, the device code in them, and the headers that it could reach."""
    found: dict[tuple[str, str], dict[str, Any]] = {}
    for name, _, artifact in builds:
        for resource in _sources_of(name, artifact):
            found.setdefault((resource["name"], resource["digest"]["sha256"]), resource)
    return [found[key] for key in sorted(found)]


def _sources_of(name: str, artifact: Artifact) -> Iterator[dict[str, Any]]:
    yield _resource(f"{name}/{PROGRAM_FILE}", artifact.files[PROGRAM_FILE], mediaType="application/json")
    for code in program_of(artifact).code:
        source = code.source.encode() if isinstance(code.source, str) else code.source
        yield _resource(f"{name}/{PurePosixPath(code.name).name}", source)
    for field, digest in artifact.manifest.key_inputs.items():
        if field.startswith(_HEADER) and DIGEST.fullmatch(digest):
            yield {"name": PurePosixPath(field.removeprefix(_HEADER)).name, "digest": {"sha256": digest}}


def _pathless(text: str) -> str:
    """Return a compiler's description of itself without the words that are paths of this machine."""
    return " ".join("<path>" if "/" in word else word for word in text.split(" "))
