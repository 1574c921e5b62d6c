"""Tensors in NumPy's files: read without trusting them, and written so that every element type survives."""

from __future__ import annotations

import ast
import re
import tokenize
import zipfile
import zlib
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from trunnion.errors import ArgumentValueError, BackendUnavailableError, ProgramError, shorten
from trunnion.model.dtypes import DTYPES
from trunnion.storage.scratch import replacing

if TYPE_CHECKING:
    from collections.abc import Mapping

    from trunnion.model.dtypes import DType

__all__ = ["as_tensor", "read_array", "read_arrays", "write_arrays"]

_MOST_BYTES = 1 << 34
_LONGEST_HEADER = 1 << 14  # bytes; NumPy reads none longer than 10,000
_NUMBERS = re.compile(r"[<>|=]?[?biufc]\d{0,2}", re.ASCII)
_PLAIN_NAME = re.compile(r"\w[\w .-]{0,99}", re.ASCII)
_HEADERS = (SyntaxError, tokenize.TokenError, TypeError, IndexError, OverflowError, RecursionError)
"""What NumPy raises besides of a header that it evaluates: it is Python's text, and made up of anything."""


def _of_lzma() -> tuple[type[Exception], ...]:
    """Return what a damaged LZMA archive raises: nothing where Python was built without it, which reads none."""
    try:
        from lzma import LZMAError
    except ImportError:
        return ()
    return (LZMAError,)


_DAMAGED: tuple[type[Exception], ...] = (
    OSError,
    ValueError,
    EOFError,
    MemoryError,
    zipfile.BadZipFile,
    zlib.error,
    *_of_lzma(),
    NotImplementedError,
    *_HEADERS,
)

_DAMAGED_OR_LOCKED: tuple[type[Exception], ...] = (*_DAMAGED, RuntimeError)  # which says that it is encrypted


def read_array(path: str) -> Any:
    """Return the array in a ``.npy`` file; Python objects in it are refused.

    Raises
    ------
    ProgramError
        If there is none, it is damaged, or larger than 16 GiB.
    """
    numpy = _numpy()
    file = _plain_file(path)
    try:
        with file.open("rb") as stream:
            return _read(numpy, stream)
    except _DAMAGED as error:
        raise ProgramError(f"cannot read {shorten(path)}: {error}") from error


def read_arrays(path: str) -> dict[str, Any]:
    """Return the arrays in a ``.npz`` file by their names; Python objects in it are refused.

    Raises
    ------
    ProgramError
        If there is none, it is damaged, or its arrays together are larger than 16 GiB.
    """
    numpy = _numpy()
    file = _plain_file(path)
    try:
        with zipfile.ZipFile(file) as archive:
            members = archive.infolist()
            total = sum(member.file_size for member in members)
            if total > _MOST_BYTES:
                raise ProgramError(
                    f"{shorten(path)} unpacks to {total} bytes, expected at most {_MOST_BYTES} bytes (16 GiB)"
                )
            found = {}
            for member in members:
                with archive.open(member) as stream:
                    name = member.filename.removesuffix(".npy")
                    found[name] = _read(numpy, stream)
            return found
    except _DAMAGED_OR_LOCKED as error:
        if isinstance(error, ProgramError):
            raise
        raise ProgramError(f"cannot read {shorten(path)}: {error}") from error


def _read(numpy: Any, stream: IO[bytes]) -> Any:
    """Return the array in a stream, if it is of numbers: of others a damaged header can end the process in NumPy."""
    start = stream.read(_LONGEST_HEADER)
    size = 2 if start[6:7] == b"\1" else 4  # bytes of the header's length: in version 1.0, and in later ones
    length = int.from_bytes(start[8 : 8 + size], "little")
    header = ast.literal_eval(start[8 + size : 8 + size + length].decode("latin-1"))
    kind = header.get("descr") if isinstance(header, dict) else None
    if not isinstance(kind, str) or not _NUMBERS.fullmatch(kind):
        raise ValueError(f"its elements are of type {shorten(str(kind))}, expected plain numbers")
    stream.seek(0)
    return numpy.lib.format.read_array(stream, allow_pickle=False)


