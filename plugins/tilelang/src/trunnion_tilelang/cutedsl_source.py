"""CuTeDSL text: TileLang's kernels with the imports, the annotations and the helper modules that they lack.

TileLang writes the bare functions, and wraps text of its own around them, which launches. Here trunnion launches, and
its device compiler makes the tensors that a kernel takes: views, of which the kernels use the address alone.
"""

from __future__ import annotations

import ast
import importlib.util
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from trunnion.errors import ProgramError, shorten
from trunnion.model.code import DeviceCode
from trunnion.model.params import PointerParam
from trunnion.model.passed_memory import PassedMemory

if TYPE_CHECKING:
    from collections.abc import Iterable

    from trunnion.model.launch import KernelLaunch
    from trunnion_tilelang.compiler_flags import CompilerFlags
    from trunnion_tilelang.nodes import DeviceFunction, Module

__all__ = ["cutedsl_code", "cutedsl_launch", "helper_modules"]

_HELPERS = "tilelang_cutedsl"
"""What the helper package is called beside the text: under its own name it would be part of all of TileLang."""

_PRELUDE = f"""\
import cutlass
import cutlass.cute as cute
import cutlass.experimental.cuda as cuda
import {_HELPERS} as tl

"""
_MAP = "cutlass.GridConstant[cuda.TensorMap]"


def cutedsl_code(module: Module, flags: CompilerFlags, name: str) -> DeviceCode:
    """Return TileLang's CuTeDSL text with what CuTeDSL needs to compile it, without TileLang.

    Parameters
    ----------
    module
        The artifact.
    flags
        What the author asks of the compiler. Whether it knows an option, it says itself; of fast mathematics the text
        knows.
    name
        What the program is called: the file name that messages show, without its suffix.

    Raises
    ------
    ProgramError
        If TileLang's helper modules are not there, its text is no Python or lacks a kernel, or the author gives macros.
    """
    if flags.defines:
        raise ProgramError("got macros, which CuTeDSL has not", field="compile_flags")
    return DeviceCode(
        "cutedsl",
        _PRELUDE + _annotated(module.source, module.kernels.values()),
        name=f"{name}.py",
        includes=helper_modules(),
        options=flags.options,
        target=module.target,
    )


def cutedsl_launch(launch: KernelLaunch) -> KernelLaunch:
    """Return a launch of a CUDA C++ kernel as one of the same kernel in CuTeDSL, which takes tensors, not addresses.

    Raises
    ------
    ProgramError
        If the kernel takes a bare address: TileLang's text uses it as a tensor, and of what type, nothing says.
    """
    for argument in launch.args:
        if isinstance(argument, PointerParam):
            raise ProgramError(
                f"got the address {shorten(argument.name)} for a kernel of TileLang's CuTeDSL text, expected tensors: "
                "it uses an address as a tensor of a type that nothing says; lower for CUDA C++",
                field="artifact",
            )
    return replace(
        launch, args=tuple(each.view() if isinstance(each, PassedMemory) else each for each in launch.args)
    )


def helper_modules() -> tuple[tuple[str, str], ...]:
    """Return the modules that TileLang's CuTeDSL texts call, as a package beside the text; TileLang is not imported.

    Raises
    ------
    ProgramError
        If TileLang is not installed, or has none.
    """
    spec = importlib.util.find_spec("tilelang")
    places = (spec.submodule_search_locations if spec is not None else None) or ()
    for place in places:
        files = sorted((Path(place) / "contrib" / "cutedsl").glob("*.py"))
        if files:
            return tuple((f"{_HELPERS}/{file.name}", file.read_text("utf-8")) for file in files)
    raise ProgramError(
        "TileLang's package tilelang.contrib.cutedsl is not there, and its CuTeDSL texts import it; install "
        "trunnion-tilelang[tilelang]",
        field="code",
    )


def _annotated(text: str, kernels: Iterable[DeviceFunction]) -> str:
    """Return the text with its tensor maps declared as such, by the positions of the parameters.

    Raises
    ------
    ProgramError
        If the text is no Python, a kernel is not in it, or has other parameters there.
    """
    lines = [line.encode() for line in text.split("\n")]  # the syntax tree counts bytes
    try:
        tree = ast.parse(text)
    except (SyntaxError, RecursionError, MemoryError) as error:
        line, why = getattr(error, "lineno", "?"), getattr(error, "msg", "it is nested too deep")
        raise ProgramError(
            f"TileLang wrote CuTeDSL text that is no Python, in line {line}: {why}; lower for CUDA C++",
            field="artifact.kernel_source",
        ) from error
    functions = {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef)}
    for kernel in kernels:
        function = functions.get(kernel.entry)
        params = function.args.args if function is not None else []
        if function is None or len(params) != len(kernel.params):
            raise ProgramError(
                f"got no function {shorten(kernel.entry)} with {len(kernel.params)} parameters in the CuTeDSL text",
                field="artifact.kernel_source",
            )
        for ordinal in sorted(kernel.maps, reverse=True):
            end = params[ordinal]
            line = lines[(end.end_lineno or 1) - 1]
            column = end.end_col_offset or 0
            lines[(end.end_lineno or 1) - 1] = line[:column] + f": {_MAP}".encode() + line[column:]
    return b"\n".join(lines).decode()
