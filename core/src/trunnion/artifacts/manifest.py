"""The manifest: what an artifact is, and the hash of each of its bytes."""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from trunnion.arguments import expect_text
from trunnion.artifacts.json_document import JsonDocument, sealed
from trunnion.errors import ArgumentTypeError, ArtifactError, CorruptArtifactError, shorten
from trunnion.messages import describe, type_name
from trunnion.model.image_table import ImageKernel, ImageParameter, ImageVariable
from trunnion.plain import ForeignError, pairs

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

__all__ = [
    "DIGEST",
    "MANIFEST_NAME",
    "MAX_FILE_BYTES",
    "MAX_MANIFEST_BYTES",
    "SCHEMA",
    "FileRecord",
    "Manifest",
    "artifact_key",
    "built_by",
    "plain_inputs",
]

SCHEMA = 1
"""The version of the manifest's form. A manifest of another version is refused, not guessed at."""

MANIFEST_NAME = "manifest.json"
"""The manifest's file name in an artifact's directory."""

MAX_FILE_BYTES = 1 << 30
"""No file of an artifact may be larger: 1 GiB."""

MAX_MANIFEST_BYTES = 1 << 24
"""Nor may the manifest itself be: 16 MiB."""

_DOCUMENT = JsonDocument(MANIFEST_NAME, MAX_MANIFEST_BYTES)
_FILE_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.+-]{0,127}")
DIGEST = re.compile(r"[0-9a-f]{64}")
"""How a SHA-256 is written."""


def built_by(emitter: str, contract_version: int) -> str:
    """Return the words for what built an artifact; whatever else builds there cannot load it.

    Parameters
    ----------
    emitter
        Name and version of what wrote the launcher.
    contract_version
        The contract version that the backend was written for.
    """
    return f"{emitter}, contract {contract_version}"


def artifact_key(inputs: Mapping[str, str]) -> str:
    """Return the key of an artifact: the SHA-256, in hex, of everything that its bytes depend on.

    Parameters
    ----------
    inputs
        What the bytes depend on, each under a name; the order does not count.

    Raises
    ------
    ArgumentTypeError
        If they are no mapping of texts to texts.
    """
    text = json.dumps(
        {"schema": SCHEMA, "inputs": plain_inputs(inputs)}, sort_keys=True, separators=(",", ":")
    )
    return hashlib.sha256(text.encode("ascii")).hexdigest()


def plain_inputs(inputs: Mapping[str, str]) -> dict[str, str]:
    """Return what an artifact's bytes depend on as a dictionary of Python's own.

    Raises
    ------
    ArgumentTypeError
        If it is no mapping of texts to texts.
    """
    expected = "a mapping of texts to texts"
    try:
        given = pairs(inputs)
    except ForeignError as error:
        raise ArgumentTypeError("inputs", type_name(inputs), expected) from error.__cause__
    if given is None:
        raise ArgumentTypeError("inputs", type_name(inputs), expected)
    return {
        expect_text(name, "inputs", expected): expect_text(value, "inputs", expected) for name, value in given
    }


