"""``python -m trunnion_tilelang --backend B script.py [args]``: runs a program of TileLang's, switched to trunnion."""

from __future__ import annotations

import argparse
import runpy
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from trunnion.errors import BackendUnavailableError
from trunnion_tilelang.switch import install

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> None:
    """Run a script, or a module, with its own arguments, while TileLang's functions are trunnion's.

    Parameters
    ----------
    arguments
        What follows the command; None: the process's own.

    Raises
    ------
    SystemExit
        With 2, if the command cannot be read, or TileLang is not there; whatever the script raises leaves as it is.
    """
    parser = _parser()
    said = parser.parse_args(arguments)
    script = said.program[0]
    if not said.module and not Path(script).is_file():
        parser.error(f"there is no file {script}")
    try:
        switch = install(said.backend, compiler=said.compiler, cache=said.cache)
    except BackendUnavailableError as error:
        parser.error(str(error))
    before = sys.argv, sys.path
    # As Python itself has them for a script, and for -m.
    sys.argv = said.program
    sys.path = [str(Path.cwd() if said.module else Path(script).resolve().parent), *sys.path]
    try:
        with switch:
            if said.module:
                runpy.run_module(script, run_name="__main__", alter_sys=True)
            else:
                # As Python itself: TileLang reads a kernel's text from there, and a program may change its folder.
                runpy.run_path(str(Path(script).absolute()), run_name="__main__")
    finally:
        sys.argv, sys.path = before


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        "python -m trunnion_tilelang",
        description="Run a program that was written for TileLang; trunnion compiles and launches its kernels.",
    )
    parser.add_argument("--backend", default="auto", help="who launches, as for trunnion.compile")
    parser.add_argument("--compiler", help="who compiles device code, as for trunnion.compile")
    parser.add_argument(
        "--no-cache", dest="cache", action="store_false", help="keep nothing of what is compiled"
    )
    parser.add_argument("-m", dest="module", action="store_true", help="SCRIPT is a module's name")
    # One argument for both: of two, the first one's reader would take a "--" that is the program's.
    parser.add_argument(
        "program", metavar="SCRIPT", nargs=argparse.PARSER, help="the program's file, and its own arguments"
    )
    return parser


if __name__ == "__main__":
    main()
