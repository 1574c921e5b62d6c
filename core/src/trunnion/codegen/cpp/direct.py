"""The direct entry of a loaded launcher: Python's own calling convention, where arguments are plain."""

from __future__ import annotations

import ctypes
import sys
import sysconfig
from typing import TYPE_CHECKING, Any

from trunnion.errors import DeviceRequirementError
from trunnion.model.dtypes import Kind, dtype
from trunnion.model.params import ScalarParam, TensorParam

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from trunnion.contract.runtime import Runtime
    from trunnion.model.dtypes import DType
    from trunnion.model.plan import LaunchPlan

__all__ = ["direct_entry", "direct_kinds"]

_LETTERS = {"tensor": "t", "nullable": "n", Kind.INT: "i", Kind.UINT: "i", Kind.FLOAT: "f", Kind.BOOL: "b"}
"""The letters under which ``trunnion/python_entry.hpp`` knows kinds of parameters."""


def direct_kinds(plan: LaunchPlan) -> str:
    """Return a letter for each argument of a call; empty if the direct entry cannot make such calls.

    It finds its device in a tensor, and takes no type that only the general entry converts. Limits of windows are
    checked before a call allocates, and it allocates before it is under way: of the two it does one.
    """
    letters = []
    for param in plan.signature.params:
        letter = _letter(param)
        if not letter:
            return ""
        letters.append(letter)
    allocates = plan.allocations or plan.workspaces
    windowed = any(launch.window is not None for launch in plan.launches)
    return "" if (allocates and windowed) or "t" not in letters else "".join(letters)


def _letter(param: Any) -> str:
    if isinstance(param, TensorParam):
        return _LETTERS["nullable" if param.nullable else "tensor"]
    if isinstance(param, ScalarParam) and param.dtype.name != "uint64":  # whose upper half overflows
        return _LETTERS.get(param.dtype.kind, "")
    return ""


def direct_entry(
    offer: Callable[..., Any],
    runtime: Runtime,
    general: Callable[..., Any],
    failed: Callable[[], Any],
    outputs: Sequence[DType],
) -> Callable[..., Any] | None:
    """Return the direct entry of a launcher; None if there is none for this Python or this tensor library.

    It takes plain arguments itself. Everything else, and every call that it refuses, it hands to `general`.

    Parameters
    ----------
    offer
        What the launcher exports as ``python_entry``.
    runtime
        The tensor library.
    general
        The general entry.
    failed
        Raises what the last launch of the calling thread raised.
    outputs
        The element types of the program's outputs.
    """
    exchange = runtime.exchange_api()
    # Without its lock, and where it traces references, CPython lays objects out in another way.
    odd = any(map(sysconfig.get_config_var, ("Py_GIL_DISABLED", "Py_TRACE_REFS")))
    if not exchange or odd or sys.implementation.name != "cpython":
        return None
    try:
        types = tuple(runtime.dtype(output) for output in (*outputs, dtype("uint8")))
    except DeviceRequirementError:  # the tensor library has no such type
        return None
    allocate, quick = runtime.allocate, runtime.quick_allocator()
    held = (general, failed, runtime.tensor_type, allocate, quick, types)
    address = offer(exchange, *(0 if one is None else id(one) for one in held))
    if not address:
        return None
    # What the launcher has the addresses of is there for as long as the function, as its module; so is, by `offer`, the
    # program, whose memory the definition and `self` lie in. In a tuple, which a garbage collection never empties.
    entry: Callable[..., Any] = _new_function(address, _new_capsule(address, None, None), (*held, offer))
    return entry


_new_capsule = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)(
    ("PyCapsule_New", ctypes.pythonapi)
)
_new_function = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.py_object, ctypes.py_object)(
    ("PyCFunction_NewEx", ctypes.pythonapi)
)
