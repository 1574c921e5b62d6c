"""The ``trunnion`` command. Its libraries come with the extra ``cli``."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["main", "missing_library"]

_ADVICE = {
    "typer": "pip install 'trunnion[cli]'",
    "rich": "pip install 'trunnion[cli]'",
    "pluggy": "pip install --upgrade --force-reinstall trunnion",
    "platformdirs": "pip install --upgrade --force-reinstall trunnion",
    "torch": "pip install torch",
    "numpy": "pip install numpy",
    "hypothesis": "pip install 'trunnion[conformance]'",
}


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
        message = missing_library(error)
        if not message:
            raise
        if "--json" in words:
            said = {"type": type(error).__name__, "message": message, "attributes": {}, "notes": []}
            sys.stdout.write(json.dumps({"error": said}, indent=2, sort_keys=True) + "\n")
        else:
            sys.stderr.write(f"{message}\n")
        return 2
    return run(words)


def missing_library(error: ModuleNotFoundError) -> str:
    """Return what to install for a library that is missing; empty if trunnion does not build on it."""
    name = (error.name or "").partition(".")[0]
    return f"this command needs {name}; install it: {_ADVICE[name]}" if name in _ADVICE else ""
