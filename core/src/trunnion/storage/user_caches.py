"""Where this user's caches lie."""

from __future__ import annotations

import functools
import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

__all__ = ["user_caches"]

_HOMELESS = "this user has no home; set XDG_CACHE_HOME to a folder of yours"


def user_caches() -> Path:
    """Return the folder of all that trunnion keeps for this user, below the platform's for caches.

    Raises
    ------
    OSError
        If this user has no home, as a container's that nobody entered in its list of users.
    """
    import platformdirs  # noqa: PLC0415 - only who keeps something pays for it

    return _below(platformdirs.user_cache_path, os.environ.get("XDG_CACHE_HOME"), os.environ.get("HOME"))


@functools.lru_cache(maxsize=1)
def _below(ask: Callable[[str], Path], *_: str | None) -> Path:
    """Return the folder as long as the variables that name it are the same: each hit of a cache asks several times."""
    try:
        found = ask("trunnion")
    except RuntimeError as error:  # a platformdirs of 2026 says so itself
        raise OSError(f"{_HOMELESS}: {error}") from error
    if not found.is_absolute():  # "~/.cache", below wherever the process happens to be
        raise OSError(_HOMELESS)
    return found
