"""Which variables of an image a program means, and whether a launcher can reach them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trunnion.contract.compiler import ImageVariable
from trunnion.errors import ProgramError, UnknownVariableError, shorten

if TYPE_CHECKING:
    from collections.abc import Iterable

    from trunnion.image.cubin import CubinInfo
    from trunnion.image.ptx import PtxInfo

__all__ = ["image_variables"]


def image_variables(
    info: CubinInfo | PtxInfo, wanted: Iterable[tuple[str, str]]
) -> tuple[ImageVariable, ...]:
    """Return what an image says of the variables that a program names.

    Parameters
    ----------
    info
        What the image says of itself.
    wanted
        The program's name of each variable, and its exact name in the image.

    Raises
    ------
    UnknownVariableError
        If the image has none of such an exact name.
    ProgramError
        If one is ``__managed__``: there is one for all devices, and a launcher prepares each device's own.
    """
    found = []
    for index, (name, symbol) in enumerate(wanted):
        variable = info.variable(symbol)
        if variable is None:
            raise UnknownVariableError(name, (one.name for one in info.variables))
        if variable.managed:
            raise ProgramError(
                f"{shorten(name)} is __managed__, expected a __device__ or __constant__ variable",
                field=f"variables[{index}].name",
            )
        found.append(ImageVariable(name, symbol, variable.nbytes))
    return tuple(found)
