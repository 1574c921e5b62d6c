"""What is signed: a digest, and of what kind of thing it is the digest."""

from __future__ import annotations

from typing import Final

__all__ = ["ALGORITHM", "ARTIFACT", "BUNDLE", "KINDS", "LOCK", "PROVENANCE", "SCHEMA", "signed_message"]

SCHEMA: Final = "trunnion.signature/1"
"""The schema of signature files, and the first line of what is signed: nothing else that a key signs begins so."""

ALGORITHM: Final = "ed25519"
"""The one algorithm: RFC 8032, without a prehash."""

ARTIFACT: Final = "artifact"
"""The folder of an artifact; its digest is that of its manifest."""

BUNDLE: Final = "bundle"
"""A bundle; its digest is that of its index."""

LOCK: Final = "lock"
"""A lock file; its digest is that of its bytes."""

PROVENANCE: Final = "provenance"
"""A statement of what something was built from; its digest is that of its bytes."""

KINDS: Final = (ARTIFACT, BUNDLE, LOCK, PROVENANCE)
"""What can be signed. A signature of one kind is none of another, whatever the digests are."""


def signed_message(kind: str, digest: str) -> bytes:
    r"""Return the bytes that a key signs: three lines, each ended, none of which can hold a line's end.

    >>> signed_message("bundle", "0" * 64)[:29]
    b'trunnion.signature/1\nbundle\ns'
    """
    return f"{SCHEMA}\n{kind}\nsha256:{digest}\n".encode("ascii")
