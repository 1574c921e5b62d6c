"""Programs built by mpi4py's executor, on processes that MPI starts."""

from __future__ import annotations

import importlib.metadata
import os
import subprocess
import sys
from pathlib import Path

BUILD = """
import os, sys
import trunnion
from trunnion import examples
from trunnion.errors import ArtifactError, CompileError
from trunnion.model.builder import ProgramBuilder
from trunnion.model.code import DeviceCode
from mpi4py.futures import MPIPoolExecutor

def jobs():
    return [
        trunnion.BuildJob(program=examples.load(name).program, target=target, backend="nvrtc", cache=False)
        for name in ("vector_add", "affine")
        for target in ("sm_90a", "sm_80")
    ]

def broken():
    builder = ProgramBuilder("broken", DeviceCode("cuda", 'extern "C" __global__ void k() { no; }'))
    builder.launch("k", (), 1, 1)
    return trunnion.BuildJob(program=builder.build(), target="sm_90a", backend="nvrtc", cache=False)

def main():
    with MPIPoolExecutor() as executor:
        print("workers", executor.num_workers, os.getpid() in {*executor.map(getpid, range(4))})
        built = trunnion.build_many(jobs(), executor)
        assert built == trunnion.build_many(jobs())
        print("built", len(built))
        try:
            trunnion.build_many([broken(), jobs()[0]], executor)
        except ExceptionGroup as group:
            (error,) = group.exceptions
            assert isinstance(error, CompileError) and "no" in error.log
            print("refused", *error.__notes__)
    try:
        trunnion.build_many(jobs()[:2], executor)
    except ExceptionGroup as group:
        assert [type(error) for error in group.exceptions] == [ArtifactError] * 2
        print("shut down")

def getpid(_):
    return os.getpid()

if __name__ == "__main__":
    main()
"""


def installed(name: str) -> str:
    """Return the path of a file of the distribution that brings MPI's library."""
    files = importlib.metadata.files("mpich") or []
    (found,) = (str(file.locate().resolve()) for file in files if file.name == name)
    return found


def test_two_workers_build(tmp_path):
    script = tmp_path / "building_programs.py"
    script.write_text(BUILD)
    command = [installed("mpiexec"), "-n", "3", sys.executable, "-m", "mpi4py.futures", str(script)]
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
        "HYDRA_LAUNCHER": "fork",
        "LD_LIBRARY_PATH": str(Path(installed("libmpi.so.12")).parent),
    }
    done = subprocess.run(
        command, env=environment, capture_output=True, text=True, check=False, timeout=300, cwd=tmp_path
    )
    assert done.stdout.splitlines() == [
        "workers 2 False",
        "built 4",
        "refused it was to be built: 'broken' by 'nvrtc' for cuda:sm_90a",
        "shut down",
    ], done.stderr
    assert done.returncode == 0, done.stderr
