"""Where artifacts are kept if nobody names a folder, and whether they are: what the environment says of it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Final

from trunnion.errors import ArgumentValueError, ArtifactError, shorten
from trunnion.storage.user_caches import user_caches

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["VARIABLE", "default_root", "is_kept_by_default"]

VARIABLE: Final = "TRUNNION_CACHE"
"""The environment variable that turns the user's cache off, or moves it; read whenever it is needed."""

_OFF, _ON = "0", "1"


def is_kept_by_default() -> bool:
    """Return whether `trunnion.compile` keeps what it builds if nobody names a folder.

    Raises
    ------
    ArgumentValueError
        If the environment variable `VARIABLE` says neither.
    """
    return _said(os.environ) != _OFF


def default_root() -> Path:
    """Return where artifacts are kept by default.

    That is the folder that the environment variable `VARIABLE` names, else one below the platform's folder for this
    user's caches.

    Raises
    ------
    ArgumentValueError
        If the variable says something else.
    ArtifactError
        If it names none, and this user has no home either.
    """
    said = _said(os.environ)
    if said not in {"", _ON, _OFF}:
        return Path(said)
    try:
        return user_caches() / "artifacts"
    except OSError as error:
        raise ArtifactError(
            f"this user has no home to keep artifacts in; set {VARIABLE} to a folder of yours"
        ) from error


def _said(environment: Mapping[str, str]) -> str:
    """Return the variable's value; empty if it is not set."""
    said = environment.get(VARIABLE, "")
    # Not a relative path: it would be another folder wherever the process happens to be.
    if said not in {"", _ON, _OFF} and not os.path.isabs(said):  # noqa: PTH117 - before it is known to be a path
        words = f"{_OFF} (no cache), {_ON} (the user's) or the absolute path of a folder"
        got = "a URL" if "://" in said else shorten(said)  # which may have a password
        raise ArgumentValueError(VARIABLE, got, words)
    return said
