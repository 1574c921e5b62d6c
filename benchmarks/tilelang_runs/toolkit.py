"""Where TileLang's own launchers look for CUDA's headers and libraries: said, so that none fails for want of them."""

from __future__ import annotations

import os

from launching.yardsticks import cuda_header_directory

__all__ = ["point_to_toolkit"]


def point_to_toolkit() -> None:
    """Name the CUDA toolkit, and its stand-in for the driver's library, to this process and those that it starts.

    TileLang takes the folder above nvcc's for the toolkit, which is wrong where that nvcc is a link; and it links its
    libraries with ``-lcuda``, which a driver without its development files does not have.
    """
    headers = cuda_header_directory()
    if headers is None:
        return
    home = headers.parent
    os.environ.setdefault("CUDA_HOME", str(home))
    stubs = home / "lib64" / "stubs"
    if stubs.is_dir():
        known = os.environ.get("LIBRARY_PATH", "")
        os.environ["LIBRARY_PATH"] = f"{known}{os.pathsep}{stubs}" if known else str(stubs)
    os.environ.setdefault("TILELANG_PRINT_ON_COMPILATION", "0")
