"""What can be said of the kernels of a built program: by its image alone, and, of one device, by the driver."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from trunnion.arguments import expect_ordinal
from trunnion.artifacts.artifact import IMAGE_PREFIX
from trunnion.errors import CorruptArtifactError, DeviceRequirementError, UnknownKernelError, shorten
from trunnion.image.cubin import CubinInfo, read_cubin, symbol_index
from trunnion.image.ptx import PtxInfo, read_ptx
from trunnion.kernel_attributes import kernel_attributes
from trunnion.messages import listed
from trunnion.plain import text

if TYPE_CHECKING:
    from collections.abc import Iterator

    from trunnion.artifacts.artifact import Artifact
    from trunnion.contract.compiler import ImageKernel, ImageParameter

__all__ = ["CompiledKernel", "CompiledKernels", "compiled_kernels"]

_READABLE: Final = ("cubin", "ptx")


@dataclass(frozen=True, slots=True, kw_only=True)
class CompiledKernel:
    """One kernel of a built program, as its image describes it; what the image does not say is None."""

    name: str
    """What the program calls it."""

    symbol: str
    """Its exact name in the image."""

    image_kind: str
    """What the image is: ``"cubin"``, ``"ptx"``, ``"host-object"``, …; empty if the artifact holds none."""

    arch: str | None = None
    """The architecture that the image is for, such as ``"sm_90a"``; of PTX, the least one."""

    parameters: tuple[ImageParameter, ...] = ()
    """The parameters by ordinal; offsets and sizes in bytes."""

    registers: int | None = None
    """Registers of one thread. None for PTX: whoever assembles it chooses."""

    local_bytes: int | None = None
    """Local memory of one thread, in bytes (`KernelInfo.local_bytes`): arrays that are not in registers, and registers
    that are spilled. 0: nothing is spilled. None for PTX."""

    static_smem_bytes: int | None = None
    """Static shared memory of one block, in bytes."""

    constant_bytes: int | None = None
    """What the source declares ``__constant__``, in bytes: all kernels of an image share it. None for PTX."""

    max_threads: tuple[int, int, int] | None = None
    """The largest block (x, y, z), in threads, that it was compiled for; None: it was compiled for any."""

    required_threads: tuple[int, int, int] | None = None
    """The only block (x, y, z) allowed, in threads; None: there is no such bound."""

    cluster: tuple[int, int, int] | None = None
    """The only cluster (x, y, z) allowed, in blocks; None: there is no such bound."""

    max_cluster_blocks: int | None = None
    """The most blocks that a cluster may have; None: there is no such bound."""

    needs_cluster: bool | None = None
    """Whether a launch has to give a cluster: it was compiled for clusters, and for none of a certain size."""

    grid_counts_clusters: bool | None = None
    """Whether a launch's grid counts clusters instead of blocks, as ``__block_size__`` can have it."""

    image: bytes = field(repr=False)
    """The whole image."""

    @property
    def max_threads_per_block(self) -> int | None:
        """The most threads of a block that it was compiled for; None: as many as the device allows."""
        bound = self.required_threads or self.max_threads
        return None if bound is None else math.prod(bound)

    @property
    def parameter_bytes(self) -> int:
        """The bytes from the first parameter's start to the last one's end."""
        return max((one.offset + one.size for one in self.parameters), default=0)

    @property
    def ptx(self) -> str | None:
        """The image's text, in which all of its kernels stand; None if the image is no PTX."""
        return self.image.decode().rstrip("\0") if self.image_kind == "ptx" else None

    def sass(self) -> str | None:
        """Return the kernel's machine code as text, as ``nvdisasm`` writes it; None if the image is no cubin.

        Raises
        ------
        BackendUnavailableError
            If no ``nvdisasm`` is found, which says what to install, or the one that is found cannot read the image.
        DeviceRequirementError
            If this machine has no folder for temporary files.
        """
        if self.image_kind != "cubin":
            return None
        from trunnion.toolchain.disassembler import disassembled  # noqa: PLC0415 - few who load a program ask for it

        index = symbol_index(self.image, self.symbol)
        if index is None:
            raise _missing(self)
        return disassembled(self.image, index)

    def attributes(self, device: Any) -> Mapping[str, int]:
        """Return what the driver says of the kernel on a device: also of PTX, which it assembles for that.

        The image is loaded beside the program's own, and unloaded again. With ``LOCAL_SIZE_BYTES`` and ``NUM_REGS`` of
        what really runs, `registers` and `local_bytes` need not be guessed for PTX.

        Parameters
        ----------
        device
            An ordinal, or a device such as ``"cuda:1"``, or ``"cuda"`` for the thread's current one.

        Returns
        -------
        Mapping[str, int]
            ``cuKernelGetAttribute``'s answers by name, ``CU_FUNC_ATTRIBUTE_`` left out: ``MAX_THREADS_PER_BLOCK``;
            ``SHARED_SIZE_BYTES``, static, of a block; ``CONST_SIZE_BYTES``; ``LOCAL_SIZE_BYTES`` and ``NUM_REGS``, of a
            thread; ``PTX_VERSION`` and ``BINARY_VERSION``, ten times the major version plus the minor one.

        Raises
        ------
        DeviceRequirementError
            If the image is none that the CUDA driver loads, or there is no driver.
        ArgumentError
            If ``device`` is no device, or there is no such one.
        DriverError
            If the driver refuses, such as an image for another architecture.
        """
        if self.image_kind not in _READABLE:
            raise DeviceRequirementError("a cubin or PTX", f"an image of kind {shorten(self.image_kind)}")
        return kernel_attributes(self.image, self.symbol, expect_ordinal(device))


