"""Does what a program passes fit what was compiled? The question that every backend asks before it builds."""

from __future__ import annotations

import math
from dataclasses import replace
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
from trunnion.image.cubin import KernelInfo, read_cubin
from trunnion.image.layout import pack_parameters_for, place_parameters
from trunnion.image.mangled import match_kinds, parameter_table
from trunnion.image.ptx import read_ptx
from trunnion.image.shared_memory import most_block_smem
from trunnion.image.target import real_number, running_capabilities
from trunnion.model.expr import Const, as_expr
from trunnion.model.fields import place
from trunnion.model.launch_attributes import attribute_row
from trunnion.model.plan import MapArgument
from trunnion.model.plan.launch_plan import TENSOR_MAP_ALIGNMENT, TENSOR_MAP_BYTES
from trunnion.model.tensormap.shared_rules import LEAST_CAPABILITY

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from trunnion.contract.compiler import DeviceImage, ImageKernel, ImageParameter
    from trunnion.contract.spec import Target
    from trunnion.image.cubin import CubinInfo
    from trunnion.image.ptx import PtxInfo
    from trunnion.model.expr import Expr
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
_MAP = TENSOR_MAP_BYTES, TENSOR_MAP_ALIGNMENT
# Bytes that CUtensorMap is aligned to in CUDA 13's cuda.h; in CUDA 12's, in CuTe and here it is to 64.
_WIDE_MAP = 128
_STRUCT = ", and may be a struct (struct(...) builds one)"
_ALIGNED = ", so it is aligned otherwise (struct(..., alignment=...) says it)"
_MAPPED = "; CUDA 13's CUtensorMap is aligned to 128 bytes, a map here to 64: struct(..., offsets=...) says where it is"


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
    """Compare how a plan launches each kernel with what its image says, and with what the compiler found out of it.

    Parameters
    ----------
    plan
        The plan.
    image
        The compiled code. Of one that is neither cubin nor PTX only what its compiler found out is known.

    Raises
    ------
    ParameterMismatchError
        If a kernel's mangled name tells a parameter of another kind than what is passed: a float for an integer.
    ProgramError
        If a launch's block, cluster or grid is one that its kernel was not compiled for, whatever a call decides, or it
        gives the kernel less dynamic shared memory than that uses; or if the image lacks a kernel.
    DeviceRequirementError
        If a launch asks in every call for what no device of the target has: more shared memory than they allow a block,
        a launch attribute, or a tensor map.
    """
    described = _described(image)
    for launch in plan.launches:
        kernel = _kernel(image, launch.kernel, plan.kernels[launch.kernel].name)
        found = described.kernel(kernel.symbol) if described else None
        info = replace(found or KernelInfo(name=kernel.symbol), name=shorten(kernel.name))
        with place(f"launches[{launch.index}]"):
            _match_block(launch, info)
            _match_cluster(launch, info)
            if image.target.kind == "cuda" and not launch.deferred:
                _match_target(launch, info, image.target.arch)
            _match_smem(launch, kernel, info.name)
        match_kinds(plan, launch, kernel)


def _described(image: DeviceImage) -> CubinInfo | PtxInfo | None:
    """Return what an image says of its kernels; None: it says nothing that can be read."""
    try:
        if image.kind == "cubin":
            return read_cubin(image.data)
        return read_ptx(image.data) if image.kind == "ptx" else None
    except CorruptArtifactError:
        return None  # whoever loads it will say so


def _match_block(launch: PlannedLaunch, info: KernelInfo) -> None:
    for axis, (extent, wanted) in enumerate(zip(launch.block, info.required_threads or (), strict=False)):
        if wanted not in extent.bounds:
            raise ProgramError(
                f"got {extent.bounds}, where {info.name} was compiled for {wanted} threads",
                field=f"block[{axis}]",
            )
    least, given = _least(launch.block)
    most = math.prod(info.max_threads or (least,))
    if least > most:
        raise ProgramError(
            f"got {given} threads, where {info.name} was compiled for at most {most}; launch fewer, or compile it for "
            "more (__launch_bounds__)",
            field="block",
        )


def _match_cluster(launch: PlannedLaunch, info: KernelInfo) -> None:
    own = info.cluster or ()
    extents = tuple(map(as_expr, launch.attribute("cluster") or launch.computed_cluster))
    if any(blocks not in one.bounds for one, blocks in zip(extents, own, strict=False)):
        shown = ", ".join(str(one.bounds) for one in extents)
        raise ProgramError(
            f"got ({shown}), where {info.name} was compiled for clusters of {own}; pass that, or none",
            field="cluster",
        )
    if info.needs_cluster and not extents:
        raise ProgramError(
            f"got none, where {info.name} was compiled for clusters (.explicitcluster) of no certain size; "
            "pass cluster=",
            field="cluster",
        )
    least, given = _least(extents)
    if least > (info.max_cluster_blocks or least):
        raise ProgramError(
            f"got {given} blocks, where {info.name} was compiled for clusters of at most {info.max_cluster_blocks}; "
            "pass a smaller one, or compile it for a larger (__launch_bounds__)",
            field="cluster",
        )
    for axis, (extent, blocks) in enumerate(zip(launch.grid, own, strict=False)):
        if isinstance(extent, Const) and extent.value % blocks and not info.grid_counts_clusters:
            raise ProgramError(
                f"got {extent.value} blocks, where {info.name} was compiled for clusters of {own}: expected a multiple "
                f"of {blocks}",
                field=f"grid[{axis}]",
            )


