"""The refusals of a call: what every launcher that speaks Python raises, of whatever backend.

Functions that end in ``_error`` return an exception for the launcher to raise; `unbound` raises it. None of them is on
the path of a correct call.
"""

from __future__ import annotations

from typing import Any, Final, NoReturn

from trunnion.errors import (
    ArgumentError,
    ArgumentTypeError,
    ArgumentValueError,
    UnboundSymbolError,
    shorten,
)
from trunnion.messages import first_line, type_name
from trunnion.model.launch import MAX_THREADS

__all__ = [
    "ABSENT",
    "absent_error",
    "alignment_error",
    "block_error",
    "cluster_error",
    "condition_error",
    "count_error",
    "destination_error",
    "dtype_error",
    "extent_error",
    "grid_error",
    "layout_error",
    "negative_error",
    "no_tensor_error",
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
]

ABSENT: Final = object()
"""Stands for a positional argument that the caller left out."""

_AXES = "xyz"
_PLACES = {  # what is expected, the kind of device from which a tensor can be brought there, and how
    "cuda": ("a tensor on a CUDA device", "cpu", ".to('cuda')"),
    "cpu": ("a tensor on the CPU", "cuda", ".cpu()"),
}
_MAX_SHOWN = 200  # characters of what a tensor says


def count_error(args: tuple[Any, ...], names: tuple[str, ...]) -> ArgumentError:
    """Return the error of a call with the wrong number of arguments."""
    wanted = ", ".join(shorten(name) for name in names) or "none"
    given = sum(argument is not ABSENT for argument in args)
    return ArgumentTypeError("", f"{given} arguments", f"{len(names)} ({wanted})")


def out_count_error(out: Any, names: tuple[str, ...]) -> ArgumentError:
    """Return the error of a call whose ``out`` holds the wrong number of tensors."""
    wanted = ", ".join(shorten(name) for name in names) or "none"
    return ArgumentTypeError("out", f"{len(out)} tensors", f"{len(names)} ({wanted})")


def out_place(index: int, count: int) -> str:
    """Return where a caller gives one of ``count`` outputs: in the call there is no name of an output."""
    return "out" if count == 1 else f"out[{index}]"


def no_tensor_error(name: str, value: Any, *, output: bool = False) -> ArgumentError:
    """Return the error of an argument that is no tensor; what an output is given for cannot be nullable."""
    advice = "" if output or value is not None else "; a parameter that is declared nullable=True takes None"
    return ArgumentTypeError(name, type_name(value), f"a tensor{advice}")


def place_error(name: str, tensor: Any, kind: str) -> ArgumentError:
    """Return the error of a tensor on another kind of device than ``kind``, that of the program."""
    expected, other, call = _PLACES[kind]
    there = str(tensor.device)
    advice = f"; call {call}" if there.partition(":")[0] == other else ""
    return ArgumentValueError(name, f"a tensor on {there}", f"{expected}{advice}")


def dtype_error(name: str, tensor: Any, expected: str) -> ArgumentError:
    """Return the error of a tensor of another element type."""
    return ArgumentTypeError(name, f"a tensor of {tensor.dtype}", f"one of {expected}")


def rank_error(name: str, tensor: Any, rank: int) -> ArgumentError:
    """Return the error of a tensor with another number of dimensions."""
    return ArgumentValueError(
        name, f"{tensor.dim()} dimensions, shape {tuple(tensor.shape)}", f"{rank} dimensions"
    )


def extent_error(name: str, axis: int, got: int, expected: int, text: str) -> ArgumentError:
    """Return the error of an extent that is not what the signature says."""
    return ArgumentValueError(name, f"extent {got} along dimension {axis}", _equation(expected, text))


def stride_error(name: str, axis: int, got: int, expected: int, text: str) -> ArgumentError:
    """Return the error of a stride that is not what the signature says."""
    return ArgumentValueError(name, f"stride {got} along dimension {axis}", _equation(expected, text))


def value_error(name: str, got: int, expected: int, text: str) -> ArgumentError:
    """Return the error of a scalar that is not what its symbol is."""
    return ArgumentValueError(name, str(got), _equation(expected, text))


def _equation(expected: int, text: str) -> str:
    return str(expected) if text == str(expected) else f"{expected} ({text})"


def layout_error(name: str, tensor: Any) -> ArgumentError:
    """Return the error of a tensor that is not contiguous."""
    return ArgumentValueError(name, _layout(tensor), "a contiguous row-major tensor; call .contiguous()")