def write_arrays(path: Path, tensors: Mapping[str, Any]) -> dict[str, str]:
    """Write tensors into a ``.npz`` file.

    Parameters
    ----------
    path
        The file; one that is there is replaced when this is whole.
    tensors
        Host tensors by name.

    Returns
    -------
    dict[str, str]
        The name in the file of each tensor: its own, or ``output<position>`` where that is no plain name.

    Raises
    ------
    ProgramError
        If it cannot be written.
    """
    numpy = _numpy()
    kept = {name: name if _PLAIN_NAME.fullmatch(name) else f"output{i}" for i, name in enumerate(tensors)}
    if len(set(kept.values())) != len(kept):
        kept = {name: f"output{i}" for i, name in enumerate(tensors)}
    try:
        with replacing(path) as file, zipfile.ZipFile(file, "w") as archive:
            for name, tensor in tensors.items():
                with archive.open(f"{kept[name]}.npy", "w", force_zip64=True) as stream:
                    numpy.lib.format.write_array(stream, _as_array(tensor), allow_pickle=False)
    except OSError as error:
        raise ProgramError(
            f"cannot write {shorten(str(path))}: {error.strerror or error}", field="--outputs"
        ) from error
    return kept


def as_tensor(array: Any, dtype: DType, name: str) -> Any:
    """Return an array as a host tensor. Types that NumPy lacks come as unsigned integers of the same bits.

    Parameters
    ----------
    array
        The array.
    dtype
        What the parameter's type is. Nothing is converted: another type is the call's to refuse.
    name
        The parameter's name, for messages.

    Raises
    ------
    ArgumentValueError
        If torch has no such type.
    """
    import torch

    try:
        tensor = torch.from_numpy(_numpy().ascontiguousarray(array)).reshape(array.shape)
    except (TypeError, ValueError) as error:
        raise ArgumentValueError(name, f"an array of {array.dtype}", str(dtype)) from error
    wanted = dtype.in_torch(torch)
    bits = _bits(dtype.itemsize)
    return tensor.view(wanted) if wanted in _unknown_to_numpy() and tensor.dtype is bits else tensor


def _as_array(tensor: Any) -> Any:
    if tensor.dtype in _unknown_to_numpy():
        tensor = tensor.contiguous().view(_bits(tensor.dtype.itemsize))
    return tensor.numpy()


def _bits(itemsize: int) -> Any:
    import torch

    return {1: torch.uint8, 2: torch.uint16, 4: torch.uint32}.get(itemsize, torch.uint64)


def _unknown_to_numpy() -> frozenset[Any]:
    """Return torch's element types that NumPy has none for."""
    import torch

    small = (row.name for row in DTYPES.values() if row.is_small_float)
    names = ("bfloat16", "complex32", "float4_e2m1fn_x2", *small)
    return frozenset(getattr(torch, name) for name in names if hasattr(torch, name))


def _plain_file(path: str) -> Path:
    file = Path(path)
    try:
        regular = "\0" not in path and file.is_file()
        size = file.stat().st_size if regular else 0
    except OSError as error:
        raise ProgramError(f"cannot read {shorten(path)}: {error.strerror}") from error
    if not regular:
        raise ProgramError(f"cannot read {shorten(path)}: there is no plain file of that name")
    if size > _MOST_BYTES:
        raise ProgramError(
            f"cannot read {shorten(path)}: got {size} bytes, expected at most {_MOST_BYTES} bytes (16 GiB)"
        )
    return file


def _numpy() -> Any:
    try:
        import numpy as np
    except ImportError as error:
        raise BackendUnavailableError("numpy", "", "it is not installed; pip install numpy") from error
    return np
