"""Identities that sigstore vouches for: who signed, in the place of with which key."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from trunnion.arguments import expect_text, file_path
from trunnion.artifacts.plain_file import read_plain_file, unreadable
from trunnion.errors import (
    ArgumentValueError,
    ArtifactError,
    BackendUnavailableError,
    UntrustedArtifactError,
    shorten,
)
from trunnion.messages import first_line, type_name
from trunnion.plain import ForeignError, asked
from trunnion.signing.signature import beside

if TYPE_CHECKING:
    from os import PathLike
    from pathlib import Path
    from types import ModuleType

__all__ = ["SIGSTORE_SUFFIX", "SigstoreIdentity"]

SIGSTORE_SUFFIX: Final = ".sigstore.json"
"""What the name of a sigstore bundle ends in, as sigstore's own tools have it."""

_MOST_BYTES: Final = 1 << 22


@dataclass(frozen=True, slots=True)
class SigstoreIdentity:
    """Somebody who signs with sigstore: a person or a workflow, as a provider of identities knows them.

    Raises
    ------
    ArgumentTypeError, ArgumentValueError
        If identity or issuer is no text, or empty.
    ArtifactError
        If the trust root is no path.
    """

    identity: str
    """An address of e-mail, or the URI of a workflow, exactly as the certificate has it."""

    issuer: str
    """The provider that knows them: ``"https://token.actions.githubusercontent.com"``."""

    trust_root: str | PathLike[str]
    """A ``trusted_root.json``: whose certificates and logs are believed. It and its folder must be root's or this
    user's, and nobody else may write to them. Nothing is fetched."""

    def __post_init__(self) -> None:
        for name in ("identity", "issuer"):
            if not expect_text(getattr(self, name), name, "a text"):  # an empty issuer would be any
                raise ArgumentValueError(name, "an empty text", "who must have signed, and who says so")
        file_path(self.trust_root)

    def check(self, path: Path, digest: str) -> None:
        """Refuse something that this identity did not sign.

        Parameters
        ----------
        path
            Where it lies; the sigstore bundle lies beside it, of its name and ``.sigstore.json``.
        digest
            Its digest, of the bytes that were read and will be used.

        Raises
        ------
        UntrustedArtifactError
            If there is no sigstore bundle, or it is of something else or somebody else, or is not good; or somebody
            else could have written the trust root.
        ArtifactError, CorruptArtifactError
            If the bundle or the trust root cannot be read, or is no plain file, or too large.
        BackendUnavailableError
            If the library ``sigstore`` is not installed.
        """
        library, file = _sigstore(), beside(path, SIGSTORE_SUFFIX)
        where = shorten(file.name)
        root = _file_bytes(file_path(self.trust_root), trusting=False)
        try:
            data = _file_bytes(file, trusting=True)
        except FileNotFoundError:
            raise UntrustedArtifactError(
                f"{shorten(str(path))} is not signed: there is no {where} beside it, expected one by {self.identity}"
            ) from None
        try:
            asked(lambda: library.check(data, digest, root, identity=self.identity, issuer=self.issuer))
        except ForeignError as error:
            cause = error.__cause__
            told = f"{type_name(cause)}: {first_line(cause)}" if cause is not None else ""
            raise UntrustedArtifactError(
                f"sigstore does not find in {where} that {self.identity} signed {digest}: {told}"
            ) from cause


def _file_bytes(file: Path, *, trusting: bool) -> bytes:
    try:
        return read_plain_file(file.absolute(), _MOST_BYTES, trusting=trusting)
    except FileNotFoundError:
        if trusting:
            raise
        raise ArtifactError(f"there is no trust root at {shorten(str(file))}") from None
    except OSError as error:
        raise unreadable(file, error) from error


def _sigstore() -> ModuleType:
    """Return the module that needs ``sigstore``, which is imported when an identity is first asked for.

    Raises
    ------
    BackendUnavailableError
        If it is not installed.
    """
    try:
        from trunnion.signing import sigstore_check  # noqa: PLC0415 - an extra: only who names an identity needs it
    except ImportError as error:
        raise BackendUnavailableError(
            "sigstore", "", "it verifies identities, and cannot be imported; pip install 'trunnion[sigstore]'"
        ) from error
    return sigstore_check