def destination_error(name: str, tensor: Any) -> ArgumentError:
    """Return the error of a tensor to write into that is not contiguous: in a copy the result would be lost."""
    expected = "a contiguous row-major tensor to write into: allocate one, and copy from it"
    return ArgumentValueError(name, _layout(tensor), expected)


def _layout(tensor: Any) -> str:
    return f"strides {tuple(tensor.stride())} for shape {tuple(tensor.shape)}"


def alignment_error(name: str, address: int, alignment: int) -> ArgumentError:
    """Return the error of a tensor whose first element lies at the wrong place."""
    return ArgumentValueError(name, f"address {address:#x}", f"a multiple of {alignment} bytes")


def storage_error(name: str, room: int, spanned: int) -> ArgumentError:
    """Return the error of a tensor whose elements reach beyond its storage."""
    expected = f"room for the {spanned} bytes that its elements span"
    return ArgumentValueError(name, f"a storage with room for {room} bytes", expected)


def symbol_error(name: str, place: str, got: int, allowed: str) -> ArgumentError:
    """Return the error of a symbol's value that its declaration does not allow."""
    return ArgumentValueError(name, f"{got} for {place}", allowed)


def condition_error(message: str) -> ArgumentError:
    """Return the error of a call that the author's own check refuses."""
    return ArgumentValueError("", "arguments that fail the program's check", message)


def grid_error(kernel: str, axis: int, got: int, limit: int) -> ArgumentError:
    """Return the error of a grid that no device can run."""
    return ArgumentValueError(
        "", f"a grid of {got} blocks along {_AXES[axis]} for kernel {shorten(kernel)}", f"0 to {limit}"
    )


def block_error(kernel: str, axis: int, got: int, limit: int) -> ArgumentError:
    """Return the error of a block that no device can run."""
    return ArgumentValueError(
        "", f"{got} threads along {_AXES[axis]} for kernel {shorten(kernel)}", f"1 to {limit}"
    )


def wide_block_error(kernel: str, got: int) -> ArgumentError:
    """Return the error of a block with too many threads in all."""
    return ArgumentValueError(
        "", f"a block of {got} threads for kernel {shorten(kernel)}", f"at most {MAX_THREADS}"
    )


def smem_error(kernel: str, got: int, limit: int) -> ArgumentError:
    """Return the error of a size of shared memory that the driver has no number for."""
    return ArgumentValueError(
        "", f"{got} bytes of shared memory for kernel {shorten(kernel)}", f"0 to {limit}"
    )


def cluster_error(kernel: str, axis: int, got: int, cluster: int) -> ArgumentError:
    """Return the error of a grid that does not consist of whole clusters."""
    return ArgumentValueError(
        "",
        f"a grid of {got} blocks along {_AXES[axis]} for kernel {shorten(kernel)}",
        f"a multiple of the cluster's {cluster}",
    )


def negative_error(name: str, axis: int, got: int) -> ArgumentError:
    """Return the error of memory that would have a negative extent."""
    return ArgumentValueError(name, f"extent {got} along dimension {axis}", "at least 0")


def view_error(name: str, axis: int, got: int) -> ArgumentError:
    """Return the error of an extent that a view of memory does not hold."""
    expected = "-2147483648 to 2147483647: a view passes it as int32"
    return ArgumentValueError(name, f"extent {got} along dimension {axis}", expected)


def size_error(name: str) -> ArgumentError:
    """Return the error of a workspace that no memory could hold."""
    return ArgumentValueError(name, "arguments that ask for 2**63 bytes of it or more", "fewer than 2**63")


def absent_error(name: str, reader: str) -> ArgumentError:
    """Return the error of a tensor that the call leaves out although something that launches reads it."""
    return ArgumentTypeError(name, "None", f"a tensor: {reader} reads it in this call")


def unreadable_error(
    names: tuple[str, ...], tensors: tuple[Any, ...], error: RuntimeError, place: str = ""
) -> ArgumentTypeError:
    """Return the error of tensors one of which would not say what it is; for ``place`` see `out_place`."""
    said = first_line(error)
    name, kind = next(
        ((name, type_name(tensor)) for name, tensor in zip(names, tensors, strict=True) if _refuses(tensor)),
        ("", "a tensor"),
    )
    got = f"{kind} that refuses: {said[:_MAX_SHOWN]}"
    return ArgumentTypeError(name, got, "a dense tensor in memory", place)


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
    raise UnboundSymbolError(symbol, places)
