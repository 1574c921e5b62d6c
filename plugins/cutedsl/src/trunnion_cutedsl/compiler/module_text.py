"""The host function around the kernels: a launch of each, with which CuTeDSL compiles them all into one image.

It is compiled and thrown away; trunnion's own launcher launches. The text is made of positions alone: no name of the
author's stands in it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from trunnion.codegen.writer import SourceWriter

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = ["HOST_FILE", "HOST_FUNCTION", "emit_host"]

HOST_FILE = "trunnion_host.py"
"""The file that holds it."""

HOST_FUNCTION = "trunnion_host"
"""The function."""


def emit_host(kernels: Sequence[Mapping[str, Any]]) -> str:
    """Return the text of a module with the host function.

    Its parameters are, kernel by kernel, those of the kernel (``p0_1``; a tensor map's is an address, of which it makes
    one), then three extents of the block if the call decides them, and last the stream. ``kernels``, ``arguments``,
    ``prefixes`` and ``make_map`` are put into the module before it runs.

    Parameters
    ----------
    kernels
        The jobs' kernels, as `Job.message` has them.
    """
    out = SourceWriter("    ")
    names = [name for index, kernel in enumerate(kernels) for name in _names(index, kernel)]
    out.lines("import cutlass.cute as cute", "", "", "@cute.jit")
    with out.block(f"def {HOST_FUNCTION}({', '.join([*names, 'stream'])}):"):
        for index, kernel in enumerate(kernels):
            _emit_launch(out, index, kernel)
    return out.text()


def _names(index: int, kernel: Mapping[str, Any]) -> list[str]:
    names = [f"p{index}_{ordinal}" for ordinal in range(len(kernel["parameters"]))]
    return names if kernel["block"] else [*names, *(f"b{index}_{axis}" for axis in "xyz")]


def _emit_launch(out: SourceWriter, index: int, kernel: Mapping[str, Any]) -> None:
    given = [
        f"make_map({index}, {ordinal}, p{index}_{ordinal})"
        if parameter["kind"] == "map"
        else f"p{index}_{ordinal}"
        for ordinal, parameter in enumerate(kernel["parameters"])
    ]
    block = kernel["block"] or [f"b{index}_{axis}" for axis in "xyz"]
    said = ["grid=[1, 1, 1]", f"block=[{', '.join(map(str, block))}]"]
    if kernel["cluster"]:
        said[0] = f"grid={list(kernel['cluster'])}"
        said.append(f"cluster={list(kernel['cluster'])}")
    if kernel["cooperative"]:
        said.append("cooperative=True")
    naming = "remove_cutlass_symbol=True, keep_mangled_name=False"
    out.line(f"kernels[{index}].set_name_prefix(prefixes[{index}], {naming})")
    call = f"*arguments[{index}]({', '.join(given)})"
    out.line(f"kernels[{index}]({call}).launch({', '.join([*said, 'stream=stream'])})")
