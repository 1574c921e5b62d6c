"""Kernel bodies in Python: all that a body gets is what the launch delivered."""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, TypeAlias, TypeVar

from trunnion.errors import KernelBodyError
from trunnion.model.dtypes import DType, dtype
from trunnion.sim.abi import TENSOR_MAP_BYTES
from trunnion.sim.im2col_view import Im2colView
from trunnion.sim.launch_attributes import LaunchAttributes
from trunnion.sim.tensormap import Im2colRequest, TiledRequest, decode
from trunnion.sim.tiled_view import TiledView

if TYPE_CHECKING:
    from collections.abc import Sequence

    from trunnion.sim.launch_attributes import WindowAttribute
    from trunnion.sim.memory import BoundMemory

__all__ = ["KernelBody", "KernelCall", "TensorLayout"]

_POINTER_BYTES: Final = 8
_Request = TypeVar("_Request", TiledRequest, Im2colRequest)


@dataclass(frozen=True, slots=True)
class TensorLayout:
    """A tensor as a kernel sees it that was given one with its layout."""

    address: int
    """Of the first element."""

    shape: tuple[int, ...]
    """Elements along each dimension, outermost first."""

    strides: tuple[int, ...]
    """Elements between neighbours along each dimension."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelCall:
    """One launch, as its kernel sees it."""

    kernel: str
    """The kernel's exact symbol name."""

    device: int
    """The ordinal of the device that it runs on."""

    grid: tuple[int, int, int]
    """Blocks along x, y, z."""

    block: tuple[int, int, int]
    """Threads along x, y, z."""

    cluster: tuple[int, int, int] | None
    """Blocks of one cluster along x, y, z; None without clusters."""

    dynamic_smem_bytes: int
    """Dynamic shared memory of each block, in bytes."""

    parameters: tuple[bytes, ...]
    """The bytes of each parameter, by ordinal."""

    memory: BoundMemory
    """The memory of the device."""

    attributes: LaunchAttributes = field(default_factory=LaunchAttributes)
    """The launch attributes."""

    window: WindowAttribute | None = None
    """The access-policy window in force: the launch's, or else the stream's."""

    priority: int = 0
    """The priority in force: the launch's, or else the stream's."""

    def pointer(self, ordinal: int) -> int:
        """Return a parameter as an address.

        Raises
        ------
        KernelBodyError
            If there is no such parameter, or it is not 8 bytes.
        """
        return int.from_bytes(self._bytes(ordinal, _POINTER_BYTES, "a pointer"), "little")

    def view(self, ordinal: int, shape: Sequence[int | None], strides: Sequence[int | None]) -> TensorLayout:
        """Return a parameter as a tensor with its layout, as `trunnion.model.view.TensorView` passes one.

        Parameters
        ----------
        ordinal
            Its position.
        shape
            The extents that the kernel was compiled for, outermost first; None: the call decides it.
        strides
            The strides, in the same way.

        Raises
        ------
        KernelBodyError
            If there is no such parameter, or it has another size.
        """
        extents = sum(extent is None for extent in shape)
        steps = sum(stride is None for stride in strides)
        code = f"<Q{'i' * extents}{'4x' * (extents % 2)}{'q' * steps}"
        address, *numbers = struct.unpack(code, self._bytes(ordinal, struct.calcsize(code), "a view"))
        passed = iter(numbers)
        return TensorLayout(
            address,
            tuple(next(passed) if extent is None else extent for extent in shape),
            tuple(next(passed) if stride is None else stride for stride in strides),
        )

    def scalar(self, ordinal: int, dtype_: DType | str) -> int | float | bool:
        """Return a parameter as a number.

        Parameters
        ----------
        ordinal
            Its position.
        dtype_
            The type that the kernel declares.

        Raises
        ------
        KernelBodyError
            If there is no such parameter, its size is another, or no scalar of the type can travel.
        """
        row = dtype(dtype_)
        data = self._bytes(ordinal, row.itemsize, row.name)
        if not row.struct_code:
            raise KernelBodyError(self.kernel, ordinal, row.name, "that type cannot travel as a scalar")
        if row.name == "bfloat16":  # the upper half of a float32
            return float(struct.unpack("<f", b"\0\0" + data)[0])
        value: int | float | bool = struct.unpack(f"<{row.struct_code}", data)[0]
        return value

    def tensor_map(self, ordinal: int) -> TiledView:
        """Return a parameter as a tiled tensor map.

        Raises
        ------
        KernelBodyError
            If there is no such parameter, it is not 128 bytes, or the map is of the other kind.
        CorruptArtifactError
            If the bytes are no map that the simulated driver encoded.
        """
        wanted = "a tiled tensor map", "it is an im2col map: call im2col_map"
        return TiledView(self._request(ordinal, TiledRequest, wanted), self.memory)

    def im2col_map(self, ordinal: int) -> Im2colView:
        """Return a parameter as an im2col tensor map.

        Raises
        ------
        KernelBodyError
            If there is no such parameter, it is not 128 bytes, or the map is of the other kind.
        CorruptArtifactError
            If the bytes are no map that the simulated driver encoded.
        """
        wanted = "an im2col tensor map", "it is a tiled map: call tensor_map"
        return Im2colView(self._request(ordinal, Im2colRequest, wanted), self.memory)

    def _request(self, ordinal: int, kind: type[_Request], wanted: tuple[str, str]) -> _Request:
        request = decode(self._bytes(ordinal, TENSOR_MAP_BYTES, "a tensor map"))
        if not isinstance(request, kind):
            raise KernelBodyError(self.kernel, ordinal, *wanted)
        return request

    def _bytes(self, ordinal: int, nbytes: int, what: str) -> bytes:
        count = len(self.parameters)
        if not 0 <= ordinal < count:
            have = f"the kernel has {count} parameter{'' if count == 1 else 's'}, counted from 0"
            raise KernelBodyError(self.kernel, ordinal, what, have)
        data = self.parameters[ordinal]
        if len(data) != nbytes:
            have = f"it has {len(data)} bytes, not {nbytes}"
            raise KernelBodyError(self.kernel, ordinal, what, have)
        return data


KernelBody: TypeAlias = Callable[[KernelCall], None]
"""A kernel's body: called once for each launch, not for each block; runs to its end before the launch returns."""
