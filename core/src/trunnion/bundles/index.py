"""The index of a bundle: which programs there are, in which variants, and where each of them lies."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from trunnion.artifacts.json_document import JsonDocument, sealed
from trunnion.artifacts.manifest import DIGEST, MAX_FILE_BYTES
from trunnion.built_program import BUNDLE_SUFFIX
from trunnion.bundles.conditions import Condition
from trunnion.errors import ArtifactError, CorruptArtifactError, shorten

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

__all__ = [
    "MAX_INDEX_BYTES",
    "SCHEMA",
    "Index",
    "Part",
    "Variant",
    "check_part_name",
    "indices_in",
    "is_part_name",
    "part_name",
]

SCHEMA: Final = "trunnion.bundle/1"
"""The schema's name and version. An index of another one is refused, not guessed at."""

MAX_INDEX_BYTES: Final = 1 << 26
"""No index may be larger: 64 MiB."""

_FILE: Final = re.compile(rf"[A-Za-z0-9_][A-Za-z0-9_.+-]{{0,250}}{re.escape(BUNDLE_SUFFIX)}")
_NAMED_DIGITS: Final = 12
_PART_NAME: Final = re.compile(rf"\.[0-9a-f]{{{_NAMED_DIGITS}}}{re.escape(BUNDLE_SUFFIX)}\Z")