@dataclass(frozen=True, slots=True)
class FileRecord:
    """What a file must be."""

    sha256: str
    """The SHA-256 of its bytes, in hex."""

    size: int
    """Bytes."""

    def __post_init__(self) -> None:
        if not DIGEST.fullmatch(self.sha256):
            raise CorruptArtifactError(
                MANIFEST_NAME, f"got SHA-256 {shorten(self.sha256)}, expected 64 hex digits"
            )
        if not 0 <= self.size <= MAX_FILE_BYTES:
            raise CorruptArtifactError(
                MANIFEST_NAME, f"got a file of {self.size} bytes, expected 0 to {MAX_FILE_BYTES}"
            )

    @classmethod
    def of(cls, data: bytes) -> FileRecord:
        """Return the record of these bytes."""
        return cls(hashlib.sha256(data).hexdigest(), len(data))


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """Everything there is to know about an artifact without running it.

    Equal builds have equal manifests: there is no time, path or host in it.

    Raises
    ------
    CorruptArtifactError
        If a file name is not a plain name, a hash is none, or the key is not that of its inputs.
    """

    backend: str
    """The backend that built it, and that can load it."""

    contract_version: int
    """The contract version that the backend was written for."""

    target: str
    """What it was compiled for, as `Target` spells it: ``"cuda:sm_90a"``."""

    plan_hash: str
    """The hash of the launch plan."""

    emitter: str
    """Name and version of what wrote the launcher."""

    kernels: tuple[ImageKernel, ...]
    """The program's name of each kernel, its exact name in the image, and its parameter table."""

    variables: tuple[ImageVariable, ...] = ()
    """The program's name of each module variable, its exact name in the image, and its size."""

    files: Mapping[str, FileRecord]
    """Every file but the manifest itself, by name."""

    toolchain: Mapping[str, str] = field(default_factory=dict)
    """Name and version of everything that made it."""

    key_inputs: Mapping[str, str] = field(default_factory=dict)
    """What `key` is computed from; empty until the artifact is given a key."""

    key: str = ""
    """`artifact_key` of `key_inputs`; empty if there are none."""

    schema: int = SCHEMA
    """The version of this form."""

    @property
    def symbols(self) -> tuple[str, ...]:
        """The exact names in the image that a launcher asks for: of the kernels, then of the variables, in order."""
        return *(one.symbol for one in self.kernels), *(one.symbol for one in self.variables)

    def __post_init__(self) -> None:
        if self.schema != SCHEMA:
            raise CorruptArtifactError(
                MANIFEST_NAME,
                f"got schema {describe(self.schema)}, this trunnion reads {SCHEMA}; build the artifact again",
            )
        for name in self.files:
            if not _FILE_NAME.fullmatch(name) or name == MANIFEST_NAME:
                raise CorruptArtifactError(
                    MANIFEST_NAME, f"got file name {shorten(name)}, expected a plain name other than its own"
                )
        if self.key != (artifact_key(self.key_inputs) if self.key_inputs else ""):
            raise CorruptArtifactError(MANIFEST_NAME, f"key {shorten(self.key)} is not that of its inputs")
        for name in ("files", "toolchain", "key_inputs"):
            object.__setattr__(self, name, MappingProxyType(dict(sorted(getattr(self, name).items()))))

    def __hash__(self) -> int:
        return hash(self.to_json())

    def __reduce__(self) -> tuple[Callable[..., Manifest], tuple[object, ...]]:
        return Manifest.from_json, (self.to_json(),)

    def to_json(self) -> bytes:
        """Return the one spelling of this manifest: keys sorted, ASCII, its own SHA-256 among the members.

        Raises
        ------
        ArtifactError
            If `from_json` would refuse it because it is too long.
        """
        members = {
            "schema": self.schema,
            "backend": self.backend,
            "contract_version": self.contract_version,
            "target": self.target,
            "plan_hash": self.plan_hash,
            "emitter": self.emitter,
            "kernels": [_kernel_members(kernel) for kernel in self.kernels],
            "files": {name: {"sha256": r.sha256, "size": r.size} for name, r in self.files.items()},
            "toolchain": dict(self.toolchain),
            "key_inputs": dict(self.key_inputs),
            "key": self.key,
        }
        if self.variables:  # of which most programs have none
            members["variables"] = [_variable_members(one) for one in self.variables]
        data = sealed(members)
        if len(data) > MAX_MANIFEST_BYTES:
            raise ArtifactError(
                f"got a {MANIFEST_NAME} of {len(data)} bytes, expected at most {MAX_MANIFEST_BYTES}: it could not be "
                "read again; divide the program"
            )
        return data

    @classmethod
    def from_json(cls, data: bytes) -> Manifest:
        """Read what `to_json` wrote, and nothing else.

        Raises
        ------
        CorruptArtifactError
            If the bytes are too many, or not exactly what `to_json` writes: another schema, an unknown, missing or
            repeated field, a value of the wrong type, another spelling.
        """
        members = _DOCUMENT.members(data)
        if isinstance(members, dict) and members.get("schema") != SCHEMA:
            found = members.get("schema")
            raise CorruptArtifactError(
                MANIFEST_NAME,
                f"got schema {describe(found)}, this trunnion reads {SCHEMA}; build the artifact again",
            )
        there = isinstance(members, dict) and "variables" in members
        known = {**_FIELDS, "variables": list} if there else _FIELDS
        fields = _DOCUMENT.record(members, known, "the manifest")
        del fields["sha256"]  # compared with the rest of the bytes below
        kernels = tuple(_kernel(member) for member in fields["kernels"])
        files = {name: _file(member) for name, member in fields["files"].items()}
        for name in ("toolchain", "key_inputs"):
            for value in fields[name].values():
                _DOCUMENT.typed(value, str, name)
        variables = tuple(_variable(member) for member in fields.get("variables", ()))
        manifest = cls(**{**fields, "kernels": kernels, "files": files, "variables": variables})
        _DOCUMENT.check_spelling(data, manifest.to_json())
        return manifest


_FIELDS: Mapping[str, type] = MappingProxyType(
    {
        "schema": int,
        "backend": str,
        "contract_version": int,
        "target": str,
        "plan_hash": str,
        "emitter": str,
        "kernels": list,
        "files": dict,
        "toolchain": dict,
        "key_inputs": dict,
        "key": str,
        "sha256": str,
    }
)
_KERNEL_FIELDS: Mapping[str, type] = MappingProxyType({"name": str, "symbol": str, "parameters": list})
_VARIABLE_FIELDS: Mapping[str, type] = MappingProxyType({"name": str, "symbol": str, "nbytes": int})
_PARAMETER_FIELDS: Mapping[str, type] = MappingProxyType({"ordinal": int, "offset": int, "size": int})
_FILE_FIELDS: Mapping[str, type] = MappingProxyType({"sha256": str, "size": int})


def _kernel_members(kernel: ImageKernel) -> dict[str, Any]:
    table = [{"ordinal": p.ordinal, "offset": p.offset, "size": p.size} for p in kernel.parameters]
    return {"name": kernel.name, "symbol": kernel.symbol, "parameters": table}


def _kernel(members: object) -> ImageKernel:
    fields = _DOCUMENT.record(members, _KERNEL_FIELDS, "a kernel")
    table = tuple(
        ImageParameter(**_DOCUMENT.record(member, _PARAMETER_FIELDS, "a parameter"))
        for member in fields["parameters"]
    )
    return ImageKernel(fields["name"], fields["symbol"], table)


def _variable_members(variable: ImageVariable) -> dict[str, Any]:
    return {"name": variable.name, "symbol": variable.symbol, "nbytes": variable.nbytes}


def _variable(members: object) -> ImageVariable:
    unsaid = isinstance(members, dict) and members.get("nbytes", 0) is None
    known = {**_VARIABLE_FIELDS, **({"nbytes": type(None)} if unsaid else {})}
    fields = _DOCUMENT.record(members, known, "a variable")
    return ImageVariable(**fields)


def _file(members: object) -> FileRecord:
    return FileRecord(**_DOCUMENT.record(members, _FILE_FIELDS, "a file"))
