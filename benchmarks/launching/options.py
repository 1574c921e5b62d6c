"""Options of the benchmarks, refused before anything is measured."""

from __future__ import annotations

import argparse
from pathlib import Path

__all__ = ["new_file", "positive"]


def positive(text: str) -> int:
    """Return a whole number of at least 1.

    Raises
    ------
    argparse.ArgumentTypeError
        If it is none.
    """
    number = int(text) if text.isdecimal() else 0
    if number < 1:
        raise argparse.ArgumentTypeError(f"got {text!a}, expected a whole number of at least 1")
    return number


def new_file(text: str) -> Path:
    """Return the path of a file that can be written: its folder is there.

    Raises
    ------
    argparse.ArgumentTypeError
        If the folder is not there, or the path is a folder itself.
    """
    path = Path(text)
    if not path.parent.is_dir() or path.is_dir():
        raise argparse.ArgumentTypeError(f"got {text!a}, expected a file in a folder that is there")
    return path