@dataclass(frozen=True, slots=True)
class Part:
    """One file of artifacts.

    Raises
    ------
    CorruptArtifactError
        If the file's name is no plain name in ``.trn``, or its size none.
    """

    file: str
    """Its name, beside the index: it has the architecture and the first digits of the file's SHA-256 in it."""

    size: int
    """Its bytes."""

    def __post_init__(self) -> None:
        if not _FILE.fullmatch(self.file) or self.size < 0:
            raise CorruptArtifactError(
                "the index",
                f"got a part {shorten(self.file)} of {self.size} bytes, expected a plain name in {BUNDLE_SUFFIX}",
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class Variant:
    """One build of a program.

    Raises
    ------
    CorruptArtifactError
        If the digest is none.
    """

    target: str
    """What it was compiled for, as `Target` spells it: ``"cuda:sm_90a"``."""

    backend: str
    """The backend that built it, and that can load it."""

    part: str
    """The part that holds it: a name in `Index.parts`."""

    digest: str
    """The artifact's digest: the SHA-256, in hex, of its manifest, and so of everything."""

    nbytes: int
    """The sum of its files' sizes."""

    conditions: tuple[Condition, ...] = ()
    """When it can be used: all of them hold."""

    def __post_init__(self) -> None:
        if not DIGEST.fullmatch(self.digest):
            raise CorruptArtifactError(
                "the index", f"got digest {shorten(self.digest)}, expected 64 hex digits"
            )
        if not 0 <= self.nbytes <= MAX_FILE_BYTES << 10:
            raise CorruptArtifactError("the index", f"got a variant of {self.nbytes} bytes")

    @property
    def kind(self) -> str:
        """The kind of device that it is for: ``"cuda"``, ``"cpu"``."""
        return self.target.partition(":")[0]


@dataclass(frozen=True, slots=True, kw_only=True)
class Index:
    """What a bundle holds. Equal bundles have equal indices: there is no time, path or host in it.

    Raises
    ------
    CorruptArtifactError
        If a variant lies in no part, no variant lies in a part, or a program has no variant.
    """

    programs: Mapping[str, tuple[Variant, ...]]
    """The variants of each program, those that are to be preferred first."""

    parts: Mapping[str, Part] = field(default_factory=dict)
    """The parts by name: one for each architecture."""

    def __post_init__(self) -> None:
        named = {one.part for variants in self.programs.values() for one in variants}
        strays, unnamed = named - self.parts.keys(), self.parts.keys() - named
        if strays:
            raise CorruptArtifactError("the index", f"names part {shorten(min(strays))}, and no file of it")
        if unnamed:  # whose bytes nobody would verify
            raise CorruptArtifactError(
                "the index",
                f"has part {shorten(min(unnamed))}, in which no variant lies; expected one at least",
            )
        empty = [name for name, variants in self.programs.items() if not variants]
        if empty:
            raise CorruptArtifactError(
                "the index", f"names no variant of {shorten(min(empty))}, expected one at least"
            )
        for name in ("programs", "parts"):
            object.__setattr__(self, name, MappingProxyType(dict(sorted(getattr(self, name).items()))))

    def __hash__(self) -> int:
        return hash(self.to_json())

    def __reduce__(self) -> tuple[Callable[..., Index], tuple[object, ...]]:
        return Index.from_json, (self.to_json(), "the index")

    @property
    def digest(self) -> str:
        """The SHA-256, in hex, of the index's bytes, and so of everything."""
        return hashlib.sha256(self.to_json()).hexdigest()

    @property
    def variants(self) -> tuple[Variant, ...]:
        """All variants, each once, whatever programs it stands under."""
        every = (one for several in self.programs.values() for one in several)
        return tuple({(one.part, one.digest): one for one in every}.values())

    def to_json(self) -> bytes:
        """Return the one spelling of this index, sealed by its own SHA-256.

        Raises
        ------
        ArtifactError
            If `from_json` would refuse it because it is too long.
        """
        programs = {name: [_members(one) for one in variants] for name, variants in self.programs.items()}
        parts = {name: {"file": part.file, "size": part.size} for name, part in self.parts.items()}
        data = sealed({"schema": SCHEMA, "parts": parts, "programs": programs})
        if len(data) > MAX_INDEX_BYTES:
            raise ArtifactError(
                f"got an index of {len(data)} bytes, expected at most {MAX_INDEX_BYTES}: it could not be read again; "
                "divide the bundle"
            )
        return data

    @classmethod
    def from_json(cls, data: bytes, name: str) -> Index:
        """Read what `to_json` wrote, and nothing else.

        Parameters
        ----------
        data
            The bytes.
        name
            What errors call the file.

        Raises
        ------
        CorruptArtifactError
            If the bytes are too many, or not exactly what `to_json` writes.
        """
        document = JsonDocument(name, MAX_INDEX_BYTES)
        fields = document.record(document.versioned(data, SCHEMA), _FIELDS, "the index")
        programs = {
            program: tuple(_variant(document, one) for one in document.typed(several, list, "the variants"))
            for program, several in fields["programs"].items()
        }
        parts = {
            part: Part(**document.record(one, _PART_FIELDS, "a part"))
            for part, one in fields["parts"].items()
        }
        index = cls(programs=programs, parts=parts)
        document.check_spelling(data, index.to_json())
        return index


def part_name(stem: str, part: str, digest: str) -> str:
    """Return what a part's file is called: by the bundle, by what it is for, and by its digest."""
    return f"{stem}.{part}.{digest[:_NAMED_DIGITS]}{BUNDLE_SUFFIX}"


def is_part_name(name: str) -> bool:
    """Return whether a file is called as `trunnion.write_bundle` calls parts, by their digests, and so no index is."""
    return bool(_PART_NAME.search(name))


def check_part_name(name: str, digest: str) -> None:
    """Refuse a part whose SHA-256, in hex, is not the one that its name has the beginning of, if it is named by one.

    Between its artifacts an archive has bytes that no manifest says anything of.

    Raises
    ------
    CorruptArtifactError
        If it is another.
    """
    digest = digest[:_NAMED_DIGITS]
    if is_part_name(name) and not name.endswith(f".{digest}{BUNDLE_SUFFIX}"):
        raise CorruptArtifactError(name, f"has the digest {digest}…, another one than it is named by")


def indices_in(folder: Path) -> list[Path]:
    """Return the files of a folder that are called as bundles' indices are, and not as their parts; none is read."""
    found = sorted(folder.glob(f"*{BUNDLE_SUFFIX}"))
    return [one for one in found if not is_part_name(one.name)]


_FIELDS: Final[Mapping[str, type]] = MappingProxyType(
    {"schema": str, "parts": dict, "programs": dict, "sha256": str}
)
_PART_FIELDS: Final[Mapping[str, type]] = MappingProxyType({"file": str, "size": int})
_VARIANT_FIELDS: Final[Mapping[str, type]] = MappingProxyType(
    {"target": str, "backend": str, "part": str, "digest": str, "nbytes": int, "conditions": list}
)
_CONDITION_FIELDS: Final[Mapping[str, type]] = MappingProxyType({"fact": str, "rule": str, "value": str})


def _members(variant: Variant) -> dict[str, Any]:
    conditions = [{"fact": one.fact, "rule": one.rule, "value": one.value} for one in variant.conditions]
    plain = {name: getattr(variant, name) for name in _VARIANT_FIELDS if name != "conditions"}
    return {**plain, "conditions": conditions}


def _variant(document: JsonDocument, members: object) -> Variant:
    fields = document.record(members, _VARIANT_FIELDS, "a variant")
    conditions = tuple(
        Condition(**document.record(one, _CONDITION_FIELDS, "a condition")) for one in fields["conditions"]
    )
    return Variant(**{**fields, "conditions": conditions})
