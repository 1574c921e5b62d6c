"""The edge to TVM: reads an artifact of ``tilelang.lower`` into the values of `nodes`.

The only file that looks at TVM's objects. It knows their classes by name and imports none, so that reading costs no
import; every other file works on what it returns.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from trunnion.errors import ProgramError
from trunnion.messages import shorten, type_name
from trunnion_tilelang.errors import not_too_deep
from trunnion_tilelang.nodes import (
    Alloc,
    Assert,
    Attr,
    Binary,
    Bind,
    Buffer,
    Call,
    Cast,
    Decl,
    DeviceFunction,
    Evaluate,
    Float,
    For,
    HostFunction,
    If,
    Int,
    Load,
    Module,
    Node,
    Not,
    Select,
    Seq,
    Stmt,
    Str,
    Unknown,
    UnknownStmt,
    Var,
)  # fmt: skip

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

__all__ = ["artifact_module", "statement_text"]

_FFI_PREFIX = "__tvm_ffi_"  # in front of the symbol of a function with the packed calling convention
_PACKED_PARAMS = 4  # a handle, the packed arguments, their number, the result
_LONGEST_TEXT = 400  # characters of a statement in a message
_BINARY = frozenset(
    {"Add", "Sub", "Mul", "Div", "Mod", "FloorDiv", "FloorMod", "Min", "Max"}
    | {"EQ", "NE", "LT", "LE", "GT", "GE", "And", "Or"}
)
_LOOPS = {0: "serial", 1: "parallel", 2: "vectorized", 3: "unrolled", 4: "thread_binding"}  # TVM's ForKind


@not_too_deep()
def artifact_module(artifact: Any) -> Module:
    """Read an artifact.

    Raises
    ------
    ProgramError
        If it is not one, holds more than one host function, or has a kernel whose source TileLang left out.
    """
    for name in ("host_mod", "device_mod", "kernel_source"):
        if getattr(artifact, name, None) is None:
            raise ProgramError(
                f"got {type_name(artifact)} without {name}, expected what tilelang.lower returns",
                field="artifact",
            )
    if not hasattr(artifact.host_mod, "functions"):
        raise ProgramError(
            f"got {type_name(artifact.host_mod)}, expected functions to read; leave enable_host_codegen out, with "
            "which tilelang.lower builds them",
            field="artifact.host_mod",
        )
    hosts = tuple(artifact.host_mod.functions.values())
    if len(hosts) != 1:
        raise ProgramError(f"got {len(hosts)} host functions, expected one", field="artifact")
    kernels = [
        _device_function(name.name_hint, function) for name, function in _functions(artifact.device_mod)
    ]
    language, target = _target(getattr(artifact, "target", None))
    _check_sources(artifact.device_mod, language)
    return Module(
        host=_host_function(hosts[0]),
        kernels={kernel.name: kernel for kernel in kernels},
        source=str(artifact.kernel_source),
        language=language,
        target=target,
        dtypes=tuple(str(param.dtype) for param in getattr(artifact, "params", None) or ()),
    )


def _check_sources(device_mod: Any, language: str) -> None:
    """Refuse what TileLang drops without a word: a kernel given as CUDA source, in a program for CuTeDSL.

    Raises
    ------
    ProgramError
        If there is one.
    """
    for name, function in _functions(device_mod):
        if language != "cuda" and "code_block_source" in _attributes(function):
            raise ProgramError(
                f"the kernel {shorten(name.name_hint)} is given as CUDA source, which TileLang leaves out of what it "
                f"writes for {language}; lower it for the target cuda",
                field="artifact.kernel_source",
            )


def statement_text(statement: Stmt) -> str:
    """Return a statement as TVM prints it, without the declarations in front, cut to a readable length."""
    lines = str(statement.origin).splitlines()
    kept = [line for line in lines if line.strip() and not _is_declaration(line)] or lines
    text = "\n".join(kept).strip()
    return text if len(text) <= _LONGEST_TEXT else text[:_LONGEST_TEXT] + " ..."


def _is_declaration(line: str) -> bool:
    """Whether TVM's printer put the line there to declare a free variable; or a comment."""
    _, equals, value = line.partition(" = ")
    types = ("T.handle(", "T.int", "T.uint", "T.bool", "T.float", "T.Buffer(")
    return line.startswith("#") or (bool(equals) and value.startswith(types) and not line.startswith(" "))


def _functions(module: Any) -> list[tuple[Any, Any]]:
    return list(module.functions.items())


def _attributes(function: Any) -> Mapping[str, Any]:
    return dict(function.attrs.items()) if function.attrs is not None else {}


def _flag(attributes: Mapping[str, Any], name: str) -> bool:
    return bool(int(attributes.get(name, 0)))


def _device_function(name: str, function: Any) -> DeviceFunction:
    attributes = _attributes(function)
    symbol = str(attributes.get("global_symbol", name))
    # Of a kernel that the author wrote in CUDA C++, TileLang's passes do not see what it writes to.
    read_only = () if "code_block_source" in attributes else attributes.get("tl.readonly_param_indices", ())
    return DeviceFunction(
        name=symbol,
        entry=str(attributes.get("code_block_entry_name", symbol)),
        params=tuple(_var(param) for param in function.params),
        launch_params=tuple(str(tag) for tag in attributes.get("tirx.kernel_launch_params", ())),
        read_only=frozenset(int(index) for index in read_only),
        cooperative=_flag(attributes, "use_cooperative_groups"),
        pdl=_flag(attributes, "has_cuda_pdl_sync"),
        maps=frozenset(ordinal for ordinal, param in enumerate(function.params) if _is_map(param)),
    )


def _is_map(param: Any) -> bool:
    return getattr(param.type_annotation, "storage_scope", None) == "grid_constant"


