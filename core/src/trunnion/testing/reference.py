"""The oracle: what must come of a call, told from the `KernelProgram` and the call alone.

It never sees a plan or generated text. It does not merge equal maps, resolves symbols by itself, and has its own
arithmetic, rounding, parameter sizes and rules, so that a mistake in the library is not repeated here. Of the library
it imports the model's values and the errors' names.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from trunnion.errors import ArgumentTypeError, ArgumentValueError, DeviceRequirementError, ExprError
from trunnion.model.constant import Constant
from trunnion.model.expr import Cast, Expr, as_expr
from trunnion.model.float_expr import FloatCast, integers_of
from trunnion.model.memory import Memory
from trunnion.model.module_variable import ModuleVariable
from trunnion.model.moved_address import MovedAddress
from trunnion.model.params import PointerParam, ScalarParam, StructParam
from trunnion.model.struct import Struct
from trunnion.model.tensormap import TensorMap
from trunnion.model.view import TensorView
from trunnion.model.workspace import Workspace
from trunnion.testing.expected import (
    CallSignature,
    Expected,
    ExpectedLaunch,
    ExpectedOutput,
    ExpectedParameter,
    ExpectedStruct,
    Kernel,
    Refused,
)
from trunnion.testing.reference_arguments import Reading
from trunnion.testing.reference_facts import FACT_NUMBERS
from trunnion.testing.reference_floats import evaluate_float
from trunnion.testing.reference_memory import (
    address_of,
    expect_map,
    expect_moved,
    expect_view,
    expect_window,
    expect_workspaces,
    is_absent,
)
from trunnion.testing.reference_numbers import encode_number
from trunnion.testing.reference_structs import fields_of, size_and_alignment
from trunnion.testing.reference_variables import address_of_variable, expect_copies
from trunnion.testing.rounding import OutOfRangeError, encode_float, encode_integer

if TYPE_CHECKING:
    from collections.abc import Sequence

    from trunnion.model.launch import Argument, KernelLaunch
    from trunnion.model.program import KernelProgram

__all__ = ["attributes_of", "expect", "kernel_of", "parameter_layouts"]

_GRID_LIMITS = (2147483647, 65535, 65535)
_BLOCK_LIMITS = (1024, 1024, 64)
_CLUSTER_LIMITS = (16, 16, 16)
_CLUSTER_BLOCKS = 16
_MAJOR, _CLUSTERS_SINCE = "compute_capability_major", 9
_THREADS = 1024
_SMEM_LIMIT = 2**31 - 1
_GEOMETRY = (ArgumentValueError,)
_POLICIES = {"default": 0, "spread": 1, "load_balancing": 2}
_DOMAINS = {"default": 0, "remote": 1}


def expect(program: KernelProgram, call: CallSignature) -> Expected | Refused:
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
    used: set[str] = set()
    places: list[int] = []
    if reading.is_known:
        for place, launch in enumerate(program.launches):
            grid = _grid(reading, launch)
            if grid is None:
                continue
            used |= {memory.name for memory in launch.memories() if isinstance(memory, Workspace)}
            found = _launch(reading, launch, grid)
            if found is not None:
                launches.append(found)
                places.append(place)
    workspaces = expect_workspaces(reading, used)
    if reading.problems:
        return Refused(tuple(reading.problems))
    outputs = tuple(
        ExpectedOutput(
            output.name,
            output.dtype.name,
            reading.output_shapes[output.name],
            output.alignment or 1,
            None if output.fill is None else encode_number(output.dtype.name, output.fill),
        )
        for output in program.signature.outputs
    )
    return Expected(
        launches=tuple(launches),
        outputs=outputs,
        device=reading.device,
        workspaces=workspaces,
        skipped=len(program.launches) - len(launches),
        copies=expect_copies(program, places),
    )


def attributes_of(launch: KernelLaunch) -> tuple[tuple[str, tuple[int, ...]], ...]:
    """Return the constant attributes that a launch names, each with the driver's numbers."""
    policy, domain = launch.scheduling_policy, launch.mem_sync_domain
    cluster = () if launch.cluster is None else tuple(one for one in launch.cluster if isinstance(one, int))
    said: dict[str, tuple[int, ...]] = {
        "cluster": cluster,
        "cooperative": (1,) if launch.cooperative else (),
        "pdl": (1,) if launch.pdl is True else (),
        "priority": _one(launch.priority),
        "carveout": _one(launch.carveout),
        "preferred_cluster": launch.preferred_cluster or (),
        "scheduling_policy": _one(None if policy is None else _POLICIES[policy.word]),
        "mem_sync_domain": _one(None if domain is None else _DOMAINS[domain.word]),
    }
    return tuple((field, numbers) for field, numbers in said.items() if numbers)


