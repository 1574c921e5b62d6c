"""The C++ that stands behind a part's text: for each kernel what a launcher calls, and its parameter table."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from trunnion.codegen.cpp.host import host_kernel_symbol
from trunnion.toolchain.processor import level_features

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = [
    "GLUE_VERSION",
    "PlacedKernel",
    "address_symbol",
    "emit_glue",
    "parameters_symbol",
]

GLUE_VERSION: Final = 1
"""The version of what `emit_glue` writes; it changes whenever that does for some kernels."""

_PARAMETERS: Final = "void* const* arguments, const trunnion_block_t* block"


@dataclass(frozen=True, slots=True)
class PlacedKernel:
    """A kernel of one part."""

    index: int
    """Its place among the program's kernels."""

    expression: str
    """Its name, as `kernel_expression` returns it."""


def parameters_symbol(index: int) -> str:
    """Return the symbol of a kernel's parameter table."""
    return f"trunnion_parameters_{index}"


def address_symbol(index: int) -> str:
    """Return the symbol of the constant that holds the address of the function that a kernel's name means."""
    return f"trunnion_address_{index}"


def emit_glue(file_name: str, kernels: Sequence[PlacedKernel], *, threads: int | None, arch: str) -> str:
    """Return the text that is compiled: the part, and what stands behind it.

    Parameters
    ----------
    file_name
        The plain name of the file with the part's own text.
    kernels
        The kernels in it.
    threads
        On how many threads launches run, for the one part that says it; None for the others.
    arch
        The target's architecture.
    """
    lines = ["#include <trunnion_glue.hpp>", f'#include "{file_name}"']
    for kernel in kernels:
        lines += _kernel(kernel)
    if threads is not None:
        lines += ["", f"TRUNNION_GLUE constexpr uint32_t trunnion_threads = {threads};", *_fits(arch)]
    return "\n".join(lines) + "\n"


def _kernel(kernel: PlacedKernel) -> list[str]:
    index, name = kernel.index, kernel.expression
    function = f"trunnion_glue::Kernel<trunnion_type_{index}>"
    # A comment, because a compiler that complains shows the line.
    return [
        "",
        f"using trunnion_type_{index} = decltype(&{name});  // a kernel is one function, with a name of its own",
        f"TRUNNION_GLUE void {host_kernel_symbol(index)}({_PARAMETERS}) noexcept {{",
        f"  {function}::call(&{name}, arguments, block);",
        "}",
        f"TRUNNION_GLUE constexpr auto {parameters_symbol(index)} = {function}::table();",
        f"TRUNNION_GLUE void (*const {address_symbol(index)})() = reinterpret_cast<void (*)()>(&{name});",
    ]


def _fits(arch: str) -> list[str]:
    """Return what says for which instructions it was compiled, and whether this machine has them."""
    needed = level_features(arch)
    tests = " && ".join(f'__builtin_cpu_supports("{feature}")' for feature in needed) or "true"
    start = ["  __builtin_cpu_init();"] if needed else []
    return [
        f'TRUNNION_GLUE constexpr char trunnion_architecture[] = "{arch}";',
        "TRUNNION_GLUE bool trunnion_fits() noexcept {",
        *start,
        f"  return {tests};",
        "}",
    ]
