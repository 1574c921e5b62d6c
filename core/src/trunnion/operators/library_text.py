"""The C++ of an operator on torch's stable ABI: what is its own, over ``include/trunnion/torch_operator.hpp``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from trunnion.codegen.literals import cpp_string
from trunnion.codegen.writer import SourceWriter
from trunnion.errors import UnsupportedFeatureError, shorten
from trunnion.model.dtypes import Kind
from trunnion.model.params import PointerParam, ScalarParam, TensorParam

if TYPE_CHECKING:
    from trunnion.model.params import Param
    from trunnion.operators.schema import OperatorName, OperatorSchema

__all__ = ["LOAD", "LauncherFiles", "emit_operator"]

LOAD: Final = "trunnion_operator_load"
"""What the library exports: it loads the launcher, and returns what is wrong, or null."""

_NUMBERS: Final = {Kind.BOOL: "kBoolean", Kind.INT: "kInteger", Kind.UINT: "kInteger", Kind.FLOAT: "kReal"}


class LauncherFiles(NamedTuple):
    """The files beside an operator's library."""

    launcher: str
    """The launcher."""

    image: str = ""
    """The device image; empty: the launcher holds it."""

    symbols: bytes = b""
    """The kernels in that image, each ended by a zero byte."""


def emit_operator(name: OperatorName, schema: OperatorSchema, key: str, files: LauncherFiles) -> str:
    """Return the text of an operator's library.

    Parameters
    ----------
    name
        What the operator is called.
    schema
        Its schema.
    key
        torch's dispatch key, such as ``"CUDA"``.
    files
        What lies beside it.

    Raises
    ------
    UnsupportedFeatureError
        If a parameter is none that the stable ABI carries.
    """
    kinds = [_kind(name, param) for param in schema.signature.params]
    outputs = len(schema.signature.outputs)
    out = SourceWriter("  ")
    out.lines("#include <trunnion/torch_operator.hpp>", "", "namespace trunnion {", "namespace {", "")
    out.line(f"constexpr Kind kKinds[] = {{{', '.join(f'Kind::{kind}' for kind in kinds)}}};")
    shown = ", ".join(cpp_string(shorten(param.name)) for param in schema.signature.params)
    out.line(f"constexpr const char* kShown[] = {{{shown}}};")
    symbols = f"std::string_view({_bytes(files.symbols)}, {len(files.symbols)})"
    places = [cpp_string(files.launcher), cpp_string(files.image), symbols]
    values = [cpp_string(str(name)), "kKinds", "kShown", *places]
    out.line(f"constexpr Operator kOperator{{{', '.join(values)}}};")
    out.lines("", "}  // namespace", "}  // namespace trunnion", "")
    texts = {name.name: (schema.functional(), False)}
    if outputs:
        texts[f"{name.name}.out"] = (schema.out(), True)
    with out.block(f"STABLE_TORCH_LIBRARY_FRAGMENT({name.namespace}, library) {{", "}"):
        for overload, (text, _) in texts.items():
            out.line(f"library.def({cpp_string(overload + text)});")
    out.line()
    with out.block(f"STABLE_TORCH_LIBRARY_IMPL({name.namespace}, {key}, library) {{", "}"):
        for overload, (_, given) in texts.items():
            function = f"trunnion::call<trunnion::kOperator, {len(kinds)}, {outputs}, {str(given).lower()}>"
            out.line(f"library.impl({cpp_string(overload)}, &{function});")
    out.line()
    exported = 'extern "C" __attribute__((visibility("default")))'
    with out.block(f"{exported} const char* {LOAD}() {{", "}"):
        out.line("return trunnion::load_launcher<trunnion::kOperator>();")
    return out.text()


def _bytes(data: bytes) -> str:
    return cpp_string(data.decode("utf-8", "surrogatepass"))


def _kind(name: OperatorName, param: Param) -> str:
    match param:
        case TensorParam():
            return "kMaybeTensor" if param.nullable else "kTensor"
        case PointerParam():
            return "kMaybeAddress" if param.nullable else "kAddress"
        case ScalarParam():
            kind = _NUMBERS.get(param.dtype.kind)
            if kind is None:
                hint = (
                    f"{shorten(param.name)} is {param.dtype}: torch's stable ABI has none; leave cpp=True out"
                )
                raise UnsupportedFeatureError(f"the operator {name} in C++", ["complex numbers"], hint)
            return kind
        case _:
            return "kBytes"
