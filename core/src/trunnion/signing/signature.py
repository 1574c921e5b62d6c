"""Signature files: beside what is signed, in JSON, who signed which digest of what kind of thing."""

from __future__ import annotations

import re
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from trunnion.artifacts.json_document import JsonDocument, spelled
from trunnion.artifacts.manifest import DIGEST
from trunnion.artifacts.plain_file import read_plain_file, unreadable, write_plain_file
from trunnion.errors import ArtifactError, UntrustedArtifactError, shorten
from trunnion.messages import listed
from trunnion.signing.message import ALGORITHM, KINDS, SCHEMA, signed_message
from trunnion.storage.refusals import advice, said

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from trunnion.signing.keys import PublicKey, SigningKey

__all__ = ["SIGNATURE_SUFFIX", "SignatureFile", "beside", "check_signature", "signature_path"]

SIGNATURE_SUFFIX: Final = ".sig"
"""What the name of a signature file ends in; what is signed is called as it is without that."""

_MOST_BYTES: Final = 1 << 16
_MOST_SIGNATURES: Final = 64
_SIGNATURE: Final = re.compile(r"[0-9a-f]{128}")
_FIELDS: Final[Mapping[str, type]] = MappingProxyType(
    {"schema": str, "kind": str, "digest": str, "signatures": list}
)
_SIGNATURE_FIELDS: Final[Mapping[str, type]] = MappingProxyType(
    {"algorithm": str, "key": str, "signature": str}
)


@dataclass(frozen=True, slots=True)
class SignatureFile:
    """Who signed what. Equal signatures have equal bytes: there is no time, name or place in them."""

    kind: str
    """What is signed: one of `trunnion.signing.message.KINDS`."""

    digest: str
    """Its digest: a SHA-256 in hex."""

    signatures: Mapping[str, bytes]
    """The 64 bytes of each key's signature, by `PublicKey.id`."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "signatures", MappingProxyType(dict(sorted(self.signatures.items()))))

    def signed_by(self, key: SigningKey) -> SignatureFile:
        """Return this with the signature of one more key, or of one of its keys once more.

        Raises
        ------
        ArtifactError
            If as many keys signed it as are read again.
        """
        if len(self.signatures.keys() | {key.public.id}) > _MOST_SIGNATURES:
            raise ArtifactError(
                f"{len(self.signatures)} keys signed it, and no more are read; remove its {SIGNATURE_SUFFIX} file, and "
                "have those sign again that count"
            )
        made = key.sign(signed_message(self.kind, self.digest))
        return SignatureFile(self.kind, self.digest, {**self.signatures, key.public.id: made})

    def to_json(self) -> bytes:
        """Return the one spelling of this signature: keys sorted, ASCII."""
        each = [
            {"algorithm": ALGORITHM, "key": key, "signature": made.hex()}
            for key, made in self.signatures.items()
        ]
        return spelled({"schema": SCHEMA, "kind": self.kind, "digest": self.digest, "signatures": each})

    @classmethod
    def from_json(cls, data: bytes, name: str) -> SignatureFile:
        """Read what `to_json` wrote, and nothing else. Whether a signature is good is not asked.

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
        document = JsonDocument(name, _MOST_BYTES)
        fields = document.record(document.versioned(data, SCHEMA), _FIELDS, "the signature")
        if fields["kind"] not in KINDS:
            raise document.corrupt(f"signs {shorten(fields['kind'])}, expected {listed(KINDS)}")
        if not DIGEST.fullmatch(fields["digest"]):
            raise document.corrupt(f"got digest {shorten(fields['digest'])}, expected 64 hex digits")
        if not 0 < len(fields["signatures"]) <= _MOST_SIGNATURES:
            raise document.corrupt(
                f"has {len(fields['signatures'])} signatures, expected 1 to {_MOST_SIGNATURES}"
            )
        each = dict(_entry(document, one) for one in fields["signatures"])
        found = cls(fields["kind"], fields["digest"], each)
        document.check_spelling(data, found.to_json())
        return found

    @classmethod
    def open(cls, file: Path) -> SignatureFile | None:
        """Read a signature file; None if there is none.

        Parameters
        ----------
        file
            Its absolute path. Who could have written it does not matter: nobody else can sign.

        Raises
        ------
        ArtifactError
            If it cannot be read.
        CorruptArtifactError
            If it is no whole signature.
        """
        try:
            data = read_plain_file(file, _MOST_BYTES, trusting=True)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise unreadable(file, error) from error
        return cls.from_json(data, shorten(file.name))

    def save(self, file: Path) -> None:
        """Write the signature file, whole or not at all.

        Raises
        ------
        ArtifactError
            If it cannot be written.
        """
        write_plain_file(file, self.to_json(), _MOST_BYTES)


