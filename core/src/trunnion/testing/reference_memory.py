"""The oracle's word on memory: tensor maps, access-policy windows and workspaces, on the numbers of one call."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from trunnion.errors import (
    ArgumentValueError,
    DeviceRequirementError,
    ExprError,
    TensorMapError,
)
from trunnion.model.dtypes import DType
from trunnion.model.expr import Const
from trunnion.model.params import TensorParam
from trunnion.model.tensormap import Im2colTensorMap, TiledTensorMap
from trunnion.model.workspace import Workspace
from trunnion.testing.expected import (
    Address,
    ExpectedIm2col,
    ExpectedMap,
    ExpectedView,
    ExpectedWindow,
    ExpectedWorkspace,
    Problem,
)
from trunnion.testing.reference_arguments import bytes_per_element
from trunnion.testing.reference_maps import broken_rules
from trunnion.testing.rounding import OutOfRangeError, encode_integer

if TYPE_CHECKING:
    from trunnion.model.expr import Expr
    from trunnion.model.memory import Memory
    from trunnion.model.moved_address import MovedAddress
    from trunnion.model.tensormap import TensorMap
    from trunnion.model.window import AccessPolicyWindow
    from trunnion.testing.expected import ExpectedParameter
    from trunnion.testing.reference_arguments import Reading

__all__ = [
    "address_of",
    "expect_map",
    "expect_moved",
    "expect_view",
    "expect_window",
    "expect_workspaces",
    "is_absent",
    "view_size",
]

_MAP = (TensorMapError,)
_WINDOW = (ArgumentValueError,)
_SIZE = (ArgumentValueError,)
_OFFSET = (ArgumentValueError,)
_CODES = {"FLOAT32_FTZ": 10, "TFLOAT32": 11, "TFLOAT32_FTZ": 12}
_PROPERTIES = {"normal": 0, "streaming": 1, "persisting": 2}


@dataclass(frozen=True, slots=True)
class _Extent:
    """Memory as it is in this call."""

    shape: tuple[int, ...]
    strides: tuple[int, ...]
    itemsize: int

    @property
    def nbytes(self) -> int:
        """Bytes from the first element to the last one's end."""
        if 0 in self.shape:
            return 0
        last = sum((extent - 1) * step for extent, step in zip(self.shape, self.strides, strict=True))
        return (last + 1) * self.itemsize


def address_of(memory: Memory, offset: int = 0) -> Address:
    """Return a place in a tensor or a workspace.

    Parameters
    ----------
    memory
        The tensor or workspace.
    offset
        Bytes from its first element.
    """
    return Address(memory.name, offset, isinstance(memory, Workspace))


def is_absent(reading: Reading, memory: Memory) -> bool:
    """Whether a call leaves out a tensor."""
    return isinstance(memory, TensorParam) and memory.name in reading.absent


def _numbers(reading: Reading, exprs: tuple[Expr, ...], what: str) -> tuple[int, ...] | None:
    values = [reading.value(expr, what) for expr in exprs]
    known = tuple(value for value in values if value is not None)
    return known if len(known) == len(values) else None