def _host_function(function: Any) -> HostFunction:
    attributes = _attributes(function)
    if len(function.params) != _PACKED_PARAMS:
        raise ProgramError(
            f"got a host function of {len(function.params)} parameters, expected one that is lowered, which takes "
            f"{_PACKED_PARAMS}: its arguments packed",
            field="artifact.host_mod",
        )
    outputs = attributes.get("tilelang_out_idx", ())
    return HostFunction(
        name=str(attributes.get("global_symbol", "main")).removeprefix(_FFI_PREFIX),
        params=tuple(_var(param) for param in function.params),
        body=_stmt(function.body),
        outputs=tuple(int(index) for index in outputs),
        callee_allocates=_flag(attributes, "tilelang_callee_allocated_outputs"),
    )


def _target(target: Any) -> tuple[str, str]:
    """Return the device source's language and the architecture.

    Raises
    ------
    ProgramError
        If it is no CUDA target.
    """
    if target is None:
        return "cuda", ""
    kind = str(target.kind.name)
    if kind != "cuda":
        raise ProgramError(
            f"got the target {shorten(kind)}, expected cuda or cutedsl", field="artifact.target"
        )
    language = "cutedsl" if "cutedsl" in (str(key) for key in target.keys) else "cuda"
    return language, str(target.attrs.get("arch", ""))


def _var(var: Any) -> Var:
    return Var(int(var.__chandle__()), str(var.name), str(var.dtype))


def _message(statement: Any) -> str:
    return "".join(str(part.value) for part in statement.message_parts)


def _stmt(statement: Any) -> Stmt:
    """Read a statement; where it holds a sequence, all of that in one.

    Each tensor of a signature nests what follows it by two statements more, too deep for Python where there are many.
    """
    found: list[Stmt] = []
    left = [statement]
    while left:
        each = left.pop()
        kind = type(each).__name__
        if kind in _FOLLOWED:
            left.extend(reversed(_FOLLOWED[kind](each)))
        if kind in _STATEMENTS:
            found.append(_STATEMENTS[kind](each))
        elif kind not in _FOLLOWED:
            found.append(UnknownStmt(each, kind))
    return found[0] if len(found) == 1 else Seq(statement, tuple(found))


def _for(s: Any) -> Stmt:
    step = Int(1) if s.step is None else _expr(s.step)
    kind = _LOOPS.get(int(s.kind), str(s.kind))
    return For(s, _var(s.loop_var), _expr(s.min), _expr(s.extent), step, kind, _stmt(s.body))


def _if(s: Any) -> Stmt:
    otherwise = None if s.else_case is None else _stmt(s.else_case)
    return If(s, _expr(s.condition), _stmt(s.then_case), otherwise)


_STATEMENTS: Mapping[str, Callable[[Any], Stmt]] = {
    "Bind": lambda s: Bind(s, _var(s.var), _expr(s.value)),
    "AssertStmt": lambda s: Assert(s, _expr(s.condition), _message(s)),
    "AttrStmt": lambda s: Attr(s, str(s.attr_key), _attr_node(s.node), _expr(s.value)),
    "IfThenElse": _if,
    "For": _for,
    "AllocBuffer": lambda s: Alloc(s, _buffer(s.buffer)),
    "DeclBuffer": lambda s: Decl(s, _buffer(s.buffer)),
    "Evaluate": lambda s: Evaluate(s, _expr(s.value)),
}


_FOLLOWED: Mapping[str, Callable[[Any], tuple[Any, ...]]] = {
    "SeqStmt": lambda s: tuple(s.seq),
    "AttrStmt": lambda s: (s.body,),
}
"""What comes after the beginning of a statement, of those that nest what follows them."""


def _attr_node(node: Any) -> object:
    return str(node) if isinstance(node, str) else _expr(node)


def _buffer(buffer: Any) -> Buffer:
    return Buffer(
        name=str(buffer.name),
        data=_var(buffer.data),
        dtype=str(buffer.dtype),
        shape=tuple(_expr(extent) for extent in buffer.shape),
        strides=tuple(_expr(stride) for stride in buffer.strides),
        offset=_expr(buffer.elem_offset),
        scope=str(buffer.scope()),
    )


def _expr(expr: Any) -> Node:
    kind = type(expr).__name__
    if kind in _BINARY:
        return Binary(kind.lower(), _expr(expr.a), _expr(expr.b), str(expr.dtype))
    reader = _EXPRESSIONS.get(kind)
    return Unknown(kind) if reader is None else reader(expr)


def _call(expr: Any) -> Node:
    name = getattr(expr.op, "name", None)
    if name is None:
        return Unknown(f"call of {getattr(expr.op, 'name_hint', type(expr.op).__name__)}")
    op = str(name).rpartition(".")[2]
    args = tuple(_expr(arg) for arg in expr.args)
    return Select(*args) if op == "if_then_else" else Call(op, args, str(expr.dtype))


_EXPRESSIONS: Mapping[str, Callable[[Any], Node]] = {
    "Var": _var,
    "SizeVar": _var,
    "IntImm": lambda e: Int(int(e.value), str(e.dtype)),
    "FloatImm": lambda e: Float(float(e.value), str(e.dtype)),
    "StringImm": lambda e: Str(str(e.value)),
    "Not": lambda e: Not(_expr(e.a)),
    "Cast": lambda e: Cast(str(e.dtype), _expr(e.value)),
    "Select": lambda e: Select(_expr(e.condition), _expr(e.true_value), _expr(e.false_value)),
    "BufferLoad": lambda e: Load(_var(e.buffer.data), tuple(_expr(index) for index in e.indices)),
    "Call": _call,
}
