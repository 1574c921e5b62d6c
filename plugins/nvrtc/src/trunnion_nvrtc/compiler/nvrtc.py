"""NVRTC itself: the only module that imports ``cuda.bindings.nvrtc``.

Every status ends here as an exception. Nothing is imported or loaded until a function is called, so that a machine
without NVRTC can import everything else.
"""

from __future__ import annotations

import functools
import importlib
from typing import TYPE_CHECKING, Any

from trunnion.errors import BackendUnavailableError, DriverError, LifecycleError, ProgramError
from trunnion.messages import describe
from trunnion_nvrtc.compiler.first_use import FirstUse
from trunnion_nvrtc.compiler.results import NVRTC_RESULTS, result_code

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = [
    "DISTRIBUTION",
    "NAME",
    "bindings",
    "check",
    "error_string",
    "failure",
    "import_bindings",
    "supported_archs",
    "title",
    "version",
]

NAME = "nvrtc"
"""The plugin's name."""

DISTRIBUTION = "trunnion-nvrtc"
"""The distribution that this package comes in."""


def import_bindings(name: str) -> tuple[Any, str]:
    """Return a module of ``cuda.bindings``, and the version of the bindings.

    Raises
    ------
    BackendUnavailableError
        If the bindings are not installed.
    """
    try:
        version = importlib.import_module("cuda.bindings").__version__
        return importlib.import_module(f"cuda.bindings.{name}"), version
    except ImportError as error:
        reason = (
            f"cuda.bindings.{name} cannot be imported ({error}); run: pip install 'cuda-bindings>=13,<14'"
        )
        raise BackendUnavailableError(NAME, DISTRIBUTION, reason) from error


_FIRST_USE = FirstUse("NVRTC")


@functools.cache
def bindings() -> Any:
    """Return ``cuda.bindings.nvrtc`` once it is known to work.

    Raises
    ------
    BackendUnavailableError
        If the bindings are not installed, find no library, or belong to another major version of CUDA.
    LifecycleError
        If the thread is in the middle of this, or its process was forked when some thread was.
    """
    nvrtc, bindings_version = import_bindings("nvrtc")
    ours = bindings_version.partition(".")[0]
    try:
        status, major, minor = _FIRST_USE.run(nvrtc.nvrtcVersion)
    except LifecycleError:  # a RuntimeError too, but no library is missing
        raise
    except RuntimeError as error:
        reason = f"libnvrtc.so.{ours} is not found; run: pip install 'nvidia-cuda-nvrtc=={ours}.*'"
        raise BackendUnavailableError(NAME, DISTRIBUTION, reason, str(error)) from error
    if int(status) != 0 or str(major) != ours:
        reason = (
            f"cuda-bindings {bindings_version} found NVRTC {major}.{minor}, expected {ours}.x; "
            f"run: pip install 'nvidia-cuda-nvrtc=={ours}.*'"
        )
        raise BackendUnavailableError(NAME, DISTRIBUTION, reason)
    return nvrtc


def check(call: str, result: Sequence[Any]) -> Any:
    """Return what a call returned beside its status.

    Raises
    ------
    DriverError
        If the status is not ``NVRTC_SUCCESS``.
    """
    status, *values = result
    if int(status) != 0:
        raise failure(call, int(status))
    return values[0] if values else None


def failure(call: str, code: int) -> DriverError:
    """Return the error of a call that ended with a status."""
    row = result_code(NVRTC_RESULTS, code)
    return DriverError(call, code, row.name, row.meaning)


def version() -> tuple[int, int]:
    """Return NVRTC's version as major and minor number (``nvrtcVersion``).

    Raises
    ------
    BackendUnavailableError
        If NVRTC is not there.
    """
    _, major, minor = bindings().nvrtcVersion()
    return int(major), int(minor)


@functools.cache
def title() -> str:
    """Return name and version of the compiler, for messages."""
    return "NVRTC {}.{}".format(*version())


def error_string(code: int) -> str:
    """Return the name that NVRTC gives to a status (``nvrtcGetErrorString``); `NVRTC_RESULTS` has the meanings.

    Raises
    ------
    ProgramError
        If NVRTC has no such status.
    BackendUnavailableError
        If NVRTC is not there.
    """
    nvrtc = bindings()
    try:
        status = nvrtc.nvrtcResult(code)
    except ValueError as error:
        raise ProgramError(f"got {describe(code)}, expected a status of NVRTC", field="code") from error
    _, text = nvrtc.nvrtcGetErrorString(status)
    return str(text.decode("utf-8", "replace"))


@functools.cache
def supported_archs() -> tuple[int, ...]:
    """Return the architectures that NVRTC compiles for, as numbers such as 90 (``nvrtcGetSupportedArchs``).

    Raises
    ------
    BackendUnavailableError
        If NVRTC is not there.
    """
    return tuple(sorted(check("nvrtcGetSupportedArchs", bindings().nvrtcGetSupportedArchs())))
