"""Kernel bodies in Python: all that a body gets is what the launch delivered."""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeAlias

from trunnion.errors import ParameterMismatchError
from trunnion.model.dtypes import DType, dtype
from trunnion.sim.abi import TENSOR_MAP_BYTES
from trunnion.sim.tensormap import decode
from trunnion.sim.tiled_view import TiledView

if TYPE_CHECKING:
    from trunnion.sim.memory import BoundMemory

__all__ = ["KernelBody", "KernelCall"]

_POINTER_BYTES: Final = 8


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

    def pointer(self, ordinal: int) -> int:
        """Return a parameter as an address.

        Raises
        ------
        ParameterMismatchError
            If there is no such parameter, or it is not 8 bytes.
        """
        return int.from_bytes(self._bytes(ordinal, _POINTER_BYTES, "a pointer"), "little")

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
        ParameterMismatchError
            If there is no such parameter, its size is another, or no scalar of the type can travel.
        """
        row = dtype(dtype_)
        data = self._bytes(ordinal, row.itemsize, row.name)
        if not row.struct_code:
            raise ParameterMismatchError(self.kernel, ordinal, f"{len(data)} bytes", f"no scalar {row.name}")
        if row.name == "bfloat16":  # the upper half of a float32
            return float(struct.unpack("<f", b"\0\0" + data)[0])
        value: int | float | bool = struct.unpack(f"<{row.struct_code}", data)[0]
        return value

    def tensor_map(self, ordinal: int) -> TiledView:
        """Return a parameter as a tensor map.

        Raises
        ------
        ParameterMismatchError
            If there is no such parameter, or it is not 128 bytes.
        CorruptArtifactError
            If the bytes are no map that the simulated driver encoded.
        """
        data = self._bytes(ordinal, TENSOR_MAP_BYTES, "a tensor map")
        return TiledView(decode(data), self.memory)

    def _bytes(self, ordinal: int, nbytes: int, what: str) -> bytes:
        if not 0 <= ordinal < len(self.parameters):
            count = f"{len(self.parameters)} parameters"
            raise ParameterMismatchError(self.kernel, ordinal, count, f"{what} as parameter {ordinal}")
        data = self.parameters[ordinal]
        if len(data) != nbytes:
            raise ParameterMismatchError(
                self.kernel, ordinal, f"{len(data)} bytes", f"{what} of {nbytes} bytes"
            )
        return data


KernelBody: TypeAlias = Callable[[KernelCall], None]
"""A kernel's body: called once for each launch, not for each block; runs to its end before the launch returns."""
