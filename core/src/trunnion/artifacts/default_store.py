"""The store that nobody asked for: it never keeps a program from being compiled."""

from __future__ import annotations

import functools
import logging
from typing import TYPE_CHECKING

from trunnion.artifacts.location import is_kept_by_default
from trunnion.artifacts.store import ArtifactStore
from trunnion.errors import ArtifactError, CorruptArtifactError, UntrustedArtifactError

if TYPE_CHECKING:
    from trunnion.artifacts.artifact import Artifact

__all__ = ["DefaultStore", "default_store"]

_MOST_TOLD = 256


class DefaultStore(ArtifactStore):
    """A store of which each refusal is told once in a process, in the log ``trunnion``, where others warn or raise.

    Whoever named no folder can do nothing with a warning at each call, and a process that turns warnings into errors
    must not fail because of a cache that it did not ask for.
    """

    def tell(self, text: str, category: type[Warning]) -> None:
        """Say it once in a process, in the log."""
        del category
        _tell_once(text)

    def _read_once(self, key: str) -> Artifact | None:
        """Return a verified artifact; one that others could have written is as good as a corrupt one."""
        try:
            return super()._read_once(key)
        except UntrustedArtifactError as error:
            raise CorruptArtifactError(key[:12], str(error)) from error


def default_store() -> DefaultStore | None:
    """Return the store of this user; None if there is to be none, or there can be none, which is told once.

    Raises
    ------
    ArgumentValueError
        If the environment says of it what nobody understands.
    """
    if not is_kept_by_default():
        return None
    try:
        return DefaultStore()
    except ArtifactError as error:
        _tell_once(f"what is compiled is not kept: {error}")
        return None


@functools.lru_cache(_MOST_TOLD)
def _tell_once(text: str) -> None:
    logging.getLogger("trunnion").warning("%s", text)
