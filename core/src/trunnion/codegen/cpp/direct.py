"""The direct entry of a loaded launcher: Python's own calling convention, where arguments are plain."""

from __future__ import annotations

import ctypes
import sys
import sysconfig
from typing import TYPE_CHECKING, Any

from trunnion.contract.convention import WORDS
from trunnion.errors import DeviceRequirementError
from trunnion.model.dtypes import Kind, dtype
from trunnion.model.params import PointerParam, ScalarParam, TensorParam

if TYPE_CHECKING:
    from collections.abc import Callable

    from trunnion.codegen.cpp.call_signature import CallSignature
    from trunnion.contract.runtime import Runtime
    from trunnion.model.plan import LaunchPlan

__all__ = ["argument_kinds", "direct_entry", "direct_launch"]

_KINDS = {Kind.INT: "i", Kind.UINT: "i", Kind.FLOAT: "f", Kind.COMPLEX: "c", Kind.BOOL: "b"}


def argument_kinds(plan: LaunchPlan) -> str:
    """Return the letter of each argument of a call under which ``trunnion/python_call.hpp`` knows its kind."""
    return "".join(map(_letter, plan.signature.params))


def _letter(param: Any) -> str:
    if isinstance(param, TensorParam):
        return "n" if param.nullable else "t"
    if isinstance(param, PointerParam):
        return "q" if param.nullable else "p"
    if isinstance(param, ScalarParam):
        return "u" if param.dtype.name == "uint64" else _KINDS[param.dtype.kind]
    return "s"


def direct_entry(
    offer: Callable[..., Any],
    runtime: Runtime,
    general: Callable[..., Any],
    failed: Callable[[int], Any],
    facts: CallSignature,
) -> Callable[..., Any] | None:
    """Return the direct entry of a launcher; None if there is none for this Python or this tensor library.

    It takes Python's own numbers and plain tensors, and launches. Everything else, and every call that it refuses, it
    hands to `general`.

    Parameters
    ----------
    offer
        What the launcher exports as ``python_entry``.
    runtime
        The tensor library.
    general
        The general entry.
    failed
        Raises what a launch raised, of which it is given the address.
    facts
        What is known of its calls.
    """
    exchange = runtime.exchange_api()
    # Without its lock, and where it traces references, CPython lays objects out in another way.
    odd = any(map(sysconfig.get_config_var, ("Py_GIL_DISABLED", "Py_TRACE_REFS")))
    if not exchange or odd or sys.implementation.name != "cpython":
        return None
    try:
        types = tuple(runtime.dtype(dtype(name)) for name in (*(one.dtype for one in facts.outputs), "uint8"))
    except DeviceRequirementError:  # the tensor library has no such type
        return None
    held = (general, failed, _names(facts), *_tensor_library(runtime), types)
    address = offer(exchange, *(0 if one is None else id(one) for one in held))
    if not address:
        return None
    # What the launcher has the addresses of is there for as long as the function, as its module; so is, by `offer`, the
    # program, whose memory the definition and `self` lie in. In a tuple, which a garbage collection never empties.
    return _function_at(address, (*held, offer))


def direct_launch(launch: Callable[..., Any], result: Any, held: tuple[Any, ...]) -> Callable[[], Any]:
    """Return a bound call as a function of Python's own calling convention; only of a launcher with a direct entry.

    Parameters
    ----------
    launch
        The bound call, as the launcher's ``bind`` gives it.
    result
        What each call of it returns.
    held
        What is to be there for as long as the function: the direct entry, and what a launch works on.
    """
    return _function_at(launch(id(result)), (launch, result, *held))


def _function_at(address: int, held: tuple[Any, ...]) -> Callable[..., Any]:
    function: Callable[..., Any] = _new_function(address, _new_capsule(address, None, None), held)
    return function


def _names(facts: CallSignature) -> tuple[str | None, ...]:
    """Return the names by which arguments go, then those of the words: interned, as those that stand in calls are."""
    keywords = facts.convention().keywords
    return tuple(name and sys.intern(name) for name in (*keywords, *WORDS))


def _tensor_library(runtime: Runtime) -> tuple[Any, ...]:
    """Return what ``trunnion/python_entry.hpp`` holds of a tensor library, in its order."""
    tensor, parameter = runtime.exchanged_types
    # Of a tensor, as functions of CPython's own convention; a property would be asked for anew each time.
    questions: Any = tensor
    stream = runtime.stream_type, sys.intern("cuda_stream")
    allocators = runtime.allocate, runtime.quick_allocator()
    return tensor, parameter, questions.is_neg, questions.is_conj, runtime.room, *stream, *allocators


_new_capsule = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)(
    ("PyCapsule_New", ctypes.pythonapi)
)
_new_function = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.py_object, ctypes.py_object)(
    ("PyCFunction_NewEx", ctypes.pythonapi)
)
