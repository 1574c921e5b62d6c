"""Which store the commands of ``trunnion cache`` are about."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from trunnion.arguments import file_path
from trunnion.artifacts.entries import has_entries
from trunnion.artifacts.location import default_root
from trunnion.artifacts.store import ArtifactStore
from trunnion.artifacts.tiers import expect_no_url
from trunnion.errors import ArtifactError, shorten
from trunnion.storage.ownership import check_owner

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

__all__ = ["store_at", "store_root"]


class _LookedAt(ArtifactStore):
    """A store of which nothing is made or deleted; its folders may not all be there."""

    def _prepare(self, folders: Iterable[Path]) -> None:
        """Refuse folders of others."""
        for folder in folders:
            with suppress(FileNotFoundError):
                check_owner(folder.stat(), self._owner, str(folder))


def store_at(folder: str) -> ArtifactStore | None:
    """Return the store that is meant, to look at; None if this user has none yet. Nothing is made or deleted.

    Parameters
    ----------
    folder
        Where somebody says that it is; empty: the user's.

    Raises
    ------
    ArtifactError
        If there is none in a folder that was named, or it cannot be used.
    """
    root = store_root(folder)
    if has_entries(root):
        return _LookedAt(root)
    if folder:
        raise ArtifactError(
            f"there is no store at {shorten(folder)}; name the folder that trunnion.compile was given as cache="
        )
    return None


def store_root(folder: str) -> Path:
    """Return where the store is, or would be, that `store_at` opens.

    Raises
    ------
    ArtifactError
        If a URL is named: a store is a folder.
    """
    expect_no_url(folder)
    return file_path(folder) if folder else default_root()