def _one(number: int | None) -> tuple[int, ...]:
    return () if number is None else (number,)


def kernel_of(program: KernelProgram, launch: KernelLaunch) -> Kernel:
    """Return what a launch launches: kernels of two parts of the code may have one name, and are two."""
    if launch.code is None:
        return launch.kernel, 0
    return launch.kernel, next(place for place, part in enumerate(program.code) if part == launch.code)


def parameter_layouts(
    program: KernelProgram, map_alignment: int | None = None
) -> dict[Kernel, tuple[tuple[int, int], ...]]:
    """Return what each kernel is given, in the order of first launches: size and alignment in bytes by ordinal.

    Parameters
    ----------
    program
        The program.
    map_alignment
        That of a tensor map, where it is another than here: CUDA 13 aligns ``CUtensorMap`` to 128 bytes.
    """
    found: dict[Kernel, tuple[tuple[int, int], ...]] = {}
    for launch in program.launches:
        layout = tuple(
            (size, map_alignment if map_alignment and isinstance(argument, TensorMap) else alignment)
            for argument in launch.args
            for size, alignment in (size_and_alignment(argument),)
        )
        found.setdefault(kernel_of(program, launch), layout)
    return found


def _grid(reading: Reading, launch: KernelLaunch) -> tuple[int, int, int] | None:
    """Return the grid of a launch; None if that is skipped or a problem was recorded."""
    if launch.when is not None and not reading.value(launch.when, "a launch's condition"):
        return None
    grid = _extents(reading, launch.grid, "grid")
    if grid is None or not _within(reading, grid, 0, _GRID_LIMITS, "grid"):
        return None
    for cluster in (dict(attributes_of(launch)).get("cluster"), launch.preferred_cluster):
        if any(blocks % width for blocks, width in zip(grid, cluster or (), strict=False)):
            reading.refuse(_GEOMETRY, None, f"a grid of {grid} in clusters of {cluster}")
    return None if 0 in grid else grid


def _launch(reading: Reading, launch: KernelLaunch, grid: tuple[int, int, int]) -> ExpectedLaunch | None:
    """Return a launch; None if a problem was recorded."""
    block = _extents(reading, launch.block, "block")
    smem = reading.value(launch.dynamic_smem_bytes, "the dynamic shared memory")
    parameters = [_parameter(reading, argument) for argument in launch.args]
    decided = _decided(reading, launch, grid)
    window = launch.window
    expected = None
    if window is not None and not _refuse_absent(reading, window.memory):
        expected = expect_window(reading, window)
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
        kernel=kernel_of(reading.program, launch),
        grid=grid,
        block=block,
        dynamic_smem_bytes=smem,
        parameters=tuple(value for value in parameters if value is not None),
        attributes=(*attributes_of(launch), *decided),
        window=expected,
    )


