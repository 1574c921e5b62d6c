"""Which tensors are only read: those that every kernel is given as a pointer that it does not write through."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trunnion_tilelang.nodes import Attr, Call, Evaluate, For, If, Seq, Str, Var
from trunnion_tilelang.trees import leaves

if TYPE_CHECKING:
    from collections.abc import Iterator

    from trunnion_tilelang.nodes import Module, Stmt

__all__ = ["read_only_pointers"]

_ENCODINGS = (Str("__tvm_tensormap_create_tiled"), Str("__tvm_tensormap_create_im2col"))


def read_only_pointers(module: Module) -> frozenset[int]:
    """Return the keys of the pointers that reach the device only where nothing is written through them.

    A tensor map says nothing of whether it is read or written by, so what it lies over may be written to.
    """
    read: set[int] = set()
    other: set[int] = set()
    for call in _calls(module.host.body):
        name, *operands = call.args
        kernel = module.kernels.get(name.value) if isinstance(name, Str) else None
        if kernel is None and name not in _ENCODINGS:
            continue
        for ordinal, operand in enumerate(operands):
            is_read = kernel is not None and ordinal in kernel.read_only and isinstance(operand, Var)
            found = read if is_read else other
            found |= {leaf.key for leaf in leaves(operand) if isinstance(leaf, Var)}
    return frozenset(read - other)


def _calls(statement: Stmt) -> Iterator[Call]:
    """Yield every call of a packed function, wherever it stands."""
    match statement:
        case Evaluate(value=Call(op="tvm_call_packed") as call):
            yield call
        case Seq(body=body):
            for each in body:
                yield from _calls(each)
        case Attr(body=inner) | For(body=inner):
            yield from _calls(inner)
        case If(then=then, otherwise=otherwise):
            yield from _calls(then)
            if otherwise is not None:
                yield from _calls(otherwise)