def signature_path(path: Path) -> Path:
    """Return where the signature of what lies at a path is; errors are those of `beside`."""
    return beside(path, SIGNATURE_SUFFIX)


def beside(path: Path, suffix: str) -> Path:
    """Return the file beside what lies at a path that is called as that is, and a suffix.

    Raises
    ------
    ArtifactError
        If nothing can lie beside it, or there is no working folder that it could begin at.
    """
    try:
        whole = path.absolute()
        whole = whole.resolve() if whole.name in {"", ".."} else whole
    except OSError as error:
        raise ArtifactError(f"cannot find {shorten(str(path))}: {said(error)}; {advice(error)}") from error
    if not whole.name:
        raise ArtifactError(f"{shorten(str(path))} has no name, beside which a signature could lie")
    return whole.with_name(whole.name + suffix)


def check_signature(path: Path, kind: str, digest: str, keys: Sequence[PublicKey]) -> PublicKey:
    """Return the trusted key that signed something; refuse what none of them signed.

    Parameters
    ----------
    path
        Where it lies; the signature lies beside it.
    kind
        What it is: one of `trunnion.signing.message.KINDS`.
    digest
        Its digest, of the bytes that were read and will be used: what the signature file says is not believed.
    keys
        The keys that are trusted.

    Raises
    ------
    UntrustedArtifactError
        If there is no signature, or it is of something else, or of none of the keys, or is not good.
    ArtifactError
        If the signature cannot be read.
    CorruptArtifactError
        If it is no whole signature.
    BackendUnavailableError
        If the library ``cryptography`` is not installed.
    """
    file = signature_path(path)
    what, where = shorten(str(path)), shorten(file.name)
    found = SignatureFile.open(file)
    trusted = listed([key.id for key in keys])
    if found is None:
        raise UntrustedArtifactError(
            f"{what} is not signed: there is no {where} beside it, expected one by {trusted}"
        )
    if (found.kind, found.digest) != (kind, digest):
        raise UntrustedArtifactError(
            f"{where} signs the {found.kind} {found.digest}, and {what} is the {kind} {digest}: it is not what was "
            "signed; get the two anew from whoever signs, or sign this one if it is yours"
        )
    signed = [key for key in keys if key.id in found.signatures]
    if not signed:
        raise UntrustedArtifactError(f"{what} is signed by {listed(found.signatures)}, expected {trusted}")
    message = signed_message(kind, digest)
    for key in signed:
        if key.verifies(found.signatures[key.id], message):
            return key
    raise UntrustedArtifactError(
        f"{where} was forged or changed: its signature is not one of {listed([key.id for key in signed])}"
    )


def _entry(document: JsonDocument, members: object) -> tuple[str, bytes]:
    fields = document.record(members, _SIGNATURE_FIELDS, "a signature")
    if fields["algorithm"] != ALGORITHM:
        raise document.corrupt(
            f"got algorithm {shorten(fields['algorithm'])}, this trunnion reads {ALGORITHM}"
        )
    if not DIGEST.fullmatch(fields["key"]) or not _SIGNATURE.fullmatch(fields["signature"]):
        raise document.corrupt("got a key or a signature that is none, expected 64 and 128 hex digits")
    return fields["key"], bytes.fromhex(fields["signature"])
