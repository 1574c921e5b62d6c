"""Does what a program passes fit what was compiled? The question that every backend asks before it builds."""

from __future__ import annotations

from itertools import zip_longest
from typing import TYPE_CHECKING

from trunnion.errors import ParameterMismatchError
from trunnion.image.layout import pack_parameters_for

if TYPE_CHECKING:
    from collections.abc import Iterable

    from trunnion.contract.compiler import DeviceImage, ImageKernel, ImageParameter
    from trunnion.contract.spec import Target
    from trunnion.model.plan import KernelParameter, KernelSignature

__all__ = ["match_parameters"]


def match_parameters(kernels: Iterable[KernelSignature], image: DeviceImage) -> None:
    """Compare what a plan passes to each kernel with the image's parameter table.

    Parameters
    ----------
    kernels
        `LaunchPlan.kernels`.
    image
        The compiled code, with a table for each kernel.

    Raises
    ------
    ParameterMismatchError
        If a number of parameters, a size or an offset differs: the first one that does is named.
    ProgramError
        If the image lacks a kernel.
    """
    for index, kernel in enumerate(kernels):
        # By position, where the image keeps the request's order: kernels of two parts may have one name.
        same = index < len(image.kernels) and image.kernels[index].name == kernel.name
        actual = image.kernels[index] if same else image.kernel(kernel.name)
        _match(kernel, actual, image.target)


def _match(kernel: KernelSignature, actual: ImageKernel, target: Target) -> None:
    declared = kernel.parameters
    if len(declared) != len(actual.parameters):
        raise ParameterMismatchError(
            kernel.name, -1, f"{len(declared)} arguments", f"{len(actual.parameters)} parameters"
        )
    wanted = pack_parameters_for(((p.size, p.alignment) for p in declared), target)
    for ordinal, (said, place, real) in enumerate(zip_longest(declared, wanted, actual.parameters)):
        if said.size != real.size or place.offset != real.offset:
            raise ParameterMismatchError(kernel.name, ordinal, _said(said, place), _real(real))


def _said(parameter: KernelParameter, place: ImageParameter) -> str:
    return f"{parameter.description} at offset {place.offset}"


def _real(parameter: ImageParameter) -> str:
    unit = "byte" if parameter.size == 1 else "bytes"
    return f"{parameter.size} {unit} at offset {parameter.offset}"
