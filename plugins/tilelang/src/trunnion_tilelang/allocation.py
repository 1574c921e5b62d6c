"""Outputs that a host function allocates itself, as TileLang's own default adapter has it.

Such a function takes no outputs. A tensor comes last instead, which says where to allocate; the shapes are written into
prototypes on the stack, ``TVMFFIEnvTensorAlloc`` makes tensors of them, and these are the result. A program's outputs
are allocated by whoever launches it, so all that has to be known is which variable is which output.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from trunnion_tilelang.nodes import Assert, Binary, Bind, Call, Evaluate, Int, Stmt, Str, Var
from trunnion_tilelang.trees import leaves

if TYPE_CHECKING:
    from collections.abc import Iterable

    from trunnion_tilelang.nodes import HostFunction

__all__ = ["Arguments"]

_ALLOCATE = Str("TVMFFIEnvTensorAlloc")


@dataclass(frozen=True, slots=True)
class Arguments:
    """Which position of the author's each packed argument has."""

    inputs: tuple[int, ...]
    """The positions of what the caller passes, in order; empty: all are passed."""

    outputs: tuple[int, ...]
    """The positions of what is allocated, in the order of allocation."""

    storage: frozenset[int]
    """The keys of the variables that hold prototypes, shapes and tensors."""

    status: frozenset[int]
    """The keys of the variables that say whether an allocation failed."""

    def position(self, index: int) -> int:
        """Return the author's position of a packed argument; -1 for the one that only says where to allocate."""
        if not self.outputs:
            return index
        return self.inputs[index] if index < len(self.inputs) else -1

    @classmethod
    def read(cls, function: HostFunction, statements: Iterable[Stmt]) -> Arguments:
        """Read a host function, whose statements that every call runs are given."""
        if not function.callee_allocates:
            return cls((), (), frozenset(), frozenset())
        count, storage, status = 0, set[int](), set[int]()
        for statement in statements:
            match statement:
                case Assert(condition=Binary(op="eq", left=Var() as var, right=Int(value=value))):
                    count = value if var == function.params[2] else count
                case Bind(var=var, value=Call(op="call_extern", args=(name, *rest))) if name == _ALLOCATE:
                    status.add(var.key)
                    storage |= {leaf.key for node in rest for leaf in leaves(node) if isinstance(leaf, Var)}
                case Bind(var=var, value=Call(op="tvm_ffi_call_with_result")):
                    status.add(var.key)
                case Evaluate(value=Call(op="tvm_struct_set", args=(target, *_))):
                    storage |= {leaf.key for leaf in leaves(target) if isinstance(leaf, Var)}
        total = count - 1 + len(function.outputs)  # the last argument says where to allocate
        outputs = tuple(index % total for index in function.outputs) if total > 0 else ()
        inputs = tuple(index for index in range(total) if index not in outputs)
        return cls(inputs, outputs, frozenset(storage), frozenset(status))
