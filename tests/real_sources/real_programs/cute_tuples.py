"""Tuples of CuTe's, in which what the type says takes no room: shapes and strides within a struct."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trunnion import struct

if TYPE_CHECKING:
    from trunnion.model.struct import Struct


def cute_tuple(*values: object) -> Struct:
    """Return a tuple as the nested members that it is; a value that the type says is None, and has no member.

    A tuple has its first value and the rest, which is a tuple again; where either is empty, only the other.
    """
    first, rest = values[0], values[1:]
    fields = [] if first is None else [("first_", first)]
    if any(one is not None for one in rest):
        fields.append(("rest_", cute_tuple(*rest)))
    return struct(*fields)
