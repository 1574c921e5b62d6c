"""Does what a program passes fit what was compiled? The question that every backend asks before it builds."""

from __future__ import annotations

from itertools import zip_longest
from typing import TYPE_CHECKING

from trunnion.errors import (
    CorruptArtifactError,
    DeviceRequirementError,
    ParameterMismatchError,
    ProgramError,
    VariableMismatchError,
    shorten,
)
from trunnion.image.cubin import read_cubin
from trunnion.image.layout import pack_parameters_for, place_parameters
from trunnion.image.mangled import match_kinds
from trunnion.image.shared_memory import MOST_STATIC_SMEM, most_block_smem
from trunnion.model.expr import Const

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from trunnion.contract.compiler import DeviceImage, ImageKernel, ImageParameter
    from trunnion.contract.spec import Target
    from trunnion.model.plan import (
        KernelParameter,
        KernelSignature,
        LaunchPlan,
        PlannedLaunch,
        VariableSlot,
    )

__all__ = ["match_launches", "match_parameters", "match_variables"]

_PLAIN = frozenset({1, 2, 4, 8, 128})  # bytes of numbers, addresses and tensor maps; of 16 most are structs
_MOST_FIELDS = 24
_STRUCT = ", and may be a struct (struct(...) builds one)"
_ALIGNED = ", so it is aligned otherwise (struct(..., alignment=...) says it)"


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
        If the image lacks a kernel, or has them in another order.
    """
    for index, kernel in enumerate(kernels):
        _match(kernel, _kernel(image, index, kernel.name), image.target)


def match_variables(variables: Iterable[VariableSlot], image: DeviceImage) -> None:
    """Compare what a plan says of module variables with what the image has.

    Parameters
    ----------
    variables
        `LaunchPlan.variables`.
    image
        The compiled code. Where it does not say how large a variable is, the driver is asked when a device is
        prepared.

    Raises
    ------
    VariableMismatchError
        If one has another size.
    ProgramError
        If the image lacks one, or has them in another order: its device compiler does not know variables.
    """
    wanted = tuple(variables)
    found = [one.name for one in image.variables]
    if found != [one.name for one in wanted]:
        raise ProgramError(
            f"got the variables {', '.join(map(shorten, found)) or 'none'}, expected "
            f"{', '.join(shorten(one.name) for one in wanted) or 'none'}: a device compiler returns them in the "
            "request's order",
            field="image.variables",
        )
    for slot, one in zip(wanted, image.variables, strict=True):
        if one.nbytes is not None and one.nbytes != slot.nbytes:
            raise VariableMismatchError(slot.name, f"{slot.nbytes} bytes", f"{one.nbytes} bytes")


def match_launches(plan: LaunchPlan, image: DeviceImage) -> None:
    """Compare how a plan launches each kernel with what the compiler found out of it.

    Parameters
    ----------
    plan
        The plan.
    image
        The compiled code.

    Raises
    ------
    ParameterMismatchError
        If a kernel's mangled name tells a parameter of another kind than what is passed: a float for an integer.
    ProgramError
        If a block has other threads than the kernel was compiled for, or a launch gives it less dynamic shared memory
        than it uses; or if the image lacks a kernel.
    DeviceRequirementError
        If a launch asks in every call for more dynamic shared memory than the target's devices allow a block.
    """
    for launch in plan.launches:
        kernel = _kernel(image, launch.kernel, plan.kernels[launch.kernel].name)
        _match_block(launch, kernel)
        match_kinds(plan, launch, kernel)
        least = max(launch.dynamic_smem_bytes.bounds.low, 0)  # a call with fewer than 0 bytes is refused
        if not launch.deferred:
            _match_room(least, kernel, image)
        if least < kernel.dynamic_smem_bytes:
            given = f"{least}" if isinstance(launch.dynamic_smem_bytes, Const) else f"{least} in some calls"
            raise ProgramError(
                f"got {given}, where {shorten(kernel.name)} uses {kernel.dynamic_smem_bytes} bytes; pass "
                f"dynamic_smem_bytes={kernel.dynamic_smem_bytes}",
                field=f"launches[{launch.index}].dynamic_smem_bytes",
            )


def _match_room(nbytes: int, kernel: ImageKernel, image: DeviceImage) -> None:
    target = image.target
    most = most_block_smem(target.arch) if target.kind == "cuda" else None
    if most is None or nbytes + MOST_STATIC_SMEM <= most:
        return
    static = _static_smem(kernel, image)
    if nbytes + static > most:
        beside = f" beside {static} of static" if static else ""
        raise DeviceRequirementError(
            f"{nbytes} bytes of dynamic shared memory{beside} for kernel {shorten(kernel.name)}",
            f"{target.arch}, which allows a block {most} bytes, static ones included",
            "give the launch less dynamic_smem_bytes, or compile for another architecture",
        )


def _static_smem(kernel: ImageKernel, image: DeviceImage) -> int:
    """Return a kernel's own shared memory, in bytes, as far as the image tells it."""
    try:
        found = read_cubin(image.data).kernel(kernel.symbol) if image.kind == "cubin" else None
    except CorruptArtifactError:
        found = None  # whoever loads it will say so
    return found.static_smem_bytes if found else 0


