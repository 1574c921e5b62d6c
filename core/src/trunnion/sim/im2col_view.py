"""What a kernel body sees of an im2col tensor map: columns of pixels, loaded and stored by coordinates.

Source: PTX ISA, Tensors, im2col mode.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from trunnion.errors import ArgumentValueError
from trunnion.model.dtypes import dtype
from trunnion.sim.map_elements import element_type, outside

if TYPE_CHECKING:
    import torch

    from trunnion.model.dtypes import DType
    from trunnion.sim.memory import BoundMemory
    from trunnion.sim.tensormap import Im2colRequest

__all__ = ["Im2colView"]


@dataclass(frozen=True, slots=True)
class Im2colView:
    """A delivered im2col map, over the memory of the device that the kernel runs on.

    Values are those of the *logical* column. Where the hardware puts them in shared memory (the swizzle) is for
    the kernel to undo, and so has no place here.
    """

    request: Im2colRequest
    """What the map was encoded from; innermost dimension first."""

    memory: BoundMemory
    """The memory that it reads and writes."""

    @property
    def column_shape(self) -> tuple[int, int]:
        """The shape of a loaded column: pixels, then channels."""
        return self.request.pixels, self.request.channels

    def load(
        self,
        coordinates: tuple[int, ...],
        offsets: tuple[int, ...] | None = None,
        dtype_: DType | str | None = None,
    ) -> torch.Tensor:
        """Return the column at ``coordinates``, as ``cp.async.bulk.tensor`` would load it.

        The first pixel lies at the coordinates; the next ones follow along W until the box of pixels ends, then
        along H, D and N, by the map's element strides along W, H and D. What is loaded of each pixel lies
        ``offsets`` away from it.

        Parameters
        ----------
        coordinates
            The first channel, then the first pixel, **innermost dimension first**, as in PTX: C, W, [H, [D,]] N.
        offsets
            How far from each pixel to load, along W, [H, [D]]: the position within a filter; None: zeros.
        dtype_
            The element type to read as, for types that the driver has no name for; None: the map's own.

        Returns
        -------
        torch.Tensor
            A new host tensor of shape `column_shape`. Elements outside the tensor are zero, or NaN if the map
            asks for it.

        Raises
        ------
        ArgumentValueError
            If the numbers of coordinates or offsets are wrong, an offset is negative, or ``dtype_`` has another
            size.
        DriverError
            If the column touches memory outside a live allocation.
        UnsupportedFeatureError
            If the map is interleaved or its elements are packed.
        """
        row = element_type(self.request, dtype_)
        column = outside(self.request, self.column_shape, row)
        touched = self._touched(coordinates, offsets)
        if touched.addresses:
            flat, index = self._bytes(touched, row)
            part = flat[index].view(column.dtype)
            column[touched.pixels, touched.first : touched.first + touched.channels] = part
        return column

    def store(self, coordinates: tuple[int, ...], values: torch.Tensor) -> None:
        """Write a column at ``coordinates``, with no offsets; elements outside the tensor are dropped.

        Parameters
        ----------
        coordinates
            As for `load`.
        values
            The column, of shape `column_shape`.

        Raises
        ------
        ArgumentValueError
            If the shape is another, or the element's size.
        DriverError
            If the column touches memory outside a live allocation.
        UnsupportedFeatureError
            If the map is interleaved or its elements are packed.
        """
        import torch  # noqa: PLC0415 - only a process that runs kernel bodies pays for it

        row = element_type(self.request, dtype(values.dtype))
        if tuple(values.shape) != self.column_shape:
            raise ArgumentValueError("values", f"shape {tuple(values.shape)}", f"shape {self.column_shape}")
        touched = self._touched(coordinates, None)
        if touched.addresses:
            part = values[touched.pixels, touched.first : touched.first + touched.channels]
            flat, index = self._bytes(touched, row)
            flat[index] = part.contiguous().view(torch.uint8)

    def _pixels(self, start: tuple[int, ...]) -> list[tuple[int, ...]]:
        """Return the base pixels of a column, along W, H, D, N: each axis goes on where the one before ends."""
        request = self.request
        steps = request.element_strides[1:-1]
        last = [extent - 1 + upper for extent, upper in zip(request.dims[1:-1], request.upper, strict=True)]
        found = []
        here = list(start)
        for _ in range(request.pixels):
            found.append(tuple(here))
            for axis, step in enumerate(steps):
                here[axis] += step
                if here[axis] <= last[axis]:
                    break
                here[axis] = request.lower[axis]
            else:
                here[-1] += 1
        return found

    def _touched(self, coordinates: tuple[int, ...], offsets: tuple[int, ...] | None) -> _Touched:
        request = self.request
        if len(coordinates) != request.rank:
            raise ArgumentValueError(
                "coordinates", f"{len(coordinates)} of them", f"one for each of the {request.rank} dimensions"
            )
        away = (0,) * (request.rank - 2) if offsets is None else offsets
        if len(away) != request.rank - 2 or min(away) < 0:
            raise ArgumentValueError("offsets", f"{away}", f"{request.rank - 2} numbers from 0 on")
        channel = coordinates[0]
        first = min(request.channels, max(0, -channel))
        channels = max(0, min(request.channels, request.dims[0] - channel) - first)
        base = request.address + (channel + first) * request.data_type.bits // 8
        touched = _Touched([], [], first, channels)
        for number, pixel in enumerate(self._pixels(coordinates[1:])):
            place = [at + by for at, by in zip(pixel, (*away, 0), strict=True)]
            inside = all(0 <= at < extent for at, extent in zip(place, request.dims[1:], strict=True))
            if inside and channels:
                reach = sum(at * stride for at, stride in zip(place, request.strides, strict=True))
                touched.pixels.append(number)
                touched.addresses.append(base + reach)
        return touched

    def _bytes(self, touched: _Touched, row: DType) -> tuple[torch.Tensor, torch.Tensor]:
        """Return device memory as bytes, and for each pixel and each of its bytes where it lies there."""
        import torch  # noqa: PLC0415 - only a process that runs kernel bodies pays for it

        width = touched.channels * row.itemsize
        start = min(touched.addresses)
        flat = self.memory.view(start, "uint8", (max(touched.addresses) + width - start,))
        places = torch.tensor(touched.addresses) - start
        return flat, places[:, None] + torch.arange(width)


@dataclass(frozen=True, slots=True)
class _Touched:
    """The part of a column that lies inside the tensor."""

    pixels: list[int]
    """Which pixels."""

    addresses: list[int]
    """For each, the address of its first channel inside."""

    first: int
    """The first channel inside."""

    channels: int
    """How many channels are inside."""
