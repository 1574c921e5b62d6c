"""Whether the annotations of a kernel are what the program passes.

CuTeDSL converts a number to the type that the kernel's parameter is annotated with where it is launched: in the host
function, which trunnion throws away. The kernel would take the annotation's type, and be given the bits of the
program's. So both have to be one type here. Other mismatches are CuTeDSL's to find; those that it does not find, or
words as a fault of its own, are found here too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Final, get_args, get_origin

import cutlass
from cutlass import cute

from trunnion_cutedsl.compiler.messages import JobError

if TYPE_CHECKING:
    import inspect

__all__ = ["check_annotation"]

_PLAIN: Final = (bool, int, float)
_TENSORS: Final = (cute.Tensor, getattr(cutlass, "Array", None))
_POINTERS: Final = tuple(getattr(module, "Pointer", None) for module in (cute, cutlass))
_SPELT: Final = {"tensor": "cute.Tensor", "pointer": "cute.Pointer"}
_UNTYPED: Final = "Uint8"
_GIVEN: Final = {"tensor": "a view of", "pointer": "a pointer to", "scalar": "a number of type"}


def check_annotation(kernel: str, parameter: inspect.Parameter, given: dict[str, Any]) -> None:
    """Compare a parameter's annotation, if there is one, with what the program passes.

    Parameters
    ----------
    kernel
        The kernel's name.
    parameter
        The parameter; its annotation is no text, but what the text stands for.
    given
        What is passed, as `Job.message` has it.

    Raises
    ------
    JobError
        If the kernel would take another type of number, another type of elements, or a number, a pointer and a tensor
        are mixed up; or if a map is passed to what is not declared as one.
    """
    said = parameter.annotation
    if given["kind"] == "map":
        if "GridConstant" not in str(said):
            raise JobError(
                f"the program gives {parameter.name} of {kernel} a tensor map: declare {parameter.name}: "
                "cutlass.GridConstant[TensorMap], or it is passed as something else"
            )
        return
    if get_origin(said) is Annotated:  # GridConstant[...] is one
        said = get_args(said)[0]
    wanted = _wanted(said)
    advice = _advice(parameter.name, wanted, given, _element(said))
    if wanted and advice:
        raise JobError(
            f"{parameter.name} of {kernel} is annotated {_name(said)}, and the program passes {_GIVEN[given['kind']]} "
            f"{given['dtype']}: {advice}"
        )


def _wanted(said: Any) -> str:
    """Return the kind of argument that an annotation asks for; empty: none of those that are compared."""
    if not isinstance(said, type):
        return {"TypedTensor": "tensor", "TypedPointer": "pointer"}.get(type(said).__name__, "")
    if said in _PLAIN or issubclass(said, cutlass.Numeric):
        return "scalar"
    if said in _TENSORS:
        return "tensor"
    return "pointer" if said in _POINTERS else ""


def _element(said: Any) -> Any:
    """Return the type of numbers or elements that an annotation names; None: it leaves that open."""
    if isinstance(said, type):
        return said if said in _PLAIN or issubclass(said, cutlass.Numeric) else None
    return getattr(said, "element_type", None) or getattr(said, "dtype", None)


def _advice(name: str, wanted: str, given: dict[str, Any], element: Any) -> str:
    """Return what to write instead; empty: it fits."""
    kind, dtype = given["kind"], given["dtype"]
    if wanted != kind:
        return _other_kind(name, wanted, kind, dtype)
    if element is None or issubclass(getattr(cutlass, dtype, element), element):
        return ""  # a type that this CuTeDSL does not have is refused where it is made
    if kind == "scalar":
        return f"write {name}: {dtype}, and convert in the kernel, or pass such a number: nothing converts it"
    if kind == "pointer" and dtype == _UNTYPED:
        return ""  # bytes may be anything
    return f"write {dtype} there, or pass memory with such elements: nothing converts them"


def _other_kind(name: str, wanted: str, kind: str, dtype: str) -> str:
    if (wanted, kind) == ("tensor", "pointer"):
        return f"pass {name}.view() in the launch's args, or write {name}: cute.Pointer"
    if (wanted, kind) == ("pointer", "tensor"):
        return f"pass {name} without .view() in the launch's args, or write {name}: cute.Tensor"
    return f"write {name}: {_SPELT.get(kind, dtype)}"


def _name(said: Any) -> str:
    return said.__name__ if isinstance(said, type) else str(said)
