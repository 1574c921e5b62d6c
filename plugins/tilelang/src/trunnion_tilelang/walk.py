"""The walk over a host function: every statement is understood as something, or refused by name.

`STATEMENTS`, `ATTRIBUTES`, `INTRINSICS` and `PACKED` say as what each kind is understood; what is in none of them is
refused.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from trunnion.errors import ProgramError
from trunnion.messages import shorten, type_name
from trunnion.model.expr import Const, Expr, as_expr, ceildiv, eq, lt, select
from trunnion.model.limits import MOST_MEMBERS
from trunnion.model.params import Check, PointerParam, ScalarParam, TensorParam
from trunnion.model.workspace import Workspace
from trunnion_tilelang.assertions import check_of
from trunnion_tilelang.element_types import element_type
from trunnion_tilelang.errors import Refusal, UnsupportedStatementError
from trunnion_tilelang.launching import Launcher
from trunnion_tilelang.maps import im2col_map, tiled_map
from trunnion_tilelang.nodes import (
    Alloc,
    Assert,
    Attr,
    Bind,
    Buffer,
    Call,
    Decl,
    Evaluate,
    Float,
    For,
    If,
    Int,
    Node,
    Seq,
    Stmt,
    Str,
    UnknownStmt,
    Var,
)  # fmt: skip
from trunnion_tilelang.parameters import unique
from trunnion_tilelang.polynomial import equal, product
from trunnion_tilelang.tir import statement_text
from trunnion_tilelang.trees import leaves

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from trunnion.model.launch import Argument, KernelLaunch
    from trunnion.model.passed_memory import PassedMemory
    from trunnion.model.window import AccessPolicyWindow
    from trunnion_tilelang.nodes import Module
    from trunnion_tilelang.parameters import Parameters

__all__ = ["ATTRIBUTES", "INTRINSICS", "MOST_ITERATIONS", "PACKED", "STATEMENTS", "Walk"]

MOST_ITERATIONS = 256
"""The most times that a loop around launches is unrolled."""

_LONGEST_LOOP_TEXT = f"loops are unrolled up to {MOST_ITERATIONS} times"


class Walk:
    """What a walk over a host function has found so far.

    Parameters
    ----------
    module
        The functions.
    parameters
        The parameters, which also hold the variables' values.
    """

    def __init__(self, module: Module, parameters: Parameters) -> None:
        self.module, self.parameters = module, parameters
        self.launches: list[KernelLaunch] = []  # in order
        self.checks: list[Check] = []  # the author's own conditions, each once
        self._pointers: dict[int, Argument] = {}  # what each variable of type handle stands for, by key
        self._slots: dict[int, str] = {}  # the names of descriptors, by the key of the variable
        self._scalars: dict[int, ScalarParam] = {}
        self._workspaces: set[str] = set()
        self._window: AccessPolicyWindow | None = None
        self._when: Expr | None = None
        self._ended = False
        self._turns = 0  # of all loops, which may stand within each other
        for index, parameter in self.parameters.prologue.parameters.items():
            match self.parameters.by_index[index]:
                case TensorParam() as tensor if parameter.data is not None:
                    self._pointers[parameter.data.key] = tensor
                case PointerParam() as pointer:
                    self._pointers[parameter.var.key] = pointer
                case ScalarParam() as scalar:
                    self._scalars[parameter.var.key] = scalar

    def run(self) -> None:
        """Walk over the whole function.

        Raises
        ------
        UnsupportedStatementError
            If a statement means what a program cannot say.
        """
        self.visit(self.module.host.body)

    def visit(self, statement: Stmt) -> None:
        """Walk over a statement."""
        entry = Walk.unknown if self._ended else STATEMENTS.get(type(statement), Walk.unknown)
        try:
            entry(self, statement)
        except UnsupportedStatementError:  # of a statement within this one
            raise
        except (Refusal, ProgramError) as refusal:
            text, function = statement_text(statement), self.module.host.name
            raise UnsupportedStatementError(str(refusal), text, function) from refusal

    def unknown(self, statement: Stmt) -> None:
        """Refuse a statement that no table has, or that comes after the end."""
        if self._ended:
            raise Refusal("it follows the function's return")
        kind = statement.kind if isinstance(statement, UnknownStmt) else type_name(statement)
        raise Refusal(f"a statement of the kind {kind} has no meaning in a program")

    def value(self, node: Node) -> Expr:
        """Return the value of an integer expression."""
        return self.parameters.arithmetic.expr(node)

    def sequence(self, statement: Seq) -> None:
        """Walk over statements in their order."""
        for each in statement.body:
            self.visit(each)

    def bind(self, statement: Bind) -> None:
        """Take a variable: one that the prologue knows, a descriptor, or an integer."""
        var, value = statement.var, statement.value
        if var.key in self.parameters.prologue.roles or statement in self.parameters.prologue.loads:
            return
        if isinstance(value, Call) and value.op == "tvm_stack_alloca":
            self._slots[var.key] = var.name
            return
        self.parameters.values[var.key] = self.value(value)

    def check(self, statement: Assert) -> None:
        """Take an assertion."""
        self._take(statement.condition, statement.message)

    def _take(self, condition: Node, message: str) -> None:
        found = check_of(condition, message, self.parameters, self._when)
        if found is not None and all(found.condition != check.condition for check in self.checks):
            self.checks.append(found)

    def attribute(self, statement: Attr) -> None:
        """Take what is said of what follows."""
        if statement.key not in ATTRIBUTES:
            raise Refusal(f"the attribute {shorten(statement.key)} is not known")
        if statement.key == "tl.assume" and isinstance(statement.node, Node):
            said = statement.value
            self._take(
                statement.node, said.value if isinstance(said, Str) else "an assumption of the author's"
            )

    def branch(self, statement: If) -> None:
        """Take both bodies, each under its condition."""
        if self._asks_for_status(statement.condition):  # trunnion's own allocation fails with its own error
            self._failure(statement.then)
            if statement.otherwise is not None:
                self.visit(statement.otherwise)
            return
        test = self.value(statement.condition)
        if isinstance(test, Const):
            chosen = statement.then if test.value else statement.otherwise
            if chosen is not None:
                self.visit(chosen)
            return
        self._under(test, statement.then)
        if statement.otherwise is not None:
            self._under(eq(test, 0), statement.otherwise)

    def _asks_for_status(self, condition: Node) -> bool:
        """Whether a condition asks only whether an output could be allocated."""
        roles = [self.parameters.prologue.role(leaf) for leaf in leaves(condition)]
        return bool(roles) and all(role is not None and role.kind == "status" for role in roles)

    def _failure(self, statement: Stmt) -> None:
        """Take what happens where an output could not be allocated: releases, and the return of the status."""
        match statement:
            case Seq(body=body):
                for each in body:
                    self._failure(each)
            case Evaluate(value=Call(op="ret", args=(status,))) if self._asks_for_status(status):
                return
            case Evaluate(value=Call(op="call_extern") as call):
                self.release(call)
            case _:
                raise Refusal("after an allocation that failed, more is done than to release and to return")

    def release(self, call: Call) -> None:
        """Take the release of an output that the host function has allocated itself."""
        if call.args[:1] != (Str("TVMFFIObjectDecRef"),) or not all(map(self._is_storage, call.args[1:])):
            raise Refusal("the intrinsic call_extern has no meaning in a program")

    def store(self, call: Call) -> None:
        """Take a write to what the host function allocates its outputs with, or to its result."""
        if not any(map(self._is_storage, call.args[:1])):
            raise Refusal("the intrinsic tvm_struct_set has no meaning in a program")

    def _is_storage(self, node: Node) -> bool:
        roles = [self.parameters.prologue.role(leaf) for leaf in leaves(node)]
        return bool(roles) and all(role is not None and role.kind == "storage" for role in roles)

    def _under(self, test: Expr, body: Stmt) -> None:
        outer, window = self._when, self._window
        values, pointers = dict(self.parameters.values), dict(self._pointers)
        self._when = test if outer is None else select(outer, test, 0)
        self.visit(body)
        if self._window != window:
            raise Refusal("an access-policy window begins or ends under a condition")
        self._when = outer
        # What is bound or encoded here is so only where the condition holds.
        for known, before in ((self.parameters.values, values), (self._pointers, pointers)):
            known.clear()
            known.update(before)  # type: ignore[arg-type]  # each of its own kind

    def loop(self, statement: For) -> None:
        """Take a body once for each value of the loop's variable."""
        if statement.kind not in ("serial", "unrolled"):
            raise Refusal(f"a {statement.kind} loop around launches: only serial ones have an order")
        start, extent, step = map(self.value, (statement.start, statement.extent, statement.step))
        if not isinstance(step, Const) or step.value < 1:
            raise Refusal("a loop around launches whose step is no positive constant")
        turns = extent if step == as_expr(1) else ceildiv(extent, step)
        most = turns.bounds.high
        if most > MOST_ITERATIONS:
            known = "" if isinstance(turns, Const) else ", whose number of iterations only a call gives"
            raise Refusal(f"a loop around launches{known}: {_LONGEST_LOOP_TEXT}")
        self._turns += max(most, 0)
        if self._turns > MOST_MEMBERS:
            raise Refusal(
                f"loops within loops around launches: there are at most {MOST_MEMBERS} turns of all loops"
            )
        for iteration in range(max(most, 0)):
            self.parameters.values[statement.var.key] = start + step * iteration
            if iteration < turns.bounds.low:
                self.visit(statement.body)
            else:
                self._under(lt(iteration, turns), statement.body)

    def allocate(self, statement: Alloc) -> None:
        """Take device memory of the host function's own as a workspace."""
        buffer = statement.buffer
        if buffer.scope != "global":
            raise Refusal(
                f"the buffer {shorten(buffer.name)} lies in {shorten(buffer.scope)}, not in device memory"
            )
        self._pointers[buffer.data.key] = self._workspace(buffer)

    def _workspace(self, buffer: Buffer) -> Workspace:
        kind = element_type(buffer.dtype)
        shape = [self.value(extent) for extent in buffer.shape]
        if kind.packed > 1:
            shape = [(product(tuple(shape)) + (kind.packed - 1)) // kind.packed]
        return Workspace(unique(buffer.name, self._workspaces), kind.dtype, tuple(shape))

    def declare(self, statement: Decl) -> None:
        """Take a layout over memory: kernels are given pointers, which have none."""

    def evaluate(self, statement: Evaluate) -> None:
        """Take a call for its effect."""
        value = statement.value
        if isinstance(value, Int):  # what is left where a pass has taken a statement out
            return
        if not isinstance(value, Call) or value.op not in INTRINSICS:
            what = f"the intrinsic {value.op}" if isinstance(value, Call) else "a value that nothing uses"
            raise Refusal(f"{what} has no meaning in a program")
        INTRINSICS[value.op](self, value)

    def packed(self, call: Call) -> None:
        """Take a call of a function of TVM's registry, or of a kernel."""
        match call.args:
            case (Str(value=name), *operands):
                kernel = self.module.kernels.get(name)  # first: a kernel may be called as a function of TVM's
            case _:
                raise Refusal("a function is called whose name is no constant")
        if kernel is None and name in PACKED:
            PACKED[name](self, operands)
            return
        if kernel is None:
            raise Refusal(
                f"the function {shorten(name)} is no kernel of this artifact, nor one that is known"
            )
        launcher = Launcher(self.parameters.arithmetic, self._pointers, self._scalars)
        self.launches.append(launcher.launch(kernel, operands, self._window, self._when))

    def finish(self, call: Call) -> None:
        """Take the return."""
        if self._when is not None or call.args != (Int(0),):
            raise Refusal("the function returns early, or something else than 0")
        self._ended = True

    def tiled(self, operands: list[Node]) -> None:
        """Take the encoding of a tiled map."""
        self._encode(operands, tiled_map)

    def im2col(self, operands: list[Node]) -> None:
        """Take the encoding of an im2col map."""
        self._encode(operands, im2col_map)

    def _encode(self, operands: list[Node], make: Callable[..., Argument]) -> None:
        match operands:
            case [Var() as slot, code, rank, address, *rest] if slot.key in self._slots:
                memory, offset = self._place(address)
                values = [self.value(each) for each in (code, rank, *rest)]
                self._pointers[slot.key] = make(memory, offset, values, self._slots[slot.key])
            case _:
                raise Refusal("the call encodes no descriptor of this function's")

    def _place(self, address: Node) -> tuple[PassedMemory, Expr]:
        """Return the memory that an address lies in, and the bytes before it."""
        match address:
            case Call(op="handle_add_byte_offset", args=(base, offset)):
                memory, before = self._place(base)
                return memory, before + self.value(offset)
            case Var():
                found = self._pointers.get(address.key)
                if isinstance(found, (TensorParam, Workspace)):
                    return found, as_expr(0)
        raise Refusal("the address is no tensor's or workspace's")

    def set_window(self, operands: list[Node]) -> None:
        """Take the beginning of an access-policy window: of every launch up to its end."""
        if self._window is not None:
            raise Refusal(
                "an access-policy window begins while another lasts, whose place it would take: a stream has one"
            )
        match operands:
            case [address, nbytes, Float(value=ratio)]:
                memory, offset = self._place(address)
                if offset != as_expr(0):
                    raise Refusal("an access-policy window begins inside of its tensor")
                whole = product(memory.shape) * memory.dtype.itemsize
                length = self.value(nbytes)
                # Of a whole tensor the host function takes as much as the device allows; so does a window without end.
                self._window = memory.window(hit_ratio=ratio, nbytes=None if equal(length, whole) else length)
            case _:
                raise Refusal("an access-policy window has other operands than an address, bytes and a ratio")

    def reset_window(self, operands: list[Node]) -> None:
        """Take the end of an access-policy window."""
        if operands or self._window is None:
            raise Refusal("an access-policy window ends that has not begun, or another stream's")
        self._window = None

    def nothing(self, _: object) -> None:
        """Take what a program has in it by nature: the device of a call is its tensors'."""


STATEMENTS: Mapping[type[Stmt], Callable[[Walk, Any], None]] = {
    Seq: Walk.sequence,
    Bind: Walk.bind,
    Assert: Walk.check,
    Attr: Walk.attribute,
    If: Walk.branch,
    For: Walk.loop,
    Alloc: Walk.allocate,
    Decl: Walk.declare,
    Evaluate: Walk.evaluate,
}
"""Every kind of statement that is understood."""

ATTRIBUTES: Mapping[str, str] = {
    "storage_alignment": "the alignment that TVM gives memory of its own; a signature says what kernels count on",
    "device_id": "the device of the call: its tensors'",
    "device_type": "ditto; that it is a CUDA device is an assertion too",
    "compute_scope": "a name for the body",
    "tl.assume": "a condition: a check, unless it holds in every call",
}
"""Every attribute that is understood, and as what."""

INTRINSICS: Mapping[str, Callable[[Walk, Call], None]] = {
    "tvm_call_packed": Walk.packed,
    "tvm_struct_set": Walk.store,
    "call_extern": Walk.release,
    "ret": Walk.finish,
}
"""Every intrinsic that is understood as a statement."""

PACKED: Mapping[str, Callable[[Walk, list[Node]], None]] = {
    "__tvm_set_device": Walk.nothing,
    "__tvm_tensormap_create_tiled": Walk.tiled,
    "__tvm_tensormap_create_im2col": Walk.im2col,
    "__tvm_cuda_stream_set_access_policy_window": Walk.set_window,
    "__tvm_cuda_stream_reset_access_policy_window": Walk.reset_window,
}
"""Every function of TVM's registry that is understood; the others are kernels of the artifact."""
