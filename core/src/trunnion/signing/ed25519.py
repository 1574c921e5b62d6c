"""What ``cryptography`` does for signatures: it reads the files of keys, signs and verifies.

The one file that imports it, which is the extra ``sign``: nobody imports this one before a key is wanted.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import (
    load_pem_private_key,
    load_pem_public_key,
    load_ssh_private_key,
    load_ssh_public_key,
)

from trunnion.errors import ArgumentValueError
from trunnion.messages import type_name

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["read_private", "read_public", "verifies"]

_PEM: Final = re.compile(rb"^-----BEGIN ([A-Z0-9 ]+)-----", re.MULTILINE)
_SSH_LINE: Final = re.compile(rb"^[ \t]*(?:sk-)?(?:ssh|ecdsa)-[^\r\n]*", re.MULTILINE)
_OPENSSH: Final = b"OPENSSH PRIVATE KEY"
_PUBLIC: Final = "one ed25519 public key: PEM (BEGIN PUBLIC KEY) or a line of OpenSSH (ssh-ed25519 …)"
_PRIVATE: Final = "an ed25519 private key in PEM (BEGIN PRIVATE KEY, BEGIN OPENSSH PRIVATE KEY)"


def read_public(data: bytes, name: str) -> bytes:
    """Return the 32 bytes of the public key that a file's bytes spell.

    Parameters
    ----------
    data
        The file's bytes.
    name
        What errors call the file.

    Raises
    ------
    ArgumentValueError
        If they are none, or several, or a key of another kind.
    """
    blocks, lines = _PEM.findall(data), _SSH_LINE.findall(data)
    if len(blocks) + len(lines) != 1:
        raise ArgumentValueError("key", f"{name}, which holds {len(blocks) + len(lines)} keys", _PUBLIC)
    if blocks and b"PRIVATE" in blocks[0]:
        raise ArgumentValueError("key", f"{name}, which is a private key", _PUBLIC)
    if blocks:
        key = _loaded(lambda: load_pem_public_key(data), name, _PUBLIC)
    else:
        key = _loaded(lambda: load_ssh_public_key(lines[0].strip()), name, _PUBLIC)
    if not isinstance(key, Ed25519PublicKey):
        raise ArgumentValueError("key", f"{name}, which is of another kind: {type_name(key)}", _PUBLIC)
    return key.public_bytes_raw()


def read_private(data: bytes, name: str, password: bytes | None, variable: str) -> Ed25519PrivateKey:
    """Return the private key that a file's bytes spell.

    Parameters
    ----------
    data
        The file's bytes.
    name
        What errors call the file.
    password
        What it is encrypted with; None: it is not.
    variable
        The environment's variable from which the command takes it, which errors name.

    Raises
    ------
    ArgumentValueError
        If they are none, or a key of another kind, or that is not its password.
    """
    blocks = _PEM.findall(data)
    if _SSH_LINE.findall(data) or any(b"PUBLIC" in block for block in blocks):
        raise ArgumentValueError("key", f"{name}, which is a public key", _PRIVATE)
    load = load_ssh_private_key if blocks[:1] == [_OPENSSH] else load_pem_private_key
    key = _loaded(lambda: load(data, password), name, _PRIVATE, variable)
    if not isinstance(key, Ed25519PrivateKey):
        raise ArgumentValueError("key", f"{name}, which is of another kind: {type_name(key)}", _PRIVATE)
    return key


def verifies(key: bytes, signature: bytes, message: bytes) -> bool:
    """Return whether the private half of a public key made a signature of a message.

    Parameters
    ----------
    key
        The public key's 32 bytes.
    signature, message
        The signature, and what it is to be a signature of.
    """
    try:
        Ed25519PublicKey.from_public_bytes(key).verify(signature, message)
    except InvalidSignature:
        return False
    return True


def _loaded(load: Callable[[], Any], name: str, expected: str, variable: str = "") -> Any:
    """Return what ``cryptography`` makes of a file; what it raises of the file's bytes is the caller's mistake."""
    try:
        return load()
    except (TypeError, ValueError, UnsupportedAlgorithm) as error:
        # With a TypeError it says that a password is lacking, or is not wanted.
        if variable and (isinstance(error, TypeError) or "password" in str(error)):
            expected = f"the key's password, if it has one: SigningKey.open's, or ${variable} for the command"
            raise ArgumentValueError("password", f"{name}: {error}".rstrip("."), expected) from error
        reason = str(error).partition(". ")[0]
        raise ArgumentValueError("key", f"{name}, which cannot be read: {reason}", expected) from error
