"""What torch cuts out of tensors for a call of its own: for a member of a batch, or of what flows back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from trunnion.model.params import TensorParam

if TYPE_CHECKING:
    from trunnion.model.params import Param

__all__ = ["as_declared"]


def as_declared(param: Param, value: Any) -> Any:
    """Return a tensor that torch has cut out, as a program takes it: contiguous, and aligned as it is declared.

    Who called chose neither. A copy is aligned as far as torch's own memory is. Where strides are declared, it stays.

    Parameters
    ----------
    param
        The parameter that it is for.
    value
        The tensor; or what is passed in place of one.
    """
    if not isinstance(param, TensorParam) or param.strides is not None or value is None:
        return value
    plain = value.contiguous()
    if param.alignment is None:
        return plain
    try:
        aligned = plain.data_ptr() % param.alignment == 0
    except RuntimeError:  # what is traced has no address: whatever comes when it runs may have any
        aligned = False
    return plain if aligned else plain.clone()
