"""Questions to libraries, asked in a process of their own: a broken one hurts nobody, and nothing stays loaded."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

__all__ = ["inquire"]

_SECONDS = 60.0


def inquire(program: str, *arguments: str, seconds: float = _SECONDS) -> dict[str, Any]:
    """Run a short Python program in a fresh interpreter and return the JSON object that it prints last.

    Parameters
    ----------
    program
        The text. It sees this interpreter's packages, and none of the current folder.
    *arguments
        Its ``sys.argv[1:]``.
    seconds
        How long it may take.

    Returns
    -------
    dict[str, Any]
        What it printed; if it fails, crashes or takes too long, ``{"failure": ...}`` says so.
    """
    if not sys.executable:
        return {
            "failure": "sys.executable names no interpreter, so nobody can be asked: set it to the path of one"
        }
    command = [sys.executable, "-P", "-c", program, *arguments]
    try:
        done = subprocess.run(command, capture_output=True, check=False, timeout=seconds)
    except subprocess.TimeoutExpired:
        return {"failure": f"it did not answer within {seconds:g} s"}
    except OSError as error:
        return {"failure": str(error)}
    lines = done.stdout.decode("utf-8", "replace").strip().splitlines()
    try:
        answer = json.loads(lines[-1]) if lines and done.returncode == 0 else None
    except ValueError:
        answer = None
    if isinstance(answer, dict):
        return answer
    said = done.stderr.decode("utf-8", "replace").strip().splitlines()
    return {"failure": said[-1] if said else f"it ended with status {done.returncode}"}
