"""TileLang's lowered kernels as trunnion programs.

Public names are resolved at their first use (PEP 562).
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from trunnion_tilelang.artifact import from_artifact
    from trunnion_tilelang.drop_in import jit
    from trunnion_tilelang.errors import UnsupportedStatementError
    from trunnion_tilelang.lowering import from_jit, from_prim_func
    from trunnion_tilelang.switch import Installation, install

_HOME_OF = {
    "Installation": "trunnion_tilelang.switch",
    "UnsupportedStatementError": "trunnion_tilelang.errors",
    "from_artifact": "trunnion_tilelang.artifact",
    "from_jit": "trunnion_tilelang.lowering",
    "from_prim_func": "trunnion_tilelang.lowering",
    "install": "trunnion_tilelang.switch",
    "jit": "trunnion_tilelang.drop_in",
}

__all__ = [
    "Installation",
    "UnsupportedStatementError",
    "from_artifact",
    "from_jit",
    "from_prim_func",
    "install",
    "jit",
]


def __getattr__(name: str) -> Any:
    home = _HOME_OF.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(home), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOME_OF})
