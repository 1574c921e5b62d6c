"""An image that every device can run: PTX for the oldest of them, which the driver assembles for each."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from trunnion.contract.compiler import DeviceImage, ImageKernel, ImageVariable
from trunnion.contract.spec import Target
from trunnion.image import read_ptx
from trunnion.testing.reference import parameter_layouts
from trunnion.testing.reference_variables import variable_bytes
from trunnion.testing.symbols import kernel_symbol, variable_symbol

if TYPE_CHECKING:
    from collections.abc import Iterable

    from trunnion.model.program import KernelProgram

__all__ = ["portable_image"]

_OLDEST: Final = "80"


def portable_image(program: KernelProgram) -> DeviceImage:
    """Return PTX whose kernels take what the program passes, as the oracle lays it out.

    Parameters
    ----------
    program
        The program.
    """
    layouts = parameter_layouts(program)
    entries = [_entry(kernel_symbol(index), layout) for index, layout in enumerate(layouts.values())]
    variables = [(variable_symbol(index), variable_bytes(one)) for index, one in enumerate(program.variables)]
    declared = [f".visible .global .align 16 .b8 {symbol}[{nbytes}];\n" for symbol, nbytes in variables]
    text = f".version 7.0\n.target sm_{_OLDEST}\n.address_size 64\n{''.join([*declared, *entries])}"
    kernels = tuple(
        ImageKernel(name, found.name, found.parameters)
        for (name, _), found in zip(layouts, read_ptx(text).kernels, strict=True)
    )
    target = Target("cuda", f"compute_{_OLDEST}")
    return DeviceImage(
        kind="ptx",
        data=text.encode() + b"\0",
        target=target,
        kernels=kernels,
        variables=tuple(
            ImageVariable(one.name, *known) for one, known in zip(program.variables, variables, strict=True)
        ),
    )


def _entry(symbol: str, layout: Iterable[tuple[int, int]]) -> str:
    params = ", ".join(
        f".param .align {alignment} .b8 {symbol}_{ordinal}[{size}]"
        for ordinal, (size, alignment) in enumerate(layout)
    )
    return f".visible .entry {symbol}({params}) {{ ret; }}\n"
