"""What a backend builds where there is no driver: in a process of its own, whose libcuda cannot be loaded.

The process works in another folder, with other folders for temporary files and for caches, under another user's name
and on another day, on a machine of another name with more processors, as its libraries tell. Its home is the same,
since a toolchain may be installed there.

What an import does for the whole process only a fresh one shows: so this one looks at that, too.
"""

from __future__ import annotations

import ctypes
import datetime as dt
import json
import os
import socket
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

from trunnion.model.program import KernelProgram
from trunnion.registry import default_registry
from trunnion.testing.process_state import changed_in_process, process_state

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from trunnion.artifacts.artifact import Artifact
    from trunnion.contract.adapter import KernelAdapter
    from trunnion.contract.source import SourceWrapper

__all__ = ["FilesOrError", "built_without_a_driver", "files_of", "versions_of"]

_DRIVER: Final = "libcuda.so.1"
_NAMES: Final = (_DRIVER, "libcuda.so")
_USER: Final = {"USER": "somebody", "LOGNAME": "somebody", "LC_ALL": "POSIX", "TZ": "UTC+11"}
_HOST: Final = "elsewhere.invalid"
_AGO: Final = (
    400 * 86400
)  # seconds: earlier, so that no file that another process works with seems to be an old one

FilesOrError = dict[str, str] | str
"""What `files_of` and `versions_of` return, or what went wrong."""


def built_without_a_driver(backend: str, program: KernelProgram) -> FilesOrError:
    """Return what a backend builds where libcuda is an empty file and all else is unlike, too, on a synthetic image.

    Parameters
    ----------
    backend
        The name of an installed backend.
    program
        What is built.
    """
    with tempfile.TemporaryDirectory(prefix="trunnion-suite-") as folder:
        for name in _NAMES:
            (Path(folder) / name).touch()
        places = {name: str(Path(folder) / name.lower()) for name in ("PWD", "TMPDIR", "XDG_CACHE_HOME")}
        for place in places.values():
            Path(place).mkdir()
        found = os.environ.get("LD_LIBRARY_PATH", "").split(os.pathsep)
        environment = {
            **os.environ,
            **places,
            **_USER,
            "LD_LIBRARY_PATH": _absolute([folder, *found]),
            "PYTHONPATH": _absolute(sys.path),
        }
        done = subprocess.run(
            [sys.executable, "-P", "-m", __name__, backend],
            input=program.to_json(),
            capture_output=True,
            text=True,
            check=False,
            env=environment,
            cwd=places["PWD"],
        )
    if done.returncode:
        why = done.stderr.strip()[-1000:] or f"the process ended with status {done.returncode}"
        return f"where no driver can be loaded nothing was built: {why}"
    told: FilesOrError = json.loads(done.stdout)
    return told


def _absolute(found: Iterable[str]) -> str:
    """Return the places that a search goes through, for a process that works in another folder."""
    return os.pathsep.join(str(Path.cwd() / path) for path in found if path)


def files_of(artifact: Artifact) -> dict[str, str]:
    """Return the SHA-256 of each file of an artifact by its name, and under the empty name the artifact's digest."""
    return {"": artifact.digest, **{name: record.sha256 for name, record in artifact.manifest.files.items()}}


def versions_of(wrapper: SourceWrapper, adapter: KernelAdapter) -> dict[str, str]:
    """Return what a backend puts into the keys of a cache, by what it is."""
    return {"the wrapper's version": wrapper.version, "the adapter's fingerprint()": adapter.fingerprint()}


def _built(wrapper: SourceWrapper, adapter: KernelAdapter, program: KernelProgram) -> Artifact:
    """Return what a backend builds, as the harness does."""
    from trunnion.artifacts.program_file import PROGRAM_FILE  # noqa: PLC0415 - only the process needs it
    from trunnion.testing.machine import synthetic_image  # noqa: PLC0415 - likewise

    source = wrapper.wrap(program.plan(), "cuda")
    with tempfile.TemporaryDirectory(prefix="trunnion-suite-") as staging:
        built = adapter.build(source, synthetic_image(program), Path(staging))
    return built.including(PROGRAM_FILE, program.to_json().encode())


def _move_elsewhere() -> None:
    """Have the process's libraries tell of another day, and of another machine with more processors."""
    now, clock, nanoseconds, text = time.time, time.localtime, time.time_ns, time.strftime
    system, count = os.uname(), (os.cpu_count() or 1) + 1

    class Earlier(dt.datetime):
        @classmethod
        def now(cls, tz: dt.tzinfo | None = None) -> Earlier:
            return cls.fromtimestamp(time.time(), tz)

    changed: dict[object, dict[str, object]] = {
        time: {
            "time": lambda: now() - _AGO,
            "time_ns": lambda: nanoseconds() - _AGO * 10**9,
            "localtime": lambda seconds=None: clock(now() - _AGO if seconds is None else seconds),
            "strftime": lambda form, given=None: text(form, given or time.localtime()),
        },
        dt: {"datetime": Earlier},
        socket: {"gethostname": lambda: _HOST},
        os: {"cpu_count": lambda: count, "uname": lambda: os.uname_result((system[0], _HOST, *system[2:]))},
    }
    for module, functions in changed.items():
        for name, function in functions.items():
            setattr(module, name, function)


@contextmanager
def _watched(wrong: list[str]) -> Iterator[None]:
    """Note what was changed for the whole process, the environment also if it was so already.

    It is where the process that started this one has the change from the same import.
    """
    put: dict[str, set[str]] = {}

    def note(event: str, given: tuple[bytes, ...]) -> None:
        if event == "os.putenv":
            name, value = map(os.fsdecode, given)
            put.setdefault(name, set()).add(value)

    sys.addaudithook(note)
    before, variables = process_state(), dict(os.environ)
    yield
    again = [name for name, values in put.items() if values == {variables.get(name)}]
    changed = [*changed_in_process(before), *(f"{name} in the environment" for name in again)]
    if changed:
        wrong.append(f"importing changes for the whole process: {', '.join(changed)}")


def _found(backend: str) -> tuple[list[str], SourceWrapper, KernelAdapter]:
    """Return a backend that is imported now, and what is wrong with how it is, and with its `probe`."""
    from trunnion.contract.spec import called  # noqa: PLC0415 - only the process needs it

    wrong: list[str] = []
    with _watched(wrong):
        spec = default_registry().backend(backend)
        wrapper = called(spec.load_wrapper)()
        if "torch" in sys.modules:
            wrong.append("what announces the backend, or its wrapper's module, imports torch")
        try:
            spec.probe()
        except Exception as error:  # noqa: BLE001 - it may raise nothing
            wrong.append(f"probe() raised {type(error).__name__}: {error}")
        adapter = called(spec.load_adapter)()
    return wrong, wrapper(spec), adapter(spec)


def main(backend: str) -> int:
    """Print what a backend builds of the program that is read, or what is wrong, as JSON."""
    try:
        ctypes.CDLL(_DRIVER)
    except OSError:
        pass
    else:
        sys.stderr.write(f"{_DRIVER} was loaded, though the first one that is found is an empty file\n")
        return 1
    program = KernelProgram.from_json(sys.stdin.read())
    _move_elsewhere()
    wrong, wrapper, adapter = _found(backend)
    told: FilesOrError = "; ".join(wrong)
    if not told:
        told = {**files_of(_built(wrapper, adapter, program)), **versions_of(wrapper, adapter)}
    print(json.dumps(told))  # noqa: T201 - what it is for
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