class CompiledKernels(Mapping[str, CompiledKernel]):
    """The kernels of a program by the names that it calls them; read-only.

    Where several are called alike, as one template that a compiler made several kernels of, each goes by its symbol.

    Parameters
    ----------
    kernels
        The kernels, in the program's order.
    """

    def __init__(self, kernels: tuple[CompiledKernel, ...]) -> None:
        alike = Counter(kernel.name for kernel in kernels)
        self._known = MappingProxyType(
            {kernel.name if alike[kernel.name] == 1 else kernel.symbol: kernel for kernel in kernels}
        )

    def __getitem__(self, name: str) -> CompiledKernel:
        wanted = text(name)
        if wanted is None or wanted not in self._known:
            raise UnknownKernelError(name, tuple(self._known))
        return self._known[wanted]

    def __iter__(self) -> Iterator[str]:
        return iter(self._known)

    def __len__(self) -> int:
        return len(self._known)

    def __repr__(self) -> str:
        return f"<CompiledKernels {listed(self._known)}>"


def compiled_kernels(artifact: Artifact) -> CompiledKernels:
    """Return what an artifact's image says of the program's kernels.

    Parameters
    ----------
    artifact
        What was built.

    Raises
    ------
    CorruptArtifactError
        If the image cannot be read, or lacks a kernel.
    """
    images = artifact.images
    kind = next((kind for kind in (*_READABLE, *images) if kind in images), "")
    data = images.get(kind, b"")
    kernels = artifact.manifest.kernels
    if kind not in _READABLE:
        return CompiledKernels(tuple(_undescribed(one, kind, data) for one in kernels))
    info = read_cubin(data) if kind == "cubin" else read_ptx(data)
    return CompiledKernels(tuple(_described(_undescribed(one, kind, data), info) for one in kernels))


def _undescribed(kernel: ImageKernel, kind: str, image: bytes) -> CompiledKernel:
    """Return what the manifest alone says of a kernel."""
    return CompiledKernel(
        name=kernel.name,
        symbol=kernel.symbol,
        image_kind=kind,
        parameters=kernel.parameters,
        image=image,
    )


def _described(kernel: CompiledKernel, info: CubinInfo | PtxInfo) -> CompiledKernel:
    """Add what the image says of a kernel.

    Raises
    ------
    CorruptArtifactError
        If it has no such kernel.
    """
    found = info.kernel(kernel.symbol)
    if found is None:
        raise _missing(kernel)
    return replace(
        kernel,
        arch=info.arch if isinstance(info, CubinInfo) else info.target,
        registers=found.registers,
        local_bytes=found.local_bytes,
        static_smem_bytes=found.static_smem_bytes,
        constant_bytes=info.constant_bytes if isinstance(info, CubinInfo) else None,
        max_threads=found.max_threads,
        required_threads=found.required_threads,
        cluster=found.cluster,
        max_cluster_blocks=found.max_cluster_blocks,
        needs_cluster=found.needs_cluster,
        grid_counts_clusters=found.grid_counts_clusters,
    )


def _missing(kernel: CompiledKernel) -> CorruptArtifactError:
    return CorruptArtifactError(
        f"{IMAGE_PREFIX}{kernel.image_kind}", f"has no kernel {shorten(kernel.symbol)}"
    )
