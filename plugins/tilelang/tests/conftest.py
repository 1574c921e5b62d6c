"""What the tests of the importer share."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

import trunnion_tilelang

if TYPE_CHECKING:
    from collections.abc import Callable

    from trunnion import KernelProgram


@pytest.fixture
def imported() -> Callable[..., KernelProgram]:
    """Return a function that lowers a kernel of TileLang's language and imports it."""
    import tilelang
    from tilelang import tvm

    target = tvm.target.Target({"kind": "cuda", "arch": "sm_90a"})

    def make(function: Any, **options: Any) -> KernelProgram:
        with target:
            artifact = tilelang.lower(function, target=target)
        return trunnion_tilelang.from_artifact(artifact, **options)

    return make
