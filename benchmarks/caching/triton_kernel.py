"""A process that compiles a Triton kernel once, into or from Triton's cache, and prints its seconds as JSON.

``TRITON_CACHE_DIR`` says where that is. It is the sum of two vectors, for ``sm_90``, so that no GPU is needed.
"""

from __future__ import annotations

import json

import triton  # type: ignore[import-not-found]  # where it is installed
import triton.language as tl  # type: ignore[import-not-found]  # likewise
from triton.backends.compiler import GPUTarget  # type: ignore[import-not-found]  # likewise
from triton.compiler import ASTSource  # type: ignore[import-not-found]  # likewise

from caching.clock import spent


# Triton takes an annotation for a type of its own, so there is none.
@triton.jit  # type: ignore[untyped-decorator]  # of a package that is not looked at
def add(a, b, c, n, block: tl.constexpr):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN201 - as said above
    """Add two vectors."""
    at = tl.program_id(0) * block + tl.arange(0, block)
    here = at < n
    tl.store(c + at, tl.load(a + at, mask=here) + tl.load(b + at, mask=here), mask=here)


def main() -> None:
    """Compile, and print what it took, the first time and the second."""
    signature = {"a": "*fp32", "b": "*fp32", "c": "*fp32", "n": "i32", "block": "constexpr"}
    taken = []
    for _ in range(2):
        began = spent()
        source = ASTSource(fn=add, signature=signature, constexprs={(4,): 256})
        triton.compile(source, target=GPUTarget("cuda", 90, 32))
        taken.append(spent() - began)
    print(json.dumps({"first": taken[0], "again": taken[1]}))


if __name__ == "__main__":
    main()
