"""The oracle: what must come of a call, told from the `KernelProgram` and the call alone.

It never sees a plan or generated text. It does not merge equal maps, resolves symbols by itself, and has its own
arithmetic, rounding, parameter sizes and rules, so that a mistake in the library is not repeated here. Of the library
it imports the model's values and the errors' names.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from trunnion.errors import ArgumentValueError, ExprError, TensorMapError
from trunnion.model.expr import Cast, Expr
from trunnion.model.params import ScalarParam, TensorParam
from trunnion.model.tensormap import TiledTensorMap
from trunnion.testing.expected import (
    Address,
    CallFacts,
    Expected,
    ExpectedLaunch,
    ExpectedMap,
    ExpectedNan,
    ExpectedOutput,
    ExpectedParameter,
    Refused,
)
from trunnion.testing.reference_arguments import Reading, bytes_per_element
from trunnion.testing.reference_maps import broken_rules
from trunnion.testing.rounding import FORMATS, SIZES, OutOfRangeError, encode_float, encode_integer

if TYPE_CHECKING:
    from trunnion.model.launch import Argument, KernelLaunch
    from trunnion.model.program import KernelProgram

__all__ = ["expect", "parameter_layouts"]

_GRID_LIMITS = (2147483647, 65535, 65535)
_BLOCK_LIMITS = (1024, 1024, 64)
_THREADS = 1024
_SMEM_LIMIT = 2**31 - 1
_GEOMETRY = (ArgumentValueError, ExprError)


def expect(program: KernelProgram, call: CallFacts) -> Expected | Refused:
    """Return what must come of a call.

    Parameters
    ----------
    program
        What is called.
    call
        What it is called with.

    Returns
    -------
    Expected or Refused
        The launches in order, or every reason for which the call must be refused before it has any effect.
    """
    reading = Reading(program, call)
    reading.read()
    launches: list[ExpectedLaunch] = []
    if not reading.problems:
        for launch in program.launches:
            found = _launch(reading, launch)
            if found is not None:
                launches.append(found)
    if reading.problems:
        return Refused(tuple(reading.problems))
    outputs = tuple(
        ExpectedOutput(output.name, output.dtype.name, reading.output_shapes[output.name])
        for output in program.signature.outputs
    )
    skipped = len(program.launches) - len(launches)
    return Expected(launches=tuple(launches), outputs=outputs, device=reading.device, skipped=skipped)


def parameter_layouts(program: KernelProgram) -> dict[str, tuple[tuple[int, int], ...]]:
    """Return what each kernel is given, in the order of first launches: size and alignment in bytes by ordinal."""
    found: dict[str, tuple[tuple[int, int], ...]] = {}
    for launch in program.launches:
        found.setdefault(launch.kernel, tuple(_layout(argument) for argument in launch.args))
    return found


def _layout(argument: Argument) -> tuple[int, int]:
    if isinstance(argument, TiledTensorMap):
        return 128, 64
    if isinstance(argument, TensorParam):
        return 8, 8
    kind = "int64"
    if isinstance(argument, ScalarParam):
        kind = argument.dtype.name
    elif isinstance(argument, Cast):
        kind = argument.to.name
    return SIZES[kind], SIZES[kind]


def _launch(reading: Reading, launch: KernelLaunch) -> ExpectedLaunch | None:
    """Return a launch; None if it is skipped or a problem was recorded."""
    grid = _extents(reading, launch.grid, "grid")
    if grid is None or not _within(reading, grid, 0, _GRID_LIMITS, "grid") or 0 in grid:
        return None
    block = _extents(reading, launch.block, "block")
    cluster = None if launch.cluster is None else _extents(reading, launch.cluster, "cluster")
    smem = reading.value(launch.dynamic_smem_bytes, "the dynamic shared memory")
    parameters = [_parameter(reading, argument) for argument in launch.args]
    if smem is not None and not 0 <= smem <= _SMEM_LIMIT:
        reading.refuse(_GEOMETRY, None, f"{smem} bytes of dynamic shared memory")
    if (
        block is not None
        and _within(reading, block, 1, _BLOCK_LIMITS, "block")
        and math.prod(block) > _THREADS
    ):
        reading.refuse(_GEOMETRY, None, f"a block of {block}")
    if reading.problems or block is None or smem is None:
        return None
    return ExpectedLaunch(
        kernel=launch.kernel,
        grid=grid,
        block=block,
        dynamic_smem_bytes=smem,
        parameters=tuple(value for value in parameters if value is not None),
        cluster=cluster,
        cooperative=launch.cooperative,
        pdl=launch.pdl,
    )


def _extents(reading: Reading, exprs: tuple[Expr, Expr, Expr], what: str) -> tuple[int, int, int] | None:
    x, y, z = (reading.value(expr, what) for expr in exprs)
    return None if x is None or y is None or z is None else (x, y, z)


def _within(
    reading: Reading, extents: tuple[int, int, int], least: int, limits: tuple[int, int, int], what: str
) -> bool:
    good = all(least <= extent <= limit for extent, limit in zip(extents, limits, strict=True))
    if not good:
        reading.refuse(_GEOMETRY, None, f"a {what} of {extents}")
    return good


def _parameter(reading: Reading, argument: Argument) -> ExpectedParameter | None:
    if isinstance(argument, TensorParam):
        return Address(argument.name)
    if isinstance(argument, ScalarParam):
        return _scalar(reading, argument)
    if isinstance(argument, TiledTensorMap):
        return _map(reading, argument)
    value = reading.value(argument, "an argument")
    if value is None:
        return None
    kind = argument.to.name if isinstance(argument, Cast) else "int64"
    try:
        return encode_integer(value, kind)
    except OutOfRangeError as error:
        reading.refuse((ExprError,), None, str(error))
        return None


def _scalar(reading: Reading, param: ScalarParam) -> ExpectedParameter:
    kind, number = param.dtype.name, reading.scalars[param.name]
    if kind not in FORMATS:
        return encode_integer(int(number), kind)
    return ExpectedNan(kind) if math.isnan(number) else encode_float(float(number), kind)


def _map(reading: Reading, tensor_map: TiledTensorMap) -> ExpectedMap | None:
    """Return a map in driver order, after its rules were judged on the numbers of this call."""
    tensor = tensor_map.tensor
    read_as = tensor_map.dtype if tensor_map.dtype is not None else tensor.dtype
    size = bytes_per_element(read_as.name)
    extents = _numbers(reading, tensor.shape if tensor_map.shape is None else tensor_map.shape)
    steps_given = tensor_map.strides if tensor_map.strides is not None else tensor.strides
    steps = _row_major(extents) if steps_given is None else _numbers(reading, steps_given)
    start = reading.value(tensor_map.element_offset, "a map's offset")
    if extents is None or steps is None or start is None:
        return None
    offset = start * bytes_per_element(tensor.dtype.name)
    code = read_as.tma_code
    if code is None:
        raise TypeError(f"{read_as.name} has no tensor map type")
    ones = (1,) * len(extents)
    result = ExpectedMap(
        address=Address(tensor.name, offset),
        element_type=read_as.name,
        dtype=code,
        dims=extents[::-1],
        strides=tuple(step * size for step in steps[::-1][1:]),
        box=tuple(tensor_map.box_dim[::-1]),
        element_strides=(ones if tensor_map.element_strides is None else tensor_map.element_strides)[::-1],
        interleave=int(tensor_map.interleave.value[1]),
        swizzle=int(tensor_map.swizzle.value[1]),
        l2_promotion=int(tensor_map.l2_promotion.value[1]),
        oob_fill=int(tensor_map.oob_fill.value[1]),
    )
    facts = reading.tensors.get(tensor.name) or reading.destinations.get(tensor.name)
    base = (
        facts.address if facts is not None else 0
    )  # an allocator's memory is aligned to more than a map needs
    for broken in broken_rules(result, base + offset, size, steps[-1] if steps else 1):
        reading.refuse((TensorMapError, ExprError), None, broken)
    return result


def _numbers(reading: Reading, exprs: tuple[Expr, ...]) -> tuple[int, ...] | None:
    values = [reading.value(expr, "a map's layout") for expr in exprs]
    known = tuple(value for value in values if value is not None)
    return known if len(known) == len(values) else None


def _row_major(extents: tuple[int, ...] | None) -> tuple[int, ...] | None:
    if extents is None:
        return None
    return tuple(math.prod(extents[axis + 1 :]) for axis in range(len(extents)))
