"""Load launchers into this process, through TVM-FFI: the one file of core that imports it."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trunnion.errors import BackendUnavailableError, CorruptArtifactError
from trunnion.wording import shorten

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["load_library"]


def load_library(library: bytes, plugin: str) -> Callable[[str], Any]:
    """Load a shared library; return what gives its functions by name. It is native code: the caller trusts it.

    It is loaded from a file of its own, deleted at once: what runs is what was verified, and two programs never share
    what they hold. It stays in the process: a captured graph, or a bound launch, may outlive every object.

    Parameters
    ----------
    library
        The bytes of the library.
    plugin
        Who asks; named in errors.

    Raises
    ------
    BackendUnavailableError
        If TVM-FFI is not installed.
    CorruptArtifactError
        If the bytes are no library that can be loaded here.
    """
    try:
        import tvm_ffi as ffi  # noqa: PLC0415 - only whoever loads a launcher needs it
    except ImportError as error:
        advice = "apache-tvm-ffi is not installed; pip install 'apache-tvm-ffi>=0.1.11'"
        raise BackendUnavailableError(plugin, plugin, advice, str(error)) from error
    with tempfile.TemporaryDirectory(prefix="trunnion-") as folder:
        file = Path(folder, "launcher.so")
        file.write_bytes(library)
        try:
            module = ffi.load_module(file)
        except (RuntimeError, OSError) as error:
            raise CorruptArtifactError("launcher.so", f"cannot be loaded: {error}") from error

    def function(name: str) -> Any:
        try:
            found = module.get_function(name)
        except AttributeError as error:
            raise CorruptArtifactError("launcher.so", f"exports no function {shorten(name)}") from error
        # Whatever the user's default is: `close` waits for launches of threads that want Python's lock back.
        found.release_gil = True
        return found

    return function
