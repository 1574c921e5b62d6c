"""Kernel bodies in Python: all that a body gets is what the launch delivered."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias, TypeVar

from trunnion.errors import KernelBodyError, UnknownVariableError
from trunnion.sim.abi import TENSOR_MAP_BYTES
from trunnion.sim.im2col_view import Im2colView
from trunnion.sim.launch_attributes import LaunchAttributes
from trunnion.sim.parameters import Delivered
from trunnion.sim.tensormap import Im2colRequest, TiledRequest, decode
from trunnion.sim.tiled_view import TiledView

if TYPE_CHECKING:
    import torch

    from trunnion.model.dtypes import DType
    from trunnion.sim.launch_attributes import WindowAttribute
    from trunnion.sim.memory import BoundMemory
    from trunnion.sim.objects import DeviceVariable

__all__ = ["KernelBody", "KernelBodyWarning", "KernelCall"]


class KernelBodyWarning(UserWarning):
    """A kernel without a body was launched, while there is one for a name that no kernel has: it may be misspelled."""


_Request = TypeVar("_Request", TiledRequest, Im2colRequest)


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelCall(Delivered):
    """One launch, as its kernel sees it."""

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

    memory: BoundMemory
    """The memory of the device."""

    attributes: LaunchAttributes = field(default_factory=LaunchAttributes)
    """The launch attributes."""

    window: WindowAttribute | None = None
    """The access-policy window in force: the launch's, or else the stream's."""

    priority: int = 0
    """The priority in force: the launch's, or else the stream's."""

    find_variable: Callable[[str], DeviceVariable] | None = field(default=None, repr=False, compare=False)
    """Finds a module variable of the kernel's image."""

    def variable(self, name: str, dtype: DType | str, shape: tuple[int, ...] = ()) -> torch.Tensor:
        """Return a module variable of the kernel's image as a host tensor; writes go through.

        Parameters
        ----------
        name
            The exact symbol name: ``"filter"``, or mangled, as `CompiledProgram.artifact`'s manifest has it.
        dtype
            The element type.
        shape
            Elements along each dimension.

        Raises
        ------
        UnknownVariableError
            If the image has none of that name.
        DriverError
            ``CUDA_ERROR_ILLEGAL_ADDRESS``, if it has fewer bytes.
        """
        if self.find_variable is None:
            raise UnknownVariableError(name, ())
        return self.memory.view(self.find_variable(name).address, dtype, shape)

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


KernelBody: TypeAlias = Callable[[KernelCall], None]
"""A kernel's body: called once for each launch, not for each block; runs to its end before the launch returns."""
