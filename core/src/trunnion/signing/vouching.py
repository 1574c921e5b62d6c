"""What a caller says of what may be loaded: a digest, keys, both, or nothing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from trunnion.artifacts.artifact import check_digest, expect_digests
from trunnion.errors import ArgumentValueError, shorten
from trunnion.signing.keys import PublicKey, expect_keys
from trunnion.signing.signature import check_signature

if TYPE_CHECKING:
    from collections.abc import Iterable
    from os import PathLike
    from pathlib import Path
    from typing import Self

__all__ = ["Vouching"]


@dataclass(frozen=True, slots=True)
class Vouching:
    """What vouches for something, in the place of who could have written it."""

    digests: tuple[str, ...] | None
    """The digests of which it must have one; None: any."""

    keys: tuple[PublicKey, ...] | None
    """The keys of which one must have signed it; None: nobody must."""

    @classmethod
    def of(
        cls,
        digest: str | Iterable[str] | None,
        trusted_keys: Iterable[PublicKey | str | PathLike[str]] | None,
    ) -> Self:
        """Return what a caller passes; errors are those of `expect_digests` and `expect_keys`."""
        return cls(
            None if digest is None else expect_digests(digest),
            None if trusted_keys is None else expect_keys(trusted_keys, "trusted_keys"),
        )

    @property
    def vouches(self) -> bool:
        """Whether anything does; else what is read must be root's or this user's.

        A digest fixes what is loaded, and a signature who decided on it, neither of which whoever can write there can
        change: with either, it does not matter who that is.
        """
        return self.digests is not None or self.keys is not None

    def check(self, path: Path | None, kind: str, digest: str) -> None:
        """Refuse something for which not all vouches that must.

        Parameters
        ----------
        path
            Where it was read; its signature lies beside it. None: it is in memory.
        kind
            What it is: one of `trunnion.signing.message.KINDS`.
        digest
            The digest of the bytes that were read, and that will be used.

        Raises
        ------
        UntrustedArtifactError
            If its digest is another, or none of the keys signed it.
        ArgumentTypeError, ArgumentValueError
            If the digest is none, or keys are trusted, and it is in memory.
        ArtifactError, CorruptArtifactError, BackendUnavailableError
            As `check_signature`.
        """
        if self.digests is not None:
            check_digest(digest, self.digests, f"the {kind}" if path is None else shorten(str(path)))
        if self.keys is None:
            return
        if path is None:
            got = f"keys for an {kind} in memory"
            raise ArgumentValueError("trusted_keys", got, "the path of one, beside which its signature lies")
        check_signature(path, kind, digest, self.keys)