def _decided(
    reading: Reading, launch: KernelLaunch, grid: tuple[int, int, int]
) -> Sequence[tuple[str, tuple[int, ...]]]:
    """Return the attributes that a call decides; a launch that may not start early carries nothing that says so."""
    found: list[tuple[str, tuple[int, ...]]] = []
    if isinstance(launch.pdl, Expr) and reading.value(launch.pdl, "whether a launch starts early"):
        found.append(("pdl", (1,)))
    if launch.cluster is None or "cluster" in dict(attributes_of(launch)):
        return found
    x, y, z = launch.cluster
    cluster = _extents(reading, (as_expr(x), as_expr(y), as_expr(z)), "cluster")
    if cluster is None or not _within(reading, cluster, 1, _CLUSTER_LIMITS, "cluster"):
        return found
    if math.prod(cluster) > _CLUSTER_BLOCKS:
        reading.refuse(_GEOMETRY, None, f"a cluster of {cluster}")
    elif any(blocks % width for blocks, width in zip(grid, cluster, strict=True)):
        reading.refuse(_GEOMETRY, None, f"a grid of {grid} in clusters of {cluster}")
    elif cluster != (1, 1, 1) and reading.call.attributes[FACT_NUMBERS[_MAJOR]] < _CLUSTERS_SINCE:
        reading.refuse((DeviceRequirementError,), None, f"a cluster of {cluster} on a device that has none")
    return [*found, ("cluster", cluster)]


def _refuse_absent(reading: Reading, memory: Memory) -> bool:
    """Refuse a map or a window over a tensor that the call leaves out: only a pointer can be null."""
    absent = is_absent(reading, memory)
    if absent:
        reading.refuse(
            (ArgumentTypeError,), (memory.name,), f"a map or a window over {memory.name!a}, which is None"
        )
    return absent


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


def _parameter(  # noqa: C901, PLR0911 - one for each kind
    reading: Reading, argument: Argument
) -> ExpectedParameter | None:
    if isinstance(argument, Memory):
        return bytes(8) if is_absent(reading, argument) else address_of(argument)
    if isinstance(argument, MovedAddress):
        return expect_moved(reading, argument)
    if isinstance(argument, TensorView):
        return expect_view(reading, argument.memory)
    if isinstance(argument, Constant):
        return _constant(argument)
    if isinstance(argument, FloatCast):
        return _float(reading, argument)
    if isinstance(argument, ModuleVariable):
        return address_of_variable(reading.program, argument)
    if isinstance(argument, (ScalarParam, PointerParam, StructParam)):
        return reading.by_value[argument.name]
    if isinstance(argument, TensorMap):
        return None if _refuse_absent(reading, argument.tensor) else expect_map(reading, argument)
    if isinstance(argument, Struct):
        return _expect_struct(reading, argument)
    if not isinstance(argument, Expr):
        raise TypeError(f"{type(argument).__name__} is no argument that the oracle knows")
    value = reading.value(argument, "an argument")
    if value is None:
        return None
    kind = argument.to.name if isinstance(argument, Cast) else "int64"
    try:
        return encode_integer(value, kind)
    except OutOfRangeError as error:
        reading.refuse((ExprError,), None, str(error))
        return None


def _constant(constant: Constant) -> ExpectedParameter:
    """Return what a constant must be in memory, rounded from the number that the author wrote."""
    if constant.value is None or constant.dtype is None:
        return bytes(8)
    return encode_number(constant.dtype.name, constant.value)


def _expect_struct(reading: Reading, struct: Struct) -> ExpectedStruct | None:
    """Return what a struct must be; None once the reasons why a field of it can be nothing are recorded."""
    fields = []
    for offset, value in fields_of(struct):
        expected = _parameter(reading, value)
        if expected is not None:
            fields.append((offset, size_and_alignment(value)[0], expected))
    return None if reading.problems else ExpectedStruct(size_and_alignment(struct)[0], tuple(fields))


def _float(reading: Reading, argument: FloatCast) -> ExpectedParameter | None:
    """Return what a floating-point expression must be in memory: finite, and rounded once more."""
    integers = [reading.value(one, "a number of an argument") for one in integers_of(argument.value)]
    known = [one for one in integers if one is not None]
    if len(known) < len(integers):
        return None
    value = evaluate_float(argument.value, iter(known))
    try:
        if math.isfinite(value):
            return encode_float(value, argument.to.name)
        reading.refuse((ExprError,), None, f"an argument that is {value}")
    except OutOfRangeError as error:
        reading.refuse((ExprError,), None, str(error))
    return None
