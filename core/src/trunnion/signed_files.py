"""`sign` and `verify`: of whatever lies at a path, an artifact, a bundle, a lock file or a statement of provenance."""

from __future__ import annotations

import hashlib
import os
from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from trunnion.arguments import expect, file_path
from trunnion.artifacts.artifact import check_digest
from trunnion.artifacts.json_document import JsonDocument
from trunnion.artifacts.plain_file import opened_plain_file, read_plain_file, unreadable
from trunnion.built_program import BUNDLE_SUFFIX
from trunnion.bundles.bundle import Verified, verified
from trunnion.bundles.provenance import MAX_PROVENANCE_BYTES, is_provenance, stated_digests
from trunnion.errors import ArtifactError, CorruptArtifactError, shorten
from trunnion.lock import MAX_LOCK_BYTES, is_lock, locked_digests
from trunnion.plain import is_a
from trunnion.signing.identity import SigstoreIdentity
from trunnion.signing.keys import PublicKey, SigningKey, expect_keys
from trunnion.signing.message import LOCK, PROVENANCE
from trunnion.signing.signature import SignatureFile, check_signature, signature_path
from trunnion.storage.refusals import advice, said
from trunnion.storage.scratch import NO_LOCKS
from trunnion.storage.turns import turn

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from os import PathLike
    from pathlib import Path

    from trunnion.bundles.bundle import AbsentPart

__all__ = ["Signed", "sign", "verify", "verify_identity"]

_MOST_BYTES: Final = max(MAX_LOCK_BYTES, MAX_PROVENANCE_BYTES)
_WAIT_SECONDS: Final = 60.0
"""For how long another signer in that folder is waited for, who only reads and writes a small file."""


@dataclass(frozen=True, slots=True)
class Signed:
    """What was signed, and by whom."""

    kind: str
    """``"artifact"``, ``"bundle"``, ``"lock"`` or ``"provenance"``."""

    digest: str
    """Its digest; that of an artifact or a bundle is what `trunnion.load` can be told to expect."""

    signer: PublicKey | SigstoreIdentity
    """Who signed it."""

    absent: tuple[AbsentPart, ...] = ()
    """Of a bundle, the parts that are not here, of which nothing was verified."""


def sign(path: str | PathLike[str], key: SigningKey | str | PathLike[str]) -> Signed:
    """Sign what lies at a path, after every byte of it is verified.

    The signature is a file beside it, ``kernels.trn.sig`` for ``kernels.trn``. One that is there of the same bytes gets
    one more key's; one of other bytes is replaced.

    Parameters
    ----------
    path
        A bundle's index, an artifact's folder, a lock file, or a statement of provenance, with the files beside it that
        it is about.
    key
        The private key, or its file; of one with a password `SigningKey.open`.

    Returns
    -------
    Signed
        What was signed.

    Raises
    ------
    ArtifactError
        If there is nothing that can be signed, or it or the key cannot be read, or the signature cannot be written.
    CorruptArtifactError
        If it is not whole.
    ArgumentValueError
        If the key is no ed25519 private key.
    BackendUnavailableError
        If the library ``cryptography`` is not installed.
    """
    opened = key if is_a(key, SigningKey) else SigningKey.open(key)
    place = file_path(path)
    found = _verified(place, partly=False)
    with _turn(signature_path(place)):
        others = _other_signatures(place, found.kind, found.digest)
        SignatureFile(found.kind, found.digest, others).signed_by(opened).save(signature_path(place))
    return Signed(found.kind, found.digest, opened.public)


def verify(path: str | PathLike[str], trusted_keys: Iterable[PublicKey | str | PathLike[str]]) -> Signed:
    """Refuse what lies at a path unless one of the keys signed it, and every byte of it is whole.

    To load it after this, pass the digest on: ``trunnion.load(path, digest=verify(path, keys).digest)``; or let
    `trunnion.load` verify, which takes ``trusted_keys=``. What lies there may be another thing by then. A bundle may be
    here without some of its parts: `Signed.absent` says of which nothing was verified.

    Parameters
    ----------
    path
        A bundle's index, an artifact's folder, a lock file, or a statement of provenance, with the files beside it that
        it is about.
    trusted_keys
        Public keys, or their files, which nobody else may be able to write.

    Returns
    -------
    Signed
        What it is, and which key signed it.

    Raises
    ------
    UntrustedArtifactError
        If none of the keys signed it, or somebody else could have written a key.
    ArtifactError, CorruptArtifactError
        If there is nothing, or it cannot be read, or it or its signature is not whole.
    ArgumentTypeError, ArgumentValueError
        If a key is none.
    BackendUnavailableError
        If the library ``cryptography`` is not installed.
    """
    keys = expect_keys(trusted_keys, "trusted_keys")
    place = file_path(path)
    found = _verified(place, partly=True)
    signer = check_signature(place, found.kind, found.digest, keys)
    return Signed(found.kind, found.digest, signer, found.absent)


