"""Where TileLang's own launchers find what they compile with: said, so that none fails for want of it."""

from __future__ import annotations

import contextlib
import ctypes
import os
from pathlib import Path

from launching.yardsticks import cuda_header_directory

__all__ = ["point_to_toolkit"]

_DRIVER = "libcuda.so.1"


def point_to_toolkit(folder: Path) -> None:
    """Set what this process and those that it starts are told by their environment.

    TileLang takes the folder above nvcc's for the toolkit, which is wrong where that nvcc is a link; and it links its
    libraries with ``-lcuda``, which a driver without its development files does not have.

    Parameters
    ----------
    folder
        Where TileLang's cache may be, and a link to the driver's library.
    """
    headers = cuda_header_directory()
    if headers is not None:
        os.environ.setdefault("CUDA_HOME", str(headers.parent))
    found = [str(path) for path in (_driver(folder), *_stubs(headers)) if path]
    known = os.environ.get("LIBRARY_PATH", "").split(os.pathsep)
    os.environ["LIBRARY_PATH"] = os.pathsep.join([*found, *filter(None, known)])
    os.environ["TILELANG_CACHE_DIR"] = str(folder / "tilelang")
    os.environ["TILELANG_PRINT_ON_COMPILATION"] = "0"


def _driver(folder: Path) -> Path | None:
    """Return a folder in which the driver's library has the name that a linker looks for; None without a driver."""
    with contextlib.suppress(OSError):
        ctypes.CDLL(_DRIVER)
        for line in Path("/proc/self/maps").read_text("utf-8").splitlines():
            path = line.partition("/")[2]
            if Path(path).name.startswith("libcuda.so"):
                libraries = folder / "libraries"
                libraries.mkdir(exist_ok=True)
                (libraries / "libcuda.so").symlink_to(f"/{path}")
                return libraries
    return None


def _stubs(headers: Path | None) -> list[Path]:
    folders = (
        [] if headers is None else [headers.parent / "lib64" / "stubs", headers.parent / "lib" / "stubs"]
    )
    return [folder for folder in folders if folder.is_dir()]
