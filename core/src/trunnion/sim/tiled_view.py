"""What a kernel body sees of a tensor map: boxes of a tensor, loaded and stored by coordinates."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from trunnion.errors import ArgumentValueError
from trunnion.model.dtypes import dtype
from trunnion.sim.map_elements import element_type, outside

if TYPE_CHECKING:
    import torch

    from trunnion.model.dtypes import DType
    from trunnion.sim.memory import BoundMemory
    from trunnion.sim.tensormap import TiledRequest

__all__ = ["TiledView"]


@dataclass(frozen=True, slots=True)
class _Span:
    """One dimension's part of a box: which of its elements lie inside the tensor."""

    count: int
    skipped: int
    inside: int
    start: int
    step: int


@dataclass(frozen=True, slots=True)
class TiledView:
    """A delivered tensor map, over the memory of the device that the kernel runs on.

    Values are those of the *logical* box. Where the hardware puts them in shared memory (the swizzle) is for
    the kernel to undo, and so has no place here.
    """

    request: TiledRequest
    """What the map was encoded from; innermost dimension first."""

    memory: BoundMemory
    """The memory that it reads and writes."""

    @property
    def box_shape(self) -> tuple[int, ...]:
        """The shape of a loaded box, outermost dimension first."""
        return tuple(span.count for span in reversed(self._spans((0,) * self.request.rank)))

    def load(self, coordinates: tuple[int, ...], dtype_: DType | str | None = None) -> torch.Tensor:
        """Return the box at ``coordinates``, as ``cp.async.bulk.tensor`` would load it.

        Parameters
        ----------
        coordinates
            The element at the box's corner, **innermost dimension first**, as in PTX; may be negative.
        dtype_
            The element type to read as, for types that the driver has no name for; None: the map's own.

        Returns
        -------
        torch.Tensor
            A new host tensor in row-major order, outermost dimension first. Elements outside the tensor are
            zero, or NaN if the map asks for it.

        Raises
        ------
        ArgumentValueError
            If there is not one coordinate for each dimension, or ``dtype_`` has another size.
        DriverError
            If the box touches memory outside a live allocation.
        UnsupportedFeatureError
            If the map is interleaved or its elements are packed.
        """
        row = element_type(self.request, dtype_)
        spans = self._spans(coordinates)
        box = outside(self.request, tuple(span.count for span in reversed(spans)), row)
        inside = self._inside(spans, row)
        if inside is not None:
            box[_slices(spans)] = inside
        return box

    def store(self, coordinates: tuple[int, ...], values: torch.Tensor) -> None:
        """Write a box at ``coordinates``; elements outside the tensor are dropped, as by the hardware.

        Parameters
        ----------
        coordinates
            The element at the box's corner, **innermost dimension first**, as in PTX; may be negative.
        values
            The box, outermost dimension first, of shape `box_shape`.

        Raises
        ------
        ArgumentValueError
            If the shape is another, or the element's size.
        DriverError
            If the box touches memory outside a live allocation.
        UnsupportedFeatureError
            If the map is interleaved or its elements are packed.
        """
        row = element_type(self.request, dtype(values.dtype))
        spans = self._spans(coordinates)
        if tuple(values.shape) != self.box_shape:
            raise ArgumentValueError("values", f"shape {tuple(values.shape)}", f"shape {self.box_shape}")
        inside = self._inside(spans, row)
        if inside is not None:
            inside.copy_(values[_slices(spans)])

    def _spans(self, coordinates: tuple[int, ...]) -> tuple[_Span, ...]:
        request = self.request
        if len(coordinates) != request.rank:
            raise ArgumentValueError(
                "coordinates", f"{len(coordinates)} of them", f"one for each of the {request.rank} dimensions"
            )
        # Without interleave the innermost element stride has no effect: TMA has no step there.
        steps = (1, *request.element_strides[1:])
        spans = []
        for start, step, box, extent in zip(coordinates, steps, request.box, request.dims, strict=True):
            count = math.ceil(box / step)
            skipped = min(count, max(0, math.ceil(-start / step)))
            end = min(count, max(skipped, math.ceil((extent - start) / step)))
            spans.append(_Span(count, skipped, end - skipped, start + skipped * step, step))
        return tuple(spans)

    def _inside(self, spans: tuple[_Span, ...], row: DType) -> torch.Tensor | None:
        if any(span.inside == 0 for span in spans):
            return None
        pitches = (row.itemsize, *self.request.strides)
        address = self.request.address + sum(
            span.start * pitch for span, pitch in zip(spans, pitches, strict=True)
        )
        steps = tuple(span.step * pitch // row.itemsize for span, pitch in zip(spans, pitches, strict=True))
        return self.memory.view(address, row, tuple(span.inside for span in reversed(spans)), steps[::-1])


def _slices(spans: tuple[_Span, ...]) -> tuple[slice, ...]:
    return tuple(slice(span.skipped, span.skipped + span.inside) for span in reversed(spans))
