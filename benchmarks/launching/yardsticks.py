"""What our launcher is measured against: a loop in C++, and a bare call through tvm-ffi."""

from __future__ import annotations

import functools
import importlib
import os
import shutil
import struct
import subprocess
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from launching.case import SHAPE, THREADS
from launching.subject import NotHereError, Subject
from launching.trial import NativeLoop, PythonCall

if TYPE_CHECKING:
    from collections.abc import Iterator

    from launching.stage import Stage
    from launching.trial import Trial

__all__ = ["BARE", "RAW", "YARDSTICKS", "build", "cuda_header_directory"]

RAW = "raw C++ loop"
"""The row that differences are taken to: maps are encoded once, before the loop."""

BARE = "bare tvm-ffi call"
"""The row that a difference is divided by."""

_SOURCE = Path(__file__).with_name("yardsticks.cc")
_WORD = 7


def cuda_header_directory() -> Path | None:
    """Return the folder of ``cuda.h``, from a toolkit or a wheel; None if there is none."""
    return next((folder for folder in _header_directories() if (folder / "cuda.h").is_file()), None)


def _header_directories() -> Iterator[Path]:
    for variable in ("CUDA_HOME", "CUDA_PATH"):
        if os.environ.get(variable):
            yield Path(os.environ[variable], "include")
    nvcc = shutil.which("nvcc")
    if nvcc:
        yield Path(nvcc).resolve().parents[1] / "include"
    yield Path("/usr/local/cuda/include")
    try:
        pathfinder: Any = importlib.import_module("cuda.pathfinder")
    except ImportError:
        return
    for library in ("cudart", "nvrtc"):
        found = pathfinder.find_nvidia_header_directory(library)
        if found:
            yield Path(found)


@functools.cache
def build() -> Any:
    """Compile and load the yardsticks; return their module, with ``nothing``, ``seen`` and ``raw``.

    Raises
    ------
    NotHereError
        If there is no tvm-ffi, no compiler or no ``cuda.h``, or the compiler fails.
    """
    try:
        ffi: Any = importlib.import_module("tvm_ffi")
    except ImportError as error:
        raise NotHereError("not installed: pip install apache-tvm-ffi") from error
    info: Any = importlib.import_module("tvm_ffi.libinfo")
    headers, compiler = cuda_header_directory(), shutil.which("g++")
    if headers is None or compiler is None:
        raise NotHereError("needs g++ and cuda.h: pip install nvidia-cuda-runtime, or a CUDA toolkit")
    library = Path(tempfile.mkdtemp(prefix="trunnion-benchmark-")) / "yardsticks.so"
    folders = [f"-I{folder}" for folder in (*info.include_paths(), headers)]
    command = [compiler, "-std=c++17", "-O2", "-shared", "-fPIC", *folders]
    command += [str(_SOURCE), info.find_libtvm_ffi(), "-ldl", "-o", str(library)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise NotHereError(f"g++ failed: {done.stderr}")
    return ffi.load_module(str(library))


def _raw(stage: Stage, *, encode_each: bool) -> Trial:
    module, case = build(), stage.case
    if encode_each and not case.maps:
        raise NotHereError("nothing to encode")
    stream = torch.cuda.current_stream(0).cuda_stream
    head = (int(stage.kernel), stream, case.grid, THREADS, case.maps, int(encode_each), int(case.packed))
    values = [tensor.data_ptr() for tensor in stage.tensors] + [*stage.number_bits]
    if case.packed:
        rows = case.shape[0]
        values += [rows, 2 * rows, 0, int.from_bytes(struct.pack("<f", 1.0), "little")]
    raw = module.raw

    def loop(word: int, launches: int) -> float:
        return float(raw(*head, word, launches * case.launches, *SHAPE, *values))

    return NativeLoop(loop)


def _bare(stage: Stage) -> Trial:
    module = build()
    names = stage.named | stage.numbers
    trial = PythonCall(f"nothing({', '.join([*names, 'word'])})", {"nothing": module.nothing, **names})
    trial.once(_WORD)
    if module.seen() != ((len(names) + 1) << 32) + _WORD:
        raise NotHereError("WRONG: it did not receive what was passed")
    return trial


YARDSTICKS = (
    Subject(
        RAW,
        "yardstick",
        "one configuration and one set of parameters for all launches, maps encoded once before the loop; no Python",
        functools.partial(_raw, encode_each=False),
    ),
    Subject(
        "raw C++ loop, maps encoded each time",
        "yardstick",
        "as above, but the maps are encoded before each launch",
        functools.partial(_raw, encode_each=True),
    ),
    Subject(
        BARE,
        "yardstick",
        "checks nothing, launches nothing: what it takes to hand the same arguments to compiled code",
        _bare,
        launches=False,
    ),
)
"""The yardsticks."""