def _match_block(launch: PlannedLaunch, kernel: ImageKernel) -> None:
    for axis, (extent, wanted) in enumerate(zip(launch.block, kernel.block or (), strict=False)):
        if extent != Const(wanted):
            given = str(extent.value) if isinstance(extent, Const) else "what a call decides"
            raise ProgramError(
                f"got {given}, where {shorten(kernel.name)} was compiled for {wanted} threads",
                field=f"launches[{launch.index}].block[{axis}]",
            )


def _kernel(image: DeviceImage, index: int, name: str) -> ImageKernel:
    """Return a kernel by its position, which is how launchers find it: two parts may share a name."""
    if index < len(image.kernels) and image.kernels[index].name == name:
        return image.kernels[index]
    image.kernel(name)  # which says what is missing
    found = ", ".join(shorten(kernel.name) for kernel in image.kernels)
    raise ProgramError(
        f"got the kernels {found}, expected {shorten(name)} at position {index}: a device compiler returns them in the "
        "request's order",
        field="image.kernels",
    )


def _match(kernel: KernelSignature, actual: ImageKernel, target: Target) -> None:
    declared = kernel.parameters
    if len(declared) != len(actual.parameters):
        wide = (one for one in actual.parameters if one.size not in _PLAIN)
        meant = next((f", of which number {one.ordinal} has {one.size} bytes{_STRUCT}" for one in wide), "")
        raise ParameterMismatchError(
            kernel.name, -1, f"{len(declared)} arguments", f"{len(actual.parameters)} parameters{meant}"
        )
    wanted = pack_parameters_for(((p.size, p.alignment) for p in declared), target)
    for ordinal, (said, place, real) in enumerate(zip_longest(declared, wanted, actual.parameters)):
        if said.size != real.size or place.offset != real.offset:
            meant = _counted(real, declared, target) + _meant(said, real)
            raise ParameterMismatchError(kernel.name, ordinal, _said(said, place), _real(real) + meant)


def _counted(real: ImageParameter, declared: Sequence[KernelParameter], target: Target) -> str:
    """Return why a parameter is at an odd offset: alignment applies to its place in the constant bank."""
    if target.kind != "cuda":
        return ""
    base = place_parameters(((p.size, p.alignment) for p in declared), target.arch).base
    at = base + real.offset
    if real.offset % (at & -at) == 0:
        return ""
    return f" (byte {at} of the constant bank, a multiple of {at & -at}: parameters begin at {base})"


def _meant(said: KernelParameter, real: ImageParameter) -> str:
    """Return what a parameter of the image may be, that the program does not pass so."""
    if said.size == real.size:
        return _ALIGNED if said.fields else ""
    return "" if real.size in _PLAIN or said.fields else _STRUCT


def _said(parameter: KernelParameter, place: ImageParameter) -> str:
    shown = [f"{one.path} at {one.offset}: {one.description}" for one in parameter.fields[:_MOST_FIELDS]]
    more = len(parameter.fields) - len(shown)
    shown += [f"and {more} more"] if more else []
    fields = f", of the fields {'; '.join(shown)}" if shown else ""
    return f"{parameter.description} at offset {place.offset}{fields}"


def _real(parameter: ImageParameter) -> str:
    unit = "byte" if parameter.size == 1 else "bytes"
    return f"{parameter.size} {unit} at offset {parameter.offset}"
