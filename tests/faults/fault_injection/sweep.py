"""Fail each file-system call of every scene in turn.

``python -m fault_injection.sweep LIBRARY OBJECT FOLDER FIRST STEP ERRNO...``, with LIBRARY preloaded. Of the calls of a
scene FIRST and every STEP-th behind it is failed, with each ERRNO; 0 kills the process before it. Each round is a
process of its own, forked from this one: it meets one fault. One line is printed for each, tabs between: the scene, the
errno, which call, its name, what came of it, and what the next call gave; at the end of a scene its number of calls.
"""

from __future__ import annotations

import ctypes
import functools
import os
import shutil
import signal
import sys
import traceback
from pathlib import Path
from typing import TYPE_CHECKING

from fault_injection.scenes import OBJECT, SCENES, Scene, artifact_of, quiet

from trunnion.errors import TrunnionError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

RIGHT, TYPED, WRONG, UNTYPED, LEAK = range(5)
OUTCOMES = ("right", "typed", "WRONG", "UNTYPED", "LEAK")


def main() -> None:
    """Sweep."""
    library, compiled, folder, first, step, *numbers = sys.argv[1:]
    quiet()
    OBJECT.append(Path(compiled).read_bytes())
    faults = ctypes.CDLL(library)
    faults.fault_disarm.restype = ctypes.c_long
    for name, scene in SCENES.items():
        reference = Path(folder, "reference")
        shutil.rmtree(reference, ignore_errors=True)
        reference.mkdir()
        scene.prepare(reference)
        expected = artifact_of(scene.act(reference))
        for number in map(int, numbers):
            for row in _rounds(
                faults, scene, Path(folder), range(int(first), sys.maxsize, int(step)), number, expected
            ):
                sys.stdout.write("\t".join(map(str, (name, number, *row))) + "\n")


def _rounds(
    faults: ctypes.CDLL, scene: Scene, folder: Path, calls: range, number: int, expected: object
) -> Iterator[tuple[object, ...]]:
    root, log = folder / "root", folder / "log"
    for at in calls:
        shutil.rmtree(root, ignore_errors=True)
        root.mkdir()
        log.unlink(missing_ok=True)
        scene.prepare(root)
        came = _faulted(functools.partial(_outcome, faults, scene, (root, log), (at, number), expected))
        made = log.read_text().split()
        if len(made) < at:
            yield "end", len(made), came
            return
        yield at, made[at - 1], came, _again(scene, root, expected)


def _descriptors() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


def _faulted(outcome: Callable[[], int]) -> str:
    """Return what came of the scene with one fault, in a process of its own."""
    sys.stdout.flush()
    child = os.fork()
    if child == 0:
        os._exit(outcome())
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status):
        return "killed" if os.WTERMSIG(status) == signal.SIGKILL else "CRASH"
    return OUTCOMES[os.WEXITSTATUS(status)]


def _outcome(
    faults: ctypes.CDLL, scene: Scene, places: tuple[Path, Path], fault: tuple[int, int], expected: object
) -> int:
    root, log = places
    before = _descriptors()
    faults.fault_arm(os.fsencode(root), ctypes.c_long(fault[0]), fault[1], os.fsencode(log))
    try:
        found = scene.act(root)
    except TrunnionError as error:
        traceback.print_exception(error, limit=0)
        result = UNTYPED if scene.always else TYPED
    except BaseException as error:  # noqa: BLE001 - whatever comes is what is looked for
        traceback.print_exception(error)
        result = UNTYPED
    else:
        result = RIGHT if artifact_of(found) == expected else WRONG
    faults.fault_disarm()
    return LEAK if result in {RIGHT, TYPED} and _descriptors() != before else result


def _again(scene: Scene, root: Path, expected: object) -> str:
    """Return what the next call, without a fault, gives: it has to be right, and to clean up."""
    sys.stdout.flush()
    child = os.fork()
    if child == 0:
        right = False
        try:
            right = artifact_of(scene.act(root)) == expected
        except BaseException as error:  # noqa: BLE001 - the same
            traceback.print_exception(error)
        os._exit(0 if right and not scene.left(root) else 1)
    _, status = os.waitpid(child, 0)
    return "right" if status == 0 else "WRONG-AGAIN"


if __name__ == "__main__":
    main()
