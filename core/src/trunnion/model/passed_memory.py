"""`PassedMemory`: memory with the arguments of launches that are made of it."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from trunnion.model.fields import refuse_unknown
from trunnion.model.memory import Memory
from trunnion.model.moved_address import MovedAddress
from trunnion.model.tensormap import Im2colTensorMap, TiledTensorMap
from trunnion.model.view import TensorView
from trunnion.model.window import AccessPolicyWindow

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from trunnion.model.expr import ExprLike

__all__ = ["PassedMemory"]


class PassedMemory(Memory):
    """A tensor or a workspace, of which maps, windows, views and moved addresses are made."""

    __slots__ = ()

    def view(self) -> TensorView:
        """Return this memory with its layout, as one argument by value: see `TensorView`."""
        return TensorView(self)

    def at(self, offset: ExprLike) -> MovedAddress:
        """Return the address of this memory, moved by so many elements: see `MovedAddress`.

        Raises
        ------
        ProgramError
            If no call could allow the offset.
        """
        return MovedAddress(self, offset)  # type: ignore[arg-type]  # the constructor takes integers too

    def tiled(self, box_dim: Sequence[int], **fields: Any) -> TiledTensorMap:
        """Return a tiled tensor map over this memory; further fields are those of `TiledTensorMap`.

        Parameters
        ----------
        box_dim
            Elements of the box along each dimension, outermost first.
        **fields
            Further fields of the map.

        Raises
        ------
        ProgramError
            If a field is wrong or unknown; it is named.
        """
        _refuse_unknown(TiledTensorMap, fields, "tensor map")
        return TiledTensorMap(self, box_dim, **fields)  # type: ignore[arg-type]  # the constructor normalises

    def im2col(self, **fields: Any) -> Im2colTensorMap:
        """Return an im2col tensor map over this memory; the fields are those of `Im2colTensorMap`.

        Raises
        ------
        ProgramError
            If a field is wrong, missing or unknown; it is named.
        """
        _refuse_unknown(Im2colTensorMap, fields, "tensor map")
        return Im2colTensorMap(self, **fields)

    def window(self, **fields: Any) -> AccessPolicyWindow:
        """Return an access-policy window over this memory; the fields are those of `AccessPolicyWindow`.

        Raises
        ------
        ProgramError
            If a field is wrong or unknown; it is named.
        """
        _refuse_unknown(AccessPolicyWindow, fields, "window")
        return AccessPolicyWindow(self, **fields)


def _refuse_unknown(kind: type, fields: dict[str, Any], where: str) -> None:
    refuse_unknown(fields, [each.name for each in dataclasses.fields(kind)][1:], where)
