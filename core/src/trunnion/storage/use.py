"""When something that is kept was used last: its folder's time says it, and needs no lock."""

from __future__ import annotations

import os
import time
from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["mark_used"]


def mark_used(folder: Path, every_seconds: float = 0.0) -> None:
    """Note that what a folder keeps was used now, where that can be noted.

    Parameters
    ----------
    folder
        The folder.
    every_seconds
        How old the last note must be: to write costs more than to look. One as far in the future, of a clock that went
        back, is replaced too.
    """
    with suppress(OSError):
        if not every_seconds or abs(time.time() - folder.stat().st_mtime) > every_seconds:
            os.utime(folder)
