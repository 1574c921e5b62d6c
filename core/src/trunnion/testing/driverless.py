"""What a backend builds where there is no driver: in a process of its own, whose libcuda cannot be loaded.

The process works in another folder, with other folders for temporary files and for caches. Its home is the same, since
a toolchain may be installed there.
"""

from __future__ import annotations

import ctypes
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Final

from trunnion.model.program import KernelProgram
from trunnion.registry import default_registry

if TYPE_CHECKING:
    from collections.abc import Iterable

    from trunnion.artifacts.artifact import Artifact
    from trunnion.contract.spec import BackendSpec

__all__ = ["FilesOrError", "built_without_a_driver", "files_of"]

_DRIVER: Final = "libcuda.so.1"
_NAMES: Final = (_DRIVER, "libcuda.so")

FilesOrError = dict[str, str] | str
"""What `files_of` returns, or what went wrong."""


def built_without_a_driver(backend: str, program: KernelProgram) -> FilesOrError:
    """Return what a backend builds in another folder, where libcuda is an empty file, on a synthetic image.

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
        return done.stderr.strip()[-1000:] or f"the process ended with status {done.returncode}"
    told: dict[str, str] = json.loads(done.stdout)
    return told


def _absolute(found: Iterable[str]) -> str:
    """Return the places that a search goes through, for a process that works in another folder."""
    return os.pathsep.join(str(Path.cwd() / path) for path in found if path)


def files_of(artifact: Artifact) -> dict[str, str]:
    """Return the SHA-256 of each file of an artifact by its name, and under the empty name the artifact's digest."""
    return {"": artifact.digest, **{name: record.sha256 for name, record in artifact.manifest.files.items()}}


def _built(spec: BackendSpec, program: KernelProgram) -> Artifact:
    """Return what a backend builds, as the harness does."""
    from trunnion.artifacts.program_file import PROGRAM_FILE  # noqa: PLC0415 - only the process needs it
    from trunnion.contract.spec import called  # noqa: PLC0415 - likewise
    from trunnion.testing.machine import synthetic_image  # noqa: PLC0415 - likewise

    source = called(spec.load_wrapper)()(spec).wrap(program.plan(), "cuda")
    with tempfile.TemporaryDirectory(prefix="trunnion-suite-") as staging:
        built = called(spec.load_adapter)()(spec).build(source, synthetic_image(program), Path(staging))
    return built.including(PROGRAM_FILE, program.to_json().encode())


def main(backend: str) -> int:
    """Print what a backend builds of the program that is read, as JSON."""
    try:
        ctypes.CDLL(_DRIVER)
    except OSError:
        pass
    else:
        sys.stderr.write(f"{_DRIVER} was loaded, though the first one that is found is an empty file\n")
        return 1
    program = KernelProgram.from_json(sys.stdin.read())
    print(json.dumps(files_of(_built(default_registry().backend(backend), program))))  # noqa: T201 - what it is for
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
