"""The host function as plain values: what `tir` reads off TVM's objects, and all that the walk looks at.

A variable is known by its object's identity, which `Var.key` holds; its name is only for people.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = [
    "Alloc", "Assert", "Attr", "Binary", "Bind", "Buffer", "Call", "Cast", "Decl", "DeviceFunction", "Evaluate",
    "Float", "For", "HostFunction", "If", "Int", "Load", "Module", "Node", "Not", "Select", "Seq", "Stmt", "Str",
    "Unknown", "UnknownStmt", "Var",
]  # fmt: skip


@dataclass(frozen=True, slots=True)
class Var:
    """A variable."""

    key: int
    """The identity of the object: two variables are the same exactly if their keys are equal."""

    name: str = field(compare=False)
    """What the author called it."""

    dtype: str = field(compare=False)
    """Its type; ``"handle"`` for every pointer."""


@dataclass(frozen=True, slots=True)
class Int:
    """An integer or boolean constant."""

    value: int
    """The value; booleans are 0 and 1."""

    dtype: str = "int32"
    """Its type."""


@dataclass(frozen=True, slots=True)
class Float:
    """A floating-point constant."""

    value: float
    """The value."""

    dtype: str
    """Its type."""


@dataclass(frozen=True, slots=True)
class Str:
    """A text constant."""

    value: str
    """The text."""


@dataclass(frozen=True, slots=True)
class Binary:
    """An operation on two values."""

    op: str
    """The name of TVM's class in lower case, such as ``"floordiv"``; ``"div"`` and ``"mod"`` truncate."""

    left: Node
    """The left operand."""

    right: Node
    """The right operand."""

    dtype: str
    """The result's type."""


@dataclass(frozen=True, slots=True)
class Not:
    """The negation of a condition."""

    operand: Node
    """The condition."""


@dataclass(frozen=True, slots=True)
class Cast:
    """A value as another type."""

    dtype: str
    """The type."""

    operand: Node
    """The value."""


@dataclass(frozen=True, slots=True)
class Select:
    """One of two values: ``Select``, or a call of ``if_then_else``."""

    condition: Node
    """Chooses."""

    then: Node
    """The value if it holds."""

    otherwise: Node
    """The value if it does not."""


@dataclass(frozen=True, slots=True)
class Load:
    """An element of a buffer."""

    data: Var
    """The buffer's pointer."""

    indices: tuple[Node, ...]
    """Where."""


@dataclass(frozen=True, slots=True)
class Call:
    """A call of an intrinsic."""

    op: str
    """Its name, without the dialect in front."""

    args: tuple[Node, ...]
    """What it is given."""

    dtype: str = "int32"
    """The result's type."""


@dataclass(frozen=True, slots=True)
class Unknown:
    """An expression of a kind that the host function is not known to have."""

    kind: str
    """The name of TVM's class."""


Node = Var | Int | Float | Str | Binary | Not | Cast | Select | Load | Call | Unknown
"""An expression."""


@dataclass(frozen=True, slots=True)
class Buffer:
    """A typed region of memory."""

    name: str
    """What the author called it."""

    data: Var
    """Its pointer."""

    dtype: str
    """The element type, as TVM spells it."""

    shape: tuple[Node, ...]
    """Elements along each dimension, outermost first."""

    strides: tuple[Node, ...]
    """Elements between neighbours along each dimension; empty: compact."""

    offset: Node
    """Elements between the pointer and the first element."""

    scope: str
    """Where it lies; ``"global"`` for device memory."""


@dataclass(frozen=True, slots=True, eq=False)
class Stmt:
    """A statement."""

    origin: object = field(repr=False)
    """TVM's object, for its text in messages."""


@dataclass(frozen=True, slots=True, eq=False)
class Seq(Stmt):
    """Statements in their order."""

    body: tuple[Stmt, ...]
    """The statements."""


@dataclass(frozen=True, slots=True, eq=False)
class Bind(Stmt):
    """Gives a variable its value."""

    var: Var
    """The variable."""

    value: Node
    """Its value."""


@dataclass(frozen=True, slots=True, eq=False)
class Assert(Stmt):
    """Ends the call with an error unless a condition holds."""

    condition: Node
    """The condition."""

    message: str
    """What the caller is told."""


@dataclass(frozen=True, slots=True, eq=False)
class Attr(Stmt):
    """Says something of what follows it."""

    key: str
    """What is said."""

    node: object
    """Of what: a node, or anything else."""

    value: Node
    """With which value."""


@dataclass(frozen=True, slots=True, eq=False)
class If(Stmt):
    """One of two bodies."""

    condition: Node
    """Chooses."""

    then: Stmt
    """The body if it holds."""

    otherwise: Stmt | None
    """The body if it does not."""


@dataclass(frozen=True, slots=True, eq=False)
class For(Stmt):
    """A body that is run for each value of a variable, as C writes it: from a start, by a step, up to an end."""

    var: Var
    """The variable."""

    start: Node
    """Its first value."""

    extent: Node
    """How far it goes: the first value that it does not take is the start plus this."""

    step: Node
    """What it grows by."""

    kind: str
    """How the values are taken: ``"serial"`` is one after the other."""

    body: Stmt
    """The body."""


@dataclass(frozen=True, slots=True, eq=False)
class Alloc(Stmt):
    """Allocates a buffer."""

    buffer: Buffer
    """The buffer."""


@dataclass(frozen=True, slots=True, eq=False)
class Decl(Stmt):
    """Gives a pointer a type and a layout."""

    buffer: Buffer
    """The buffer."""


@dataclass(frozen=True, slots=True, eq=False)
class Evaluate(Stmt):
    """Computes a value for what happens on the way."""

    value: Node
    """The value."""


@dataclass(frozen=True, slots=True, eq=False)
class UnknownStmt(Stmt):
    """A statement of a kind that the host function is not known to have."""

    kind: str
    """The name of TVM's class."""


@dataclass(frozen=True, slots=True)
class DeviceFunction:
    """A kernel's signature and what it says of its launches."""

    name: str
    """The name under which the host function calls it."""

    entry: str
    """The ``__global__`` function's name in the device source."""

    params: tuple[Var, ...]
    """Its parameters, in order."""

    launch_params: tuple[str, ...]
    """What the host function's call gives after the parameters, in order."""

    read_only: frozenset[int]
    """Ordinals of parameters that the kernel only reads through."""

    cooperative: bool
    """Whether all blocks must be resident at once."""

    pdl: bool
    """Whether it waits for the kernel before it by itself."""

    maps: frozenset[int] = frozenset()
    """Ordinals of parameters that are tensor maps, passed by value."""


@dataclass(frozen=True, slots=True)
class HostFunction:
    """The function that checks arguments, encodes maps and launches kernels."""

    name: str
    """What the author called it."""

    params: tuple[Var, ...]
    """Handle, packed arguments, their number, result."""

    body: Stmt
    """What it does."""

    outputs: tuple[int, ...]
    """Positions of parameters that are outputs, as its attributes say."""

    callee_allocates: bool
    """Whether it allocates its outputs itself."""


@dataclass(frozen=True, slots=True)
class Module:
    """All of an artifact."""

    host: HostFunction
    """The host function."""

    kernels: Mapping[str, DeviceFunction]
    """The device functions, by the name under which the host function calls them."""

    source: str
    """The device source."""

    language: str
    """What it is written in, as device compilers name it."""

    target: str
    """What it is for, for example ``"sm_90a"``; empty if the artifact does not say."""

    dtypes: tuple[str, ...] = ()
    """The types of the author's parameters, in order; ``"handle"`` for an address; empty: the artifact says none."""
