"""What the driver's statuses mean: every one of them ends here, those too that ``cuda.bindings`` does not know."""

from __future__ import annotations

import functools
import re
from typing import TYPE_CHECKING, Any

import cuda.bindings.driver as cu

from trunnion.launcher.driver_status import status_error

if TYPE_CHECKING:
    from collections.abc import Callable

    from trunnion.errors import TrunnionError
    from trunnion.launcher.driver_status import RefusedLaunch

__all__ = ["calls", "check", "driver_error"]

_UNKNOWN = re.compile(r"(?P<code>\d+) is not a valid CUresult")
"""How ``cuda.bindings`` says that a driver newer than they are returned a status which they have no name for."""


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
    try:
        known = cu.CUresult(code)
    except ValueError:
        advice = (
            "cuda.bindings do not know it, so the driver is newer; update cuda-bindings to be told its name"
        )
        return status_error(call, code, (f"status {code}", advice), stream, launch)
    unnamed, name = cu.cuGetErrorName(known)
    untold, text = cu.cuGetErrorString(known)
    code_name = f"status {code}" if unnamed or name is None else name.decode()
    explanation = "" if untold or text is None else text.decode()
    return status_error(call, code, (code_name, explanation), stream, launch)


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

        setattr(self, name, call)  # it is found without this method from now on
        return call


calls: Any = _Calls()
"""The functions of ``cuda.bindings.driver``."""
