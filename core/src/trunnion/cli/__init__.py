"""The ``trunnion`` command. Its libraries come with the extra ``cli``."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["main"]

_LIBRARIES = frozenset({"typer", "rich"})


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line.

    Parameters
    ----------
    arguments
        The words after ``trunnion``; None: those of this process.

    Returns
    -------
    int
        The exit status: 0, all is well; 1, something is wrong with a program, a plugin or a result; 2, the
        command itself cannot be run as it was typed, or its libraries are not installed.
    """
    words = list(sys.argv[1:] if arguments is None else arguments)
    try:
        from trunnion.cli.application import run
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in _LIBRARIES:
            raise
        sys.stderr.write(
            f"the trunnion command needs {error.name}; install it: pip install 'trunnion[cli]'\n"
        )
        return 2
    return run(words)