def _row_major(extents: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(math.prod(extents[axis + 1 :]) for axis in range(len(extents)))


def _bytes(reading: Reading, elements: int, itemsize: int, what: str) -> int:
    """Return elements as bytes; what 64 bits do not hold is an expression without a value too."""
    nbytes = elements * itemsize
    if not -(2**63) <= nbytes < 2**63:
        reading.refuse((ExprError,), None, f"{what} of {nbytes} bytes")
    return nbytes


def _extent(reading: Reading, memory: Memory) -> _Extent | None:
    """Return what memory a call has; None once the reason why it has none is recorded."""
    shape = _numbers(reading, memory.shape, f"an extent of {memory.name!a}")
    named = memory.strides if isinstance(memory, TensorParam) else None
    strides = (
        _row_major(shape or ()) if named is None else _numbers(reading, named, f"a stride of {memory.name!a}")
    )
    if shape is None or strides is None:
        return None
    return _Extent(shape, strides, bytes_per_element(memory.dtype.name))


# Moved addresses --------------------------------------------------------------------------------------------------


def expect_moved(reading: Reading, moved: MovedAddress) -> ExpectedParameter | None:
    """Return where a moved address must lie; None once the reason why it can be none is recorded."""
    memory = moved.memory
    if is_absent(reading, memory):
        return bytes(8)
    offset = reading.value(moved.offset, "an address's offset")
    shape = _numbers(reading, memory.shape, f"an extent of {memory.name!a}")
    if offset is None or shape is None:
        return None
    whole = _Extent(shape, shape, 1) if 0 in shape else _extent(reading, memory)
    if whole is None:
        return None
    elements = _bytes(reading, whole.nbytes // whole.itemsize, 1, "an end")
    if not 0 <= offset <= elements:
        reading.refuse(_OFFSET, (memory.name,), f"{memory.name!a} moved by {offset} of {elements} elements")
    return address_of(memory, offset * bytes_per_element(memory.dtype.name))


# Views ------------------------------------------------------------------------------------------------------------


def _varying(memory: Memory) -> tuple[list[bool], list[bool]]:
    """Return which extents and which strides a call decides; a default stride is the product of all inner extents."""
    extents = [not isinstance(extent, Const) for extent in memory.shape]
    named = memory.strides if isinstance(memory, TensorParam) else None
    if named is None:
        return extents, [any(extents[axis + 1 :]) for axis in range(len(extents))]
    return extents, [not isinstance(stride, Const) for stride in named]


def view_size(memory: Memory) -> int:
    """Return the bytes of a view."""
    extents, strides = _varying(memory)
    return 8 + (sum(extents) + 1) // 2 * 8 + sum(strides) * 8


def expect_view(reading: Reading, memory: Memory) -> ExpectedView | None:
    """Return what a view must be; None once the reason why it can be none is recorded."""
    extent = _extent(reading, memory)
    if extent is None:
        return None
    groups = []
    numbers = (extent.shape, extent.strides)
    for values, varying, kind in zip(numbers, _varying(memory), ("int32", "int64"), strict=True):
        try:
            passed = [value for value, varies in zip(values, varying, strict=True) if varies]
            groups.append(b"".join(encode_integer(value, kind) for value in passed))
        except OutOfRangeError as error:
            reason = f"a view of {memory.name!a}: {error}"
            if kind == "int32":
                reading.refuse((ArgumentValueError,), (memory.name,), reason)
            else:
                reading.refuse((ExprError,), None, reason)
            return None
    return ExpectedView(None if is_absent(reading, memory) else address_of(memory), *groups)


# Workspaces -------------------------------------------------------------------------------------------------------


def expect_workspaces(reading: Reading, used: set[str]) -> tuple[ExpectedWorkspace, ...]:
    """Return the workspaces that a call provides.

    Parameters
    ----------
    reading
        The call.
    used
        The names of those that a launch is given which is not skipped.
    """
    found = []
    for workspace in reading.program.workspaces:
        if workspace.name not in used:
            continue
        extent = _extent(reading, workspace)
        if extent is None:
            continue
        nbytes = math.prod(extent.shape) * extent.itemsize
        if any(number < 0 for number in extent.shape) or nbytes >= 1 << 63:
            reading.refuse(_SIZE, (workspace.name,), f"workspace {workspace.name!a} of shape {extent.shape}")
        found.append(
            ExpectedWorkspace(
                name=workspace.name, nbytes=nbytes, alignment=workspace.alignment, zeroed=workspace.zeroed
            )
        )
    return tuple(found)


# Maps -------------------------------------------------------------------------------------------------------------


def _element(tensor_map: TensorMap) -> tuple[str, int, int]:
    """Return the name, the code and the bytes of the type as which a map reads elements."""
    kind = tensor_map.tensor.dtype if tensor_map.dtype is None else tensor_map.dtype
    if not isinstance(kind, DType):
        return str(kind.value[0]), _CODES[str(kind.value[0])], 4
    if kind.tma_code is None:
        raise TypeError(f"{kind.name} has no tensor map type")
    return kind.name, kind.tma_code, bytes_per_element(kind.name)


def expect_map(reading: Reading, tensor_map: TensorMap) -> ExpectedMap | None:
    """Return a map in driver order, after its rules were judged on the numbers of this call.

    Parameters
    ----------
    reading
        The call; it takes the problems.
    tensor_map
        The map.
    """
    memory = tensor_map.tensor
    name, code, size = _element(tensor_map)
    whole = _extent(reading, memory)
    start = reading.value(tensor_map.element_offset, "a map's offset")
    extents = steps = None
    if whole is not None:
        own, own_steps = tensor_map.shape, tensor_map.strides
        extents = whole.shape if own is None else _numbers(reading, own, "a map's shape")
        steps = whole.strides if own_steps is None else _numbers(reading, own_steps, "a map's strides")
    if whole is None or extents is None or steps is None or start is None:
        return None
    offset = _bytes(reading, start, whole.itemsize, "a map's offset")
    ones = (1,) * len(extents)
    result = ExpectedMap(
        address=address_of(memory, offset),
        element_type=name,
        dtype=code,
        dims=extents[::-1],
        strides=tuple(_bytes(reading, step, size, "a map's stride") for step in steps[::-1][1:]),
        box=tensor_map.box_dim[::-1] if isinstance(tensor_map, TiledTensorMap) else None,
        im2col=_im2col(tensor_map),
        element_strides=(ones if tensor_map.element_strides is None else tensor_map.element_strides)[::-1],
        interleave=int(tensor_map.interleave.value[1]),
        swizzle=int(tensor_map.swizzle.value[1]),
        l2_promotion=int(tensor_map.l2_promotion.value[1]),
        oob_fill=int(tensor_map.oob_fill.value[1]),
    )
    facts = reading.tensors.get(memory.name) or reading.destinations.get(memory.name)
    known = facts is not None and not isinstance(memory, Workspace)
    base = facts.address if known and facts is not None else _alignment(memory)
    broken = tuple(broken_rules(result, base + offset, size, steps[-1] if steps else 1))
    words = tuple(word for word, _ in broken)
    for _, reason in broken:
        reading.problems.append(Problem(_MAP, None, reason, words))
    if offset < 0 or offset + _Extent(extents, steps, size).nbytes > whole.nbytes:
        reading.problems.append(
            Problem(_MAP, None, f"a map that reaches beyond {memory.name!a}", ("within",))
        )
    return result


def _alignment(memory: Memory) -> int:
    """Return an address that memory which the launcher allocates could have: allocators align to 256 at least."""
    return max(256, memory.alignment) if isinstance(memory, Workspace) else 256


def _im2col(tensor_map: TensorMap) -> ExpectedIm2col | None:
    if not isinstance(tensor_map, Im2colTensorMap):
        return None
    return ExpectedIm2col(
        lower=tensor_map.pixel_box_lower_corner[::-1],
        upper=tensor_map.pixel_box_upper_corner[::-1],
        channels=tensor_map.channels_per_pixel,
        pixels=tensor_map.pixels_per_column,
    )


# Windows ----------------------------------------------------------------------------------------------------------


def expect_window(reading: Reading, window: AccessPolicyWindow) -> ExpectedWindow | None:
    """Return a launch's window, after it was judged on the numbers of this call.

    Parameters
    ----------
    reading
        The call; it takes the problems.
    window
        The window.
    """
    whole = _extent(reading, window.memory)
    start = reading.value(window.element_offset, "a window's offset")
    named = None if window.nbytes is None else reading.value(window.nbytes, "a window's length")
    if whole is None or start is None or (named is None and window.nbytes is not None):
        return None
    offset = _bytes(reading, start, whole.itemsize, "a window's offset")
    most = reading.call.most_window_bytes
    nbytes = min(whole.nbytes - offset, most) if named is None else named
    if offset < 0 or nbytes < 0 or offset + nbytes > whole.nbytes:
        reading.refuse(
            _WINDOW,
            (window.memory.name,),
            f"a window of {nbytes} bytes from {offset} over {whole.nbytes} of {window.memory.name!a}",
        )
    if nbytes > most:
        reading.refuse(
            (DeviceRequirementError,), None, f"a window of {nbytes} bytes, where a device allows {most}"
        )
    return ExpectedWindow(
        address=address_of(window.memory, offset),
        nbytes=nbytes,
        hit_ratio=window.hit_ratio,
        hit_property=_PROPERTIES[str(window.hit_property.value[0])],
        miss_property=_PROPERTIES[str(window.miss_property.value[0])],
        policy=str(window.policy),
    )
