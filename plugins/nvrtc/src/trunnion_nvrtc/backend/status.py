"""What the driver's statuses mean: every one of them ends here, those too that ``cuda.bindings`` does not know."""

from __future__ import annotations

import ctypes
import functools
import re
from typing import TYPE_CHECKING, Any

import cuda.bindings.driver as cu

from trunnion.launcher.driver_status import status_error
from trunnion.model.plan.refusals import OLD_DRIVER

if TYPE_CHECKING:
    from collections.abc import Callable

    from trunnion.errors import TrunnionError
    from trunnion.launcher.driver_status import RefusedLaunch

__all__ = ["LEAST_VERSION", "call_driver", "calls", "check", "driver_error"]

_UNKNOWN = re.compile(r"(?P<code>\d+) is not a valid CUresult")
"""How ``cuda.bindings`` says that a driver newer than they are returned a status which they have no name for."""

_MISSING = re.compile(r'Function ".*" not found')
"""How ``cuda.bindings`` says that the driver that they found first, which may be older than a later one, lacks it."""

LEAST_VERSION = 12000
"""Of CUDA, which brought cuLibraryLoadData and its like, and has all functions that are called."""


def check(call: str, status: Any, stream: int | None = None) -> None:
    """Raise what a driver's status says.

    Parameters
    ----------
    call
        The function that returned it.
    status
        A ``CUresult``, or its number.
    stream
        The handle of the stream that it was given; None: it takes none.

    Raises
    ------
    DriverError
        Unless the status is ``CUDA_SUCCESS``.
    """
    if status:
        raise driver_error(call, status, stream)


def driver_error(
    call: str, status: Any, stream: int | None = None, launch: RefusedLaunch | None = None
) -> TrunnionError:
    """Return the error of a status, with its name, its explanation and advice.

    Parameters
    ----------
    call, status, stream
        As for `check`.
    launch
        What the function was to launch; None: it launches nothing.
    """
    code = int(status)
    said = _told("cuGetErrorName", code) or f"status {code}", _told("cuGetErrorString", code)
    return status_error(call, code, said, stream, launch)


@functools.cache
def _library() -> ctypes.CDLL:
    """Return the driver, which `cu` found under the same name: it has words for statuses that `cu` knows nothing of."""
    return ctypes.CDLL("libcuda.so.1")


def _told(function: str, code: int) -> str:
    """Return what a function of the driver tells of a status; empty if nothing."""
    text = ctypes.c_char_p()
    unknown = getattr(_library(), function)(code, ctypes.byref(text))
    return "" if unknown or text.value is None else text.value.decode()


class _Calls:
    """The functions of ``cuda.bindings.driver``, which raise a typed error where they know no such status."""

    def __getattr__(self, name: str) -> Callable[..., Any]:
        function = getattr(cu, name)

        @functools.wraps(function)
        def call(*arguments: Any) -> Any:
            try:
                return function(*arguments)
            except ValueError as error:
                found = _UNKNOWN.fullmatch(str(error))
                if found is None:
                    raise
                raise driver_error(name, int(found["code"])) from error
            except RuntimeError as error:  # what the bindings found once they keep for the whole process
                if not _MISSING.fullmatch(str(error)):
                    raise
                _, version = cu.cuDriverGetVersion()
                raise OLD_DRIVER(LEAST_VERSION, name, version) from error

        setattr(self, name, call)  # it is found without this method from now on
        return call


calls: Any = _Calls()
"""The functions of ``cuda.bindings.driver``."""


def call_driver(call: str, *arguments: Any, stream: int | None = None) -> Any:
    """Call a function of the driver; return what it gives beside its status: nothing, a value, or a list of several.

    Parameters
    ----------
    call
        The function.
    *arguments
        What it is called with.
    stream
        As for `check`.

    Raises
    ------
    DriverError
        Unless the status is ``CUDA_SUCCESS``.
    """
    status, *given = getattr(calls, call)(*arguments)
    check(call, status, stream)
    return given[0] if len(given) == 1 else given
