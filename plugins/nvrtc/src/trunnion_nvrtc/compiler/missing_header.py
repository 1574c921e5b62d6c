"""What to write instead of a header that NVRTC cannot open, or where to put it; and what of CUDA's is elsewhere."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from trunnion_nvrtc.compiler.headers import find_header

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["cuda_hints", "missing_header_hint"]

# ISO C++23, [headers], [support.c.headers]; of POSIX those that sources for a host compiler bring along.
_C = frozenset((
    "assert", "complex", "ctype", "errno", "fenv", "float", "inttypes", "iso646", "limits", "locale", "math",
    "setjmp", "signal", "stdalign", "stdarg", "stdatomic", "stdbool", "stddef", "stdint", "stdio", "stdlib",
    "string", "tgmath", "time", "uchar", "wchar", "wctype",
))  # fmt: skip
_CPP = frozenset((
    "algorithm", "any", "array", "atomic", "barrier", "bit", "bitset", "charconv", "chrono", "codecvt",
    "compare", "complex", "concepts", "condition_variable", "coroutine", "deque", "exception", "execution",
    "expected", "filesystem", "flat_map", "flat_set", "format", "forward_list", "fstream", "functional",
    "future", "generator", "initializer_list", "iomanip", "ios", "iosfwd", "iostream", "istream", "iterator",
    "latch", "limits", "list", "locale", "map", "mdspan", "memory", "memory_resource", "mutex", "new",
    "numbers", "numeric", "optional", "ostream", "print", "queue", "random", "ranges", "ratio", "regex",
    "scoped_allocator", "semaphore", "set", "shared_mutex", "source_location", "span", "spanstream", "sstream",
    "stack", "stacktrace", "stdexcept", "stdfloat", "stop_token", "streambuf", "string", "string_view",
    "strstream", "syncstream", "system_error", "thread", "tuple", "type_traits", "typeindex", "typeinfo",
    "unordered_map", "unordered_set", "utility", "valarray", "variant", "vector", "version",
))  # fmt: skip
_POSIX = frozenset((
    "dlfcn", "fcntl", "pthread", "sys/mman", "sys/stat", "sys/time", "sys/types", "unistd",
))  # fmt: skip

_BUILT_IN = "what NVRTC has of it, if anything, needs no header"
_INTEGERS = "its types are in <cstdint>, and printf takes %lld and %llu for those of 64 bits"
_INSTALL = "pip install nvidia-cuda-cccl"

_RUNTIME = "cuda_runtime.h"
_GRID_DEPENDENCY = re.compile(
    'identifier "(cudaGridDependencySynchronize|cudaTriggerProgrammaticLaunchCompletion)" is undefined'
)
_OLD_STANDARD = "libcu++ requires at least C++ 17"
_DEVICE_LAUNCH = "device-side kernel launch could not be processed"
_DRIVER_API = re.compile(r"\bcuda\.h\(\d+\): error: A function without execution space annotations")


def missing_header_hint(name: str, directories: Sequence[str]) -> str:
    """Return the hint for a source that includes what cannot be opened.

    Parameters
    ----------
    name
        The header, as ``#include`` names it.
    directories
        Where headers were looked for: CUDA's C++ library too, if it is here.
    """
    ours = _in_cpp(name)
    if ours is None:
        return (
            f"hint: {name} is neither a header in memory (DeviceCode.includes) nor in an include "
            "path (option --include-path=/absolute/folder); CUDA's own headers come with: "
            "pip install nvidia-cuda-runtime nvidia-cuda-cccl nvidia-cuda-crt"
        )
    include = f"#include <cuda/std/{ours}>, whose names are in cuda::std"
    if ours and find_header(f"cuda/std/{ours}", directories):
        return f"hint: NVRTC has no host headers; of {name} libcu++ has a version for device code: {include}"
    if ours and not find_header("cuda/std/version", directories):
        return (
            f"hint: NVRTC has no host headers; libcu++, which is not found, may have {name} for device code: "
            f"{include}; {_INSTALL}"
        )
    known = _INTEGERS if ours == "cinttypes" else _BUILT_IN
    return (
        f"hint: NVRTC has no host headers, and libcu++ has nothing in place of {name}: leave it out; {known}"
    )


def cuda_hints(log: str, own: Sequence[str]) -> list[str]:
    """Return the hints for a log that misses what nvcc has of CUDA's headers, or takes what is the host's.

    Parameters
    ----------
    log
        What NVRTC printed.
    own
        The author's own include path, which comes before what is found without it.
    """
    hints = []
    called = _GRID_DEPENDENCY.search(log)
    if called:
        first = find_header(_RUNTIME, own)
        what = "include it" if first is None else (
            f"{first} has it for nvcc alone: leave out the include path that it is in; the {_RUNTIME} that is found "
            "without it has it"
        )  # fmt: skip
        hints.append(f"hint: {called[1]} is in {_RUNTIME}, which nvcc includes by itself; {what}")
    if _OLD_STANDARD in log:
        hints.append(
            "hint: what <limits> and others have for device code is libcu++'s, which takes C++17 or newer: "
            "take --std=c++14 or older away (cmath, cstdint and cstring take any)"
        )
    if _DEVICE_LAUNCH in log:
        hints.append(
            "hint: a kernel launches another one only in code that is linked, with --relocatable-device-code=true"
        )
    if _DRIVER_API.search(log):
        hints.append(
            "hint: this cuda.h declares the driver's functions, which are the host's; leave out the include path that "
            "it is in: the one that is found without it declares types alone"
        )
    return hints


def _in_cpp(name: str) -> str | None:
    """Return what C++ calls a host's standard header; empty if it has no such header, None if it is no host header."""
    stem, dot, _ = name.rpartition(".h")
    if name in _CPP or (name.startswith("c") and name[1:] in _C):
        return name
    if dot and stem in _C and name == f"{stem}.h":
        return f"c{stem}"
    return "" if dot and stem in _POSIX and name == f"{stem}.h" else None
