"""TVM-FFI's modules and functions: how they are found and called. Nothing else of this plugin's own imports tvm_ffi."""

from __future__ import annotations

from dataclasses import dataclass
from os import PathLike
from typing import TYPE_CHECKING, Any

import tvm_ffi

from trunnion.arguments import expect, file_path
from trunnion.errors import ArgumentValueError, ArtifactError, shorten
from trunnion.image.shared_object import exported_functions

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager
    from pathlib import Path

__all__ = ["ForeignFunction", "find_function", "import_capsule", "is_sequence", "on_raw_stream"]

_SUFFIX = ".so"  # by which TVM-FFI chooses how to load a file


@dataclass(frozen=True, slots=True)
class ForeignFunction:
    """A function of TVM-FFI, and where it comes from."""

    name: str
    """Its name in the module."""

    call: Callable[..., Any]
    """The ``tvm_ffi.Function``."""

    module: Any
    """The ``tvm_ffi.Module`` that has it; None if the caller had the function itself."""

    path: Path | None
    """The file that was loaded; None if none was."""

    def __str__(self) -> str:
        where = f" of {shorten(str(self.path))}" if self.path else ""
        return f"function {shorten(self.name)}{where}"


def find_function(source: Any, name: str) -> ForeignFunction:
    """Return a function; a file is loaded, which runs its native code, and stays loaded until the process ends.

    Parameters
    ----------
    source
        The path of a shared library, a ``tvm_ffi.Module``, or a ``tvm_ffi.Function``, for which ``name`` is only what
        messages call it.
    name
        The function's name in the module.

    Raises
    ------
    ArgumentTypeError
        If ``source`` or ``name`` is of another type.
    ArgumentValueError
        If the module has no such function.
    ArtifactError
        If there is no such file, or the dynamic loader refuses it.
    CorruptArtifactError
        If the file is no shared library, or not whole.
    """
    words = "a path, a tvm_ffi.Module or a tvm_ffi.Function"
    expect(source, (str, PathLike, tvm_ffi.Module, tvm_ffi.Function), "module", words)
    expect(name, str, "function", "a function's name")
    if isinstance(source, tvm_ffi.Function):
        return ForeignFunction(name, source, None, None)
    if isinstance(source, tvm_ffi.Module):
        return ForeignFunction(name, _get(source, name, ()), source, None)
    path = file_path(source)
    known = exported_functions(path)
    module = _load(path)
    return ForeignFunction(name, _get(module, name, known), module, path)


def _load(path: Path) -> Any:
    if path.suffix != _SUFFIX:
        raise ArtifactError(f"got {shorten(path.name)}, expected a file whose name ends in {_SUFFIX}")
    try:
        # As an absolute path: the dynamic loader looks a bare name up in its own folders.
        return tvm_ffi.load_module(path.absolute())
    except (RuntimeError, OSError) as error:
        said = (str(error).splitlines() or [""])[-1]
        raise ArtifactError(f"{shorten(str(path))} cannot be loaded: {said}") from error


def _get(module: Any, name: str, known: tuple[str, ...]) -> Any:
    try:
        return module.get_function(name)
    except AttributeError as error:
        names = ", ".join(shorten(function) for function in known)
        expected = f"a function of the module ({names})" if names else "the name of a function of the module"
        raise ArgumentValueError("function", shorten(name), expected) from error


def import_capsule(capsule: Any) -> Any:
    """Return the ``tvm_ffi.Tensor`` that takes a DLPack capsule over."""
    return tvm_ffi.from_dlpack(capsule)


def is_sequence(value: Any) -> bool:
    """Whether a function returned several values."""
    return isinstance(value, (tuple, list, tvm_ffi.Array, getattr(tvm_ffi, "List", tvm_ffi.Array)))


def on_raw_stream(device: tuple[int, int], stream: int) -> AbstractContextManager[Any]:
    """Return a context in which TVM-FFI's own current stream of a device is that one.

    It says nothing to arguments that have a stream of their own, as torch's tensors have.

    Parameters
    ----------
    device
        DLPack's device type, and the ordinal.
    stream
        The handle.
    """
    return tvm_ffi.use_raw_stream(tvm_ffi.device(*device), stream)