def _least(extents: tuple[Expr, ...]) -> tuple[int, str]:
    """Return the least product that a call does not refuse before, and how it is told."""
    least = math.prod(max(extent.bounds.low, 1) for extent in extents)
    return least, f"{'' if all(isinstance(one, Const) for one in extents) else 'at least '}{least}"


def _match_smem(launch: PlannedLaunch, kernel: ImageKernel, name: str) -> None:
    least = _least_smem(launch)
    if least < kernel.dynamic_smem_bytes:
        given = f"{least}" if isinstance(launch.dynamic_smem_bytes, Const) else f"{least} in some calls"
        raise ProgramError(
            f"got {given}, where {name} uses {kernel.dynamic_smem_bytes} bytes; pass "
            f"dynamic_smem_bytes={kernel.dynamic_smem_bytes}",
            field="dynamic_smem_bytes",
        )


def _least_smem(launch: PlannedLaunch) -> int:
    return max(launch.dynamic_smem_bytes.bounds.low, 0)  # a call with fewer than 0 bytes is refused


def _match_target(launch: PlannedLaunch, info: KernelInfo, arch: str) -> None:
    """Refuse what no device of a real architecture has; the code of a virtual one runs on later devices too."""
    number = real_number(arch)
    if number is None:
        return
    _match_room(_least_smem(launch), info, arch)
    needs = [
        (attribute_row(one.id).least_capability(one.known), attribute_row(one.id).spelled(one.known))
        for one in launch.attributes
    ]
    if any(isinstance(one, MapArgument) for one in launch.passed):
        needs.append((LEAST_CAPABILITY, "a tensor map"))
    for (major, minor), what in needs:
        if running_capabilities(arch)[1] < (major, minor):
            raise DeviceRequirementError(
                f"compute capability {major}.{minor} for {what} of a launch of kernel {info.name}",
                f"the target {arch}, whose code runs on no such device",
                f"compile for sm_{major}{minor} or later, or leave it out",
            )


def _match_room(nbytes: int, info: KernelInfo, arch: str) -> None:
    most, static = most_block_smem(arch), info.static_smem_bytes
    if most is None or nbytes + static <= most:
        return
    wanted = (
        f"{nbytes} bytes of dynamic shared memory" if nbytes else f"{static} bytes of static shared memory"
    )
    beside = f" beside {static} of static" if nbytes and static else ""
    raise DeviceRequirementError(
        f"{wanted}{beside} for kernel {info.name}",
        f"{arch}, which allows a block {most} bytes, static ones included",
        f"{'give the launch less dynamic_smem_bytes, or ' if nbytes else ''}compile for another architecture",
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
    declared, table = kernel.parameters, parameter_table(kernel, actual)
    if len(declared) != len(actual.parameters):
        wide = (one for one in actual.parameters if one.size not in _PLAIN)
        meant = next((f", of which number {one.ordinal} has {one.size} bytes{_STRUCT}" for one in wide), "")
        raise ParameterMismatchError(
            kernel.name,
            -1,
            f"{len(declared)} arguments",
            f"{len(actual.parameters)} parameters{meant}",
            table,
        )
    wanted = _laid(declared, actual.parameters, target)
    for ordinal, (said, laid, real) in enumerate(zip_longest(declared, wanted, actual.parameters)):
        if said.size != real.size or laid.offset != real.offset:
            meant = _counted(real, declared, target) + _meant(said, real)
            raise ParameterMismatchError(kernel.name, ordinal, _said(said, laid), _real(real) + meant, table)


def _laid(
    declared: Sequence[KernelParameter], found: Sequence[ImageParameter], target: Target
) -> tuple[ImageParameter, ...]:
    """Return where parameters are said to lie: a tensor map as its type there is aligned.

    A launch passes each parameter by its address, so that their places matter to this comparison alone.
    """
    layouts = [(one.size, one.alignment) for one in declared]
    laid = pack_parameters_for(layouts, target)
    for ordinal, (said, real) in enumerate(zip(declared, found, strict=True)):
        if (said.size, said.alignment) == _MAP and not said.fields and laid[ordinal].offset != real.offset:
            wider = [*layouts[:ordinal], (said.size, _WIDE_MAP), *layouts[ordinal + 1 :]]
            other = pack_parameters_for(wider, target)
            if other[ordinal].offset == real.offset:
                layouts, laid = wider, other
    return laid


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
    if said.fields:
        return _MAPPED if any("tensor map" in one.description for one in said.fields) else ""
    return "" if real.size in _PLAIN else _STRUCT


def _said(parameter: KernelParameter, place: ImageParameter) -> str:
    shown = [f"{one.path} at {one.offset}: {one.description}" for one in parameter.fields[:_MOST_FIELDS]]
    more = len(parameter.fields) - len(shown)
    shown += [f"and {more} more"] if more else []
    fields = f", of the fields {'; '.join(shown)}" if shown else ""
    return f"{parameter.description} at offset {place.offset}{fields}"


def _real(parameter: ImageParameter) -> str:
    unit = "byte" if parameter.size == 1 else "bytes"
    return f"{parameter.size} {unit} at offset {parameter.offset}"
