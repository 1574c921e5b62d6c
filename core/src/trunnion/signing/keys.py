"""Keys that sign, and keys that are trusted: ed25519, in the files that OpenSSL and OpenSSH write."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from trunnion.arguments import expect, file_path
from trunnion.artifacts.plain_file import read_plain_file, unreadable
from trunnion.errors import (
    ArgumentTypeError,
    ArgumentValueError,
    BackendUnavailableError,
    LifecycleError,
    shorten,
)
from trunnion.messages import type_name
from trunnion.plain import ForeignError, is_a, path_text, sequence

if TYPE_CHECKING:
    from collections.abc import Iterable
    from os import PathLike
    from pathlib import Path
    from types import ModuleType

    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

__all__ = ["PASSWORD", "PublicKey", "SigningKey", "expect_keys"]

PASSWORD: Final = "TRUNNION_KEY_PASSWORD"
"""The environment's variable that holds the key's password: what stands on a command line is seen by everybody."""

_MOST_BYTES: Final = 1 << 16
_MOST_KEYS: Final = 1 << 10
_RAW_BYTES: Final = 32
_SMALL_ORDER: Final = frozenset(
    bytes.fromhex(one)
    for one in (
        f"{0:064x}",
        f"01{0:062x}",
        "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05",
        "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a",
        *(f"{low}{'ff' * 30}7f" for low in ("ec", "ed", "ee")),
    )
)
"""Points of small order, without their sign: for such a key there are signatures that need no private one (RFC 8032,
section 8.9, leaves it to whoever verifies)."""

_SPKI_HEAD: Final = bytes.fromhex(
    "302a300506032b6570032100"
)  # RFC 8410: DER of such a key up to its own bytes


@dataclass(frozen=True, slots=True)
class PublicKey:
    """An ed25519 public key: whoever holds its other half can sign.

    Raises
    ------
    ArgumentTypeError, ArgumentValueError
        If these are not 32 bytes.
    """

    raw: bytes
    """The key, as RFC 8032 spells it: 32 bytes."""

    def __post_init__(self) -> None:
        if len(expect(self.raw, bytes, "raw", "32 bytes")) != _RAW_BYTES:
            raise ArgumentValueError("raw", f"{len(self.raw)} bytes", f"{_RAW_BYTES} bytes")
        if bytes((*self.raw[:-1], self.raw[-1] & 0x7F)) in _SMALL_ORDER:
            raise ArgumentValueError("raw", self.raw.hex(), "a key that not everybody can sign for")

    @property
    def id(self) -> str:
        """What signatures call it: the SHA-256, in hex, of the key in DER, as ``openssl pkey -pubin`` writes it."""
        return hashlib.sha256(_SPKI_HEAD + self.raw).hexdigest()

    @classmethod
    def open(cls, path: str | PathLike[str]) -> PublicKey:
        """Read a public key. Who can change the file decides who is trusted, so nobody else may be able to.

        Parameters
        ----------
        path
            A file with one key, in PEM or in OpenSSH's form. It and its folder must be root's or this user's, and
            nobody else may write to them.

        Raises
        ------
        ArtifactError
            If there is no such file, or it cannot be read.
        CorruptArtifactError
            If it is not a plain file, or too large.
        UntrustedArtifactError
            If somebody else could have written it.
        ArgumentValueError
            If it is no ed25519 public key, or holds several keys.
        BackendUnavailableError
            If the library ``cryptography`` is not installed.
        """
        file = file_path(path)
        return cls.read(_file_bytes(file, trusting=False), shorten(str(file)))

    @classmethod
    def read(cls, data: bytes, name: str = "the key") -> PublicKey:
        """Return the public key that a file's bytes spell, in PEM or in OpenSSH's form.

        Parameters
        ----------
        data
            The bytes.
        name
            What errors call the file.

        Raises
        ------
        ArgumentTypeError
            If they are no bytes.
        ArgumentValueError
            If they are no ed25519 public key, or several keys.
        BackendUnavailableError
            If the library ``cryptography`` is not installed.
        """
        return cls(_ed25519().read_public(expect(data, bytes, "data", "the bytes of a key's file"), name))

    def verifies(self, signature: bytes, message: bytes) -> bool:
        """Return whether the other half of this key made a signature of a message.

        Raises
        ------
        BackendUnavailableError
            If the library ``cryptography`` is not installed.
        """
        good: bool = _ed25519().verifies(self.raw, signature, message)
        return good


class SigningKey:
    """An ed25519 private key. It shows nothing of itself, and does not pickle.

    Parameters
    ----------
    key
        What ``cryptography`` made of it.
    """

    __slots__ = ("_key", "public")

    def __init__(self, key: Ed25519PrivateKey) -> None:
        self._key = key
        self.public = PublicKey(key.public_key().public_bytes_raw())

    @classmethod
    def open(cls, path: str | PathLike[str], *, password: bytes | None = None) -> SigningKey:
        """Read a private key.

        Parameters
        ----------
        path
            A file in PEM, as ``openssl genpkey`` and ``ssh-keygen`` write it.
        password
            What it is encrypted with; None: it is not.

        Raises
        ------
        ArtifactError
            If there is no such file, or it cannot be read.
        CorruptArtifactError
            If it is not a plain file, or too large.
        ArgumentTypeError, ArgumentValueError
            If it is no ed25519 private key, or that is not its password.
        BackendUnavailableError
            If the library ``cryptography`` is not installed.
        """
        file = file_path(path)
        data = _file_bytes(file, trusting=True)
        if password is not None:
            expect(password, bytes, "password", "bytes, or None")
        return cls(_ed25519().read_private(data, shorten(str(file)), password, PASSWORD))

    def sign(self, message: bytes) -> bytes:
        """Return the signature of a message: 64 bytes."""
        return self._key.sign(message)

    def __repr__(self) -> str:
        return f"<SigningKey {self.public.id[:12]}>"

    def __reduce__(self) -> str:
        raise LifecycleError("a signing key is not written down; open its file again")


def expect_keys(given: Iterable[PublicKey | str | PathLike[str]], name: str) -> tuple[PublicKey, ...]:
    """Return the keys that a caller trusts, those that are paths read from their files.

    Parameters
    ----------
    given
        What was passed.
    name
        The argument's name.

    Raises
    ------
    ArgumentTypeError
        If it is no sequence of keys and paths.
    ArgumentValueError
        If it is empty, or too long, or one is no such key.
    ArtifactError, CorruptArtifactError, UntrustedArtifactError, BackendUnavailableError
        As `PublicKey.open`.
    """
    expected = "a list of PublicKeys, or of paths of public keys"
    try:
        several = sequence(given, _MOST_KEYS + 1)
    except ForeignError as error:
        raise ArgumentTypeError(name, type_name(given), expected) from error.__cause__
    if several is None:
        raise ArgumentTypeError(name, type_name(given), expected)
    if not 0 < len(several) <= _MOST_KEYS:  # whoever trusts nobody can load nothing: it is a mistake
        raise ArgumentValueError(name, f"{len(several)} keys", f"1 to {_MOST_KEYS}")
    return tuple(_expect_key(one, name, expected) for one in several)


def _expect_key(given: Any, name: str, expected: str) -> PublicKey:
    if is_a(given, PublicKey):
        return given
    if path_text(given) is None:
        raise ArgumentTypeError(name, type_name(given), expected)
    return PublicKey.open(given)


def _file_bytes(file: Path, *, trusting: bool) -> bytes:
    try:
        return read_plain_file(file.absolute(), _MOST_BYTES, trusting=trusting)
    except OSError as error:
        raise unreadable(file, error) from error


def _ed25519() -> ModuleType:
    """Return the module that needs ``cryptography``, which is imported when a key is first wanted.

    Raises
    ------
    BackendUnavailableError
        If it is not installed.
    """
    try:
        from trunnion.signing import ed25519  # noqa: PLC0415 - an extra: only who signs or verifies needs it
    except ImportError as error:
        raise BackendUnavailableError(
            "cryptography", "", "it signs and verifies, and cannot be imported; pip install 'trunnion[sign]'"
        ) from error
    return ed25519
