"""What the driver's statuses mean: every one of them ends here."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import cuda.bindings.driver as cu

from trunnion.codegen.driver_status import status_error

if TYPE_CHECKING:
    from trunnion.errors import TrunnionError

__all__ = ["check", "driver_error"]


def check(call: str, status: Any, stream: int | None = None) -> None:
    """Raise what a driver's status says.

    Parameters
    ----------
    call
        The function that returned it.
    status
        A ``CUresult``.
    stream
        The handle of the stream that it was given; None: it takes none.

    Raises
    ------
    DriverError
        Unless the status is ``CUDA_SUCCESS``.
    """
    if status:
        raise driver_error(call, status, stream)


def driver_error(call: str, status: Any, stream: int | None = None) -> TrunnionError:
    """Return the error of a status, with its name, its explanation and advice; parameters are those of `check`."""
    code = int(status)
    found, name = cu.cuGetErrorName(status)
    known, text = cu.cuGetErrorString(status)
    code_name = f"status {code}" if found or name is None else name.decode()
    explanation = "" if known or text is None else text.decode()
    return status_error(call, code, (code_name, explanation), stream)
