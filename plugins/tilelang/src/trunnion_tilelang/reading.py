"""What a host function does with its variables, over all of its statements at once."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trunnion_tilelang.nodes import (
    Alloc,
    Assert,
    Attr,
    Bind,
    Buffer,
    Call,
    Decl,
    Evaluate,
    For,
    If,
    Node,
    Seq,
    Stmt,
    Str,
    Var,
)  # fmt: skip
from trunnion_tilelang.trees import leaves

if TYPE_CHECKING:
    from collections.abc import Iterator

    from trunnion_tilelang.nodes import Module

__all__ = ["computed_variables", "read_only_pointers"]

_ENCODINGS = ("__tvm_tensormap_create_tiled", "__tvm_tensormap_create_im2col")


def read_only_pointers(module: Module) -> frozenset[int]:
    """Return the keys of the pointers that reach the device only where nothing is written through them.

    A tensor map says nothing of whether it is read or written by, so what it lies over may be written to. TileLang's
    host function has a list of its own of what is only read, and what is stored through a map stands in it.
    """
    read: set[int] = set()
    other: set[int] = set()
    for name, operands in _calls(module.host.body):
        kernel = module.kernels.get(name)
        if kernel is None and name not in _ENCODINGS:
            continue
        for ordinal, operand in enumerate(operands):
            is_read = kernel is not None and ordinal in kernel.read_only and isinstance(operand, Var)
            found = read if is_read else other
            found |= {leaf.key for leaf in leaves(operand) if isinstance(leaf, Var)}
    return frozenset(read - other)


def computed_variables(module: Module) -> frozenset[int]:
    """Return the keys of the variables that the host function computes with.

    The others it only hands on, each as a kernel's parameter of its own type.
    """
    return frozenset(
        leaf.key
        for statement in _statements(module.host.body)
        for node in _expressions(module, statement)
        for leaf in leaves(node)
        if isinstance(leaf, Var)
    )


def _expressions(module: Module, statement: Stmt) -> Iterator[Node]:
    """Yield the expressions of a statement itself, but for what a kernel is handed as it is."""
    match statement:
        case Bind(value=value):
            yield value
        case Assert(condition=condition) | If(condition=condition):
            yield condition
        case For(start=start, extent=extent, step=step):
            yield from (start, extent, step)
        case Alloc(buffer=buffer) | Decl(buffer=buffer):
            yield from _layout(buffer)
        case Attr(node=node) if isinstance(node, Node):
            yield node
        case Evaluate(value=Call(op="tvm_call_packed", args=(Str(value=name), *operands))):
            kernel = module.kernels.get(name)
            params = kernel.params if kernel is not None else ()
            yield from (
                operand
                for ordinal, operand in enumerate(operands)
                if ordinal >= len(params)
                or not isinstance(operand, Var)
                or operand.dtype != params[ordinal].dtype
            )
        case Evaluate(value=value):
            yield value


def _layout(buffer: Buffer) -> Iterator[Node]:
    yield from (*buffer.shape, *buffer.strides, buffer.offset)


def _calls(statement: Stmt) -> Iterator[tuple[str, list[Node]]]:
    """Yield the name and the operands of every call of a packed function, wherever it stands."""
    for each in _statements(statement):
        match each:
            case Evaluate(value=Call(op="tvm_call_packed", args=(Str(value=name), *operands))):
                yield name, operands


def _statements(statement: Stmt) -> Iterator[Stmt]:
    """Yield a statement and all that it holds."""
    yield statement
    match statement:
        case Seq(body=body):
            parts: tuple[Stmt, ...] = body
        case For(body=inner):
            parts = (inner,)
        case If(then=then, otherwise=otherwise):
            parts = (then,) if otherwise is None else (then, otherwise)
        case _:
            parts = ()
    for part in parts:
        yield from _statements(part)
