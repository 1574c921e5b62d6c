"""The TVM-FFI backend of trunnion."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from trunnion_tvm_ffi.foreign.module import ModuleProgram, from_module

__all__ = ["ModuleProgram", "from_module"]


def __getattr__(name: str) -> object:
    if name in __all__:
        from trunnion_tvm_ffi.foreign import module  # noqa: PLC0415 - it imports tvm_ffi, which not everybody needs

        return getattr(module, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
