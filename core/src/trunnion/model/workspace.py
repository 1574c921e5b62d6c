"""`Workspace`: device memory that the launcher allocates for the length of one call."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from trunnion.errors import ProgramError, shorten
from trunnion.model.dtypes import DType, dtype
from trunnion.model.fields import flag, place, text
from trunnion.model.memory import exprs, power_of_two
from trunnion.model.passed_memory import PassedMemory

if TYPE_CHECKING:
    from collections.abc import Iterable

    from trunnion.model.expr import Expr

__all__ = ["Workspace", "by_name"]

_MAX_ALIGNMENT = 1 << 20


@dataclass(frozen=True, slots=True)
class Workspace(PassedMemory):
    """Scratch memory of a call: contiguous and row-major, allocated on the launch's stream.

    It is there only if a launch that is not skipped is given it, by pointer, through a map or as a window. Its bytes
    are whatever the allocator's memory held, unless it is `zeroed`.
    """

    name: str
    """What people call it; two workspaces of one program differ in their names."""

    dtype: DType
    """The element type."""

    shape: tuple[Expr, ...]
    """Elements along each dimension, outermost first: expressions over the signature's symbols."""

    alignment: int = 256
    """Bytes that the first element's address is a multiple of: a power of two."""

    zeroed: bool = False
    """Whether it is filled with zeros, on the launch's stream, before the first launch of each call."""

    __hash__ = PassedMemory.__hash__

    def __post_init__(self) -> None:
        object.__setattr__(self, "name", text(self.name, "name"))
        with place(f"workspace {shorten(self.name)}"):
            with place("dtype"):
                object.__setattr__(self, "dtype", dtype(self.dtype))
            object.__setattr__(self, "shape", exprs(self.shape, "shape"))
            self.check_shape()
            power_of_two(self.alignment, "alignment", _MAX_ALIGNMENT)
            flag(self.zeroed, "zeroed")


def by_name(workspaces: Iterable[Workspace], field: str) -> dict[str, Workspace]:
    """Return workspaces by their names, in their order; equal ones are one.

    Raises
    ------
    ProgramError
        If two that differ share a name. It is to be asked before they are the keys of anything: their hash is that of
        the name, so that many of one name would take quadratic time.
    """
    found: dict[str, Workspace] = {}
    for workspace in workspaces:
        if found.setdefault(workspace.name, workspace) != workspace:
            raise ProgramError(f"two workspaces are called {shorten(workspace.name)}", field=field)
    return found
