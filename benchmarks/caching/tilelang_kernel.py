"""A process that compiles a TileLang kernel once, into or from TileLang's cache, and prints its seconds as JSON.

``TILELANG_CACHE_DIR`` says where that is. It is the sum of two vectors, for ``sm_90``; its NVRTC backend needs no GPU.
"""

import json
from typing import Any

import tilelang
import tilelang.language as tl

from caching.clock import spent


def addition() -> Any:
    """Return the kernel: the sum of two vectors of 4096 numbers."""

    @tl.prim_func  # type: ignore[untyped-decorator]  # of a package that is not looked at
    def add(
        a: tl.Tensor((4096,), "float32"),  # type: ignore[valid-type]  # TileLang's own language
        b: tl.Tensor((4096,), "float32"),  # type: ignore[valid-type]  # likewise
        c: tl.Tensor((4096,), "float32"),  # type: ignore[valid-type]  # likewise
    ) -> None:
        with tl.Kernel(16, threads=256) as block:
            for i in tl.Parallel(256):
                c[block * 256 + i] = a[block * 256 + i] + b[block * 256 + i]

    return add


def main() -> None:
    """Compile, and print what it took, the first time and the second."""
    taken = []
    for _ in range(2):
        began = spent()
        tilelang.compile(
            addition(), out_idx=[2], target={"kind": "cuda", "arch": "sm_90"}, execution_backend="tvm_ffi"
        )
        taken.append(spent() - began)
    print(json.dumps({"first": taken[0], "again": taken[1]}))


if __name__ == "__main__":
    main()
