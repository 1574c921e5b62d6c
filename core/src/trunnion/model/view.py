"""`TensorView`: a tensor with its layout, which travels by value as one parameter of a kernel."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from trunnion.errors import shorten
from trunnion.model.expr import Const
from trunnion.model.fields import instance, place
from trunnion.model.memory import Memory

if TYPE_CHECKING:
    from trunnion.model.expr import Expr

__all__ = ["TensorView"]


@dataclass(frozen=True, slots=True)
class TensorView:
    """Memory as an argument of a launch, with as much of its layout as only a call decides.

    One parameter, laid out as C lays out the structure: the pointer to the first element, then an ``int32_t`` for each
    extent that is no constant, then an ``int64_t`` for each stride that is no constant, outermost first. What is
    constant is not passed: the kernel was compiled for it. So a tensor of constant shape is its pointer.

    A kernel language whose tensors know their layout (CuTe's do) takes just this for a tensor; a CUDA C++ kernel can
    declare such a structure. It is an argument of its own, and no list of scalars that somebody puts together, because
    the device compiler must know which numbers belong to which tensor, which of them are constant and what divides
    them: it reads that from the same plan from which the host writes the bytes, so that the two cannot differ.

    An extent beyond ``int32_t`` is refused at the call, by the memory's name. A tensor that the call leaves out has a
    null pointer.
    """

    memory: Memory
    """The tensor or workspace."""

    def __post_init__(self) -> None:
        with place("view"):
            instance(self.memory, Memory, "memory")
            with place(f"{shorten(self.memory.name)}.shape"):
                _ = self.extents  # of a deep expression a cast may be too deep

    @property
    def extents(self) -> tuple[Expr, ...]:
        """The extents as they are passed; those that are no constants are casts, which check their range."""
        return tuple(one if isinstance(one, Const) else one.cast("int32") for one in self.memory.shape)

    @property
    def expressions(self) -> tuple[Expr, ...]:
        """Every extent, then every stride, constants too."""
        return (*self.memory.shape, *self.memory.steps())
