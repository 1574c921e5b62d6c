"""Folders for what is written while something is built, and for no longer."""

from __future__ import annotations

import shutil
import tempfile
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from trunnion.storage.interrupts import Uninterrupted
from trunnion.storage.refusals import refusals

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["discard", "scratch_folder", "temporary_folder"]

_PREFIX = "trunnion-"


@contextmanager
def scratch_folder() -> Iterator[Path]:
    """Make a private, empty folder below ``TMPDIR``, and remove it when the block is left, however it is left.

    Raises
    ------
    DeviceRequirementError
        If none can be made.
    """
    with ExitStack() as made:
        with refusals("a folder for temporary files", "or set TMPDIR to a folder of yours"):
            folder = made.enter_context(temporary_folder())
        yield folder


@contextmanager
def temporary_folder(parent: Path | None = None, prefix: str = _PREFIX) -> Iterator[Path]:
    """Make a private, empty folder, and remove it when the block is left, however it is left.

    What of it cannot be removed then stays: that is no reason to lose what was built.

    Parameters
    ----------
    parent
        Where; None: below ``TMPDIR``.
    prefix
        What its name begins with.

    Raises
    ------
    OSError
        If none can be made.
    """
    with Uninterrupted() as held:
        made = tempfile.TemporaryDirectory(dir=parent, prefix=prefix, ignore_cleanup_errors=True)
        try:
            with held.interruptible():
                yield Path(made.name)
        finally:
            with suppress(OSError):  # some of Python's own calls of close are not covered by that option
                made.cleanup()


def discard(directory: Path) -> None:
    """Delete a directory and all in it, as far as it can be deleted; one that is already gone is fine."""
    with suppress(OSError):  # as above
        shutil.rmtree(directory, ignore_errors=True)
