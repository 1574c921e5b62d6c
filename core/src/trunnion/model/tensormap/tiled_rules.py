"""The constraints of ``cuTensorMapEncodeTiled``, one row each.

Source of each documented row: CUDA Driver API, "Tensor Map Object Managment", ``cuTensorMapEncodeTiled``.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from trunnion.model.tensormap.rule import H200Answer, Origin, Rule, outside
from trunnion.model.tensormap.shared_rules import (
    BOX_BYTES,
    HOPPER,
    LAYOUT_RULES,
    MODE_RULES,
    WIDE_PACKED,
    is_whole_chunks,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from trunnion.model.tensormap.fields import TiledFields

__all__ = ["TILED_RULES"]

_MAX_RANK = 5
_MIN_INTERLEAVED_RANK = 3
_MAX_BOX = 256
_WIDE_BOX = 128


def _rank(f: TiledFields) -> Iterator[str]:
    least = _MIN_INTERLEAVED_RANK if f.interleave else 1
    if not least <= len(f.dims) <= _MAX_RANK:
        yield f"the rank is {len(f.dims)}"


def _inner_box(f: TiledFields) -> Iterator[str]:
    if not f.interleave and f.inner_bits is not None and not is_whole_chunks(f):
        yield f"the box's inner dimension spans {f.inner_bits / 8:g} bytes, not a multiple of 16"


def _interleaved_inner_box(f: TiledFields) -> Iterator[str]:
    if f.interleave and f.inner_bits is not None and not is_whole_chunks(f):
        yield f"the box's inner dimension spans {f.inner_bits / 8:g} bytes, not a multiple of 16"


def _wide_packed_box(f: TiledFields) -> Iterator[str]:
    if f.data_type in WIDE_PACKED and f.box[:1] != (_WIDE_BOX,):
        yield f"box_dim is {f.box[::-1]}"


def _steps(f: TiledFields) -> tuple[int, ...] | None:
    """Return the element strides, or None where another rule already refuses them."""
    return f.element_strides if all(step > 0 for step in f.element_strides) else None


def _rounded_down(f: TiledFields) -> int:
    counts = (extent // step for extent, step in zip(f.box, _steps(f) or (), strict=False))
    return math.prod(counts) * f.element_bits // 8


def _rounded_up(f: TiledFields) -> int:
    # Without interleave the hardware ignores the first step, which another rule has be 1.
    counts = (-(-extent // step) for extent, step in zip(f.box, _steps(f) or (), strict=False))
    return math.prod(counts) * f.element_bits // 8


def _driver_box_bytes(f: TiledFields) -> Iterator[str]:
    if _steps(f) is not None and _rounded_down(f) > BOX_BYTES:
        yield f"the box holds {_rounded_down(f)} bytes"


def _hardware_box_bytes(f: TiledFields) -> Iterator[str]:
    if _steps(f) is not None and _rounded_down(f) <= BOX_BYTES < _rounded_up(f):
        yield f"the box holds {_rounded_up(f)} bytes"


TILED_RULES: tuple[Rule[TiledFields], ...] = (
    Rule(text="the rank is 1 to 5, and at least 3 with an interleave", violations=_rank),
    *LAYOUT_RULES,
    Rule(text="each box dimension is 1 to 256", violations=lambda f: outside("box_dim", f.box, 1, _MAX_BOX)),
    Rule(
        text="without interleave, the box's inner dimension is a multiple of 16 bytes", violations=_inner_box
    ),
    Rule(
        text="with an interleave too, the box's inner dimension is a multiple of 16 bytes",
        violations=_interleaved_inner_box,
        origin=Origin.MEASURED,
        architectures=HOPPER,
    ),
    Rule(
        text="the box's inner dimension is 128 elements with type 16U4_ALIGN16B or 16U6_ALIGN16B",
        violations=_wide_packed_box,
        h200=H200Answer.UNSEEN,
    ),
    *MODE_RULES,
    Rule(
        text=f"the box, each extent divided by its element stride and rounded down, is at most {BOX_BYTES} bytes, "
        "the shared memory of a multiprocessor",
        violations=_driver_box_bytes,
        origin=Origin.MEASURED,
        architectures=HOPPER,
    ),
    Rule(
        text=f"the box as the hardware loads it, rounded up, is at most {BOX_BYTES} bytes too",
        violations=_hardware_box_bytes,
        origin=Origin.OURS,
        architectures=HOPPER,
        h200=H200Answer.ACCEPTS,
        reason="the hardware loads ceil(box / element stride) elements, and no multiprocessor has room for them",
    ),
)
"""Every constraint, near the order in which the documentation gives them.

Each message says in what order its index counts.
"""