def verify_identity(path: str | PathLike[str], identity: SigstoreIdentity) -> Signed:
    """Refuse what lies at a path unless sigstore vouches that somebody signed it, and every byte of it is whole.

    What is signed with sigstore's own tools is the file that the digest is of: a bundle's index, ``manifest.json`` of
    an artifact's folder, a lock file, a statement of provenance. No network is asked. To load it after this, pass the
    digest on: ``trunnion.load(path, digest=verify_identity(path, identity).digest)``. Parts of a bundle may be absent,
    as for `verify`.

    Parameters
    ----------
    path
        A bundle's index, an artifact's folder, a lock file, or a statement of provenance, with the files beside it that
        it is about. Beside it lies the sigstore bundle, of its name and ``.sigstore.json``.
    identity
        Who must have signed it, and whom sigstore is believed to be.

    Returns
    -------
    Signed
        What it is.

    Raises
    ------
    UntrustedArtifactError
        If they did not sign it, or somebody else could have written the trust root.
    ArtifactError, CorruptArtifactError
        If there is nothing, or it cannot be read, or is not whole.
    ArgumentTypeError
        If it is no identity.
    BackendUnavailableError
        If the library ``sigstore`` is not installed.
    """
    expect(identity, SigstoreIdentity, "identity", "a SigstoreIdentity")
    place = file_path(path)
    found = _verified(place, partly=True)
    identity.check(place, found.digest)
    return Signed(found.kind, found.digest, identity, found.absent)


def _verified(place: Path, *, partly: bool) -> Verified:
    if place.name.endswith(BUNDLE_SUFFIX) or os.path.isdir(place):  # noqa: PTH112 - False for a name that is too long
        return verified(place, partly=partly)
    what, name = shorten(str(place)), shorten(place.name)
    try:
        whole = place.absolute()
        data = read_plain_file(whole, _MOST_BYTES, trusting=True)
        members = JsonDocument(name, _MOST_BYTES).members(data)
        if is_lock(members):
            locked_digests(data, name)
            return Verified(LOCK, hashlib.sha256(data).hexdigest())
        if is_provenance(members):
            _check_stated(place, stated_digests(data, name))
            return Verified(PROVENANCE, hashlib.sha256(data).hexdigest())
    except OSError as error:
        raise unreadable(place, error) from error
    raise ArtifactError(
        f"{what} is no bundle's index (in {BUNDLE_SUFFIX}), no artifact's folder, no lock file and no provenance"
    )


def _check_stated(statement: Path, digests: Mapping[str, str]) -> None:
    """Refuse files that are not those that a statement is about."""
    for name, digest in digests.items():
        file = statement.with_name(name)
        try:
            with opened_plain_file(file.absolute(), trusting=True) as data:
                found = hashlib.file_digest(data, "sha256").hexdigest()
        except OSError as error:
            absent = f"put it beside {shorten(statement.name)}, which is about it"
            raise unreadable(file, error, absent=absent) from error
        check_digest(found, digest, shorten(name))


def _turn(file: Path) -> ExitStack:
    """Return a block in which nobody else writes a signature beside this one: who saves last would drop the other's.

    What is locked is the folder, so that no file of a lock lies beside what is signed. Where the file system has no
    such locks, nobody is waited for.

    Raises
    ------
    ArtifactError
        If another one holds it for too long, or the folder cannot be opened.
    """
    with ExitStack() as held:
        try:
            held.enter_context(turn(file.parent, f"the signature {shorten(file.name)}", _WAIT_SECONDS))
        except OSError as error:
            if error.errno not in NO_LOCKS:
                raise ArtifactError(
                    f"cannot write {shorten(str(file))}: {said(error)}; {advice(error)}"
                ) from error
        return held.pop_all()


def _other_signatures(place: Path, kind: str, digest: str) -> Mapping[str, bytes]:
    """Return the signatures that there are of these bytes; none are kept of others, or from a file that is none."""
    try:
        found = SignatureFile.open(signature_path(place))
    except CorruptArtifactError:
        return {}
    return found.signatures if found and (found.kind, found.digest) == (kind, digest) else {}
