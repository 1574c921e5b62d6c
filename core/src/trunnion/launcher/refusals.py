"""The refusals of a call that name what a launcher in Python has at hand: a row of the table each.

Functions that end in ``_error`` return an exception for the launcher to raise; `unbound` raises it. None of them is on
the path of a correct call.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NoReturn

from trunnion.messages import first_line, type_name
from trunnion.model.launch_limits import MAX_THREADS
from trunnion.model.plan import refusals as rows

if TYPE_CHECKING:
    from trunnion.errors import ArgumentError, ArgumentTypeError

__all__ = [
    "ABSENT",
    "absent_error",
    "alignment_error",
    "block_error",
    "cluster_error",
    "cluster_extent_error",
    "condition_error",
    "count_error",
    "destination_error",
    "dtype_error",
    "extent_error",
    "grid_error",
    "layout_error",
    "negative_error",
    "no_tensor_error",
    "offset_error",
    "out_count_error",
    "out_place",
    "place_error",
    "rank_error",
    "size_error",
    "smem_error",
    "storage_error",
    "stride_error",
    "symbol_error",
    "unbound",
    "unreadable_error",
    "value_error",
    "view_error",
    "wide_block_error",
    "wide_cluster_error",
]

ABSENT: Final = object()
"""Stands for a positional argument that the caller left out."""

_PLACES = {  # of a program on which kind of device, and a tensor on which other
    ("cuda", "cpu"): rows.NOT_ON_CUDA_BUT_CPU,
    ("cuda", ""): rows.NOT_ON_CUDA,
    ("cpu", "cuda"): rows.NOT_ON_CPU_BUT_CUDA,
    ("cpu", ""): rows.NOT_ON_CPU,
}
_MAX_SHOWN = 200  # characters of what a tensor says

absent_error = rows.ABSENT
alignment_error = rows.ALIGNMENT
block_error = rows.BLOCK
cluster_error = rows.CLUSTER
cluster_extent_error = rows.CLUSTER_EXTENT
wide_cluster_error = rows.WIDE_CLUSTER
condition_error = rows.CONDITION
grid_error = rows.GRID
negative_error = rows.NEGATIVE
offset_error = rows.OFFSET
size_error = rows.SIZE
smem_error = rows.SMEM_SIZE
storage_error = rows.STORAGE
symbol_error = rows.SYMBOL
value_error = rows.VALUE
view_error = rows.VIEW


def count_error(args: tuple[Any, ...], names: tuple[str, ...]) -> ArgumentError:
    """Return the error of a call with the wrong number of arguments."""
    return rows.COUNT(sum(argument is not ABSENT for argument in args), names)


def out_count_error(out: Any, names: tuple[str, ...]) -> ArgumentError:
    """Return the error of a call whose ``out`` holds the wrong number of tensors."""
    return rows.OUT_COUNT(len(out), names)


def out_place(index: int, count: int) -> str:
    """Return where a caller gives one of ``count`` outputs: in the call there is no name of an output."""
    return "out" if count == 1 else f"out[{index}]"


def no_tensor_error(name: str, value: Any, *, output: bool = False) -> ArgumentError:
    """Return the error of an argument that is no tensor; what an output is given for cannot be nullable."""
    if value is None and not output:
        return rows.NO_TENSOR_BUT_NONE(name)
    return rows.NO_TENSOR(name, type_name(value))


def place_error(name: str, tensor: Any, kind: str) -> ArgumentError:
    """Return the error of a tensor on another kind of device than ``kind``, that of the program."""
    there = str(tensor.device)
    row = _PLACES.get((kind, there.partition(":")[0])) or _PLACES[kind, ""]
    return row(name, there)


def dtype_error(name: str, tensor: Any, expected: str) -> ArgumentError:
    """Return the error of a tensor of another element type."""
    return rows.DTYPE(name, tensor.dtype, expected)


def rank_error(name: str, tensor: Any, rank: int) -> ArgumentError:
    """Return the error of a tensor with another number of dimensions."""
    return rows.RANK(name, tensor.dim(), rank, tensor.shape)


def extent_error(name: str, axis: int, got: int, expected: int, text: str) -> ArgumentError:
    """Return the error of an extent that is not what the signature says."""
    return rows.UNEQUAL(name, "extent", axis, got, expected, text)


def stride_error(name: str, axis: int, got: int, expected: int, text: str) -> ArgumentError:
    """Return the error of a stride that is not what the signature says."""
    return rows.UNEQUAL(name, "stride", axis, got, expected, text)


def layout_error(name: str, tensor: Any) -> ArgumentError:
    """Return the error of a tensor that is not contiguous."""
    return rows.LAYOUT(name, tensor.stride(), tensor.shape)


def destination_error(name: str, tensor: Any) -> ArgumentError:
    """Return the error of a tensor to write into that is not contiguous: in a copy the result would be lost."""
    return rows.DESTINATION(name, tensor.stride(), tensor.shape)


def wide_block_error(kernel: str, got: int) -> ArgumentError:
    """Return the error of a block with too many threads in all."""
    return rows.WIDE_BLOCK(kernel, got, MAX_THREADS)


def unreadable_error(
    names: tuple[str, ...], tensors: tuple[Any, ...], error: RuntimeError, place: str = ""
) -> ArgumentTypeError:
    """Return the error of tensors one of which would not say what it is; for ``place`` see `out_place`."""
    said = first_line(error)
    name, kind = next(
        ((name, type_name(tensor)) for name, tensor in zip(names, tensors, strict=True) if _refuses(tensor)),
        ("", "a tensor"),
    )
    return rows.UNREADABLE.at(place, name, kind, said[:_MAX_SHOWN])


def _refuses(tensor: Any) -> bool:
    """Whether a tensor will not say what a launcher asks."""
    try:
        return tensor is not None and not (
            tensor.shape,
            tensor.stride(),
            tensor.is_contiguous(),
            tensor.data_ptr(),
        )
    except RuntimeError:
        return True


def unbound(symbol: str, places: tuple[str, ...]) -> NoReturn:
    """Raise the error of a symbol that no tensor of the call shows.

    Raises
    ------
    UnboundSymbolError
        Always.
    """
    raise rows.UNBOUND(symbol, places)
