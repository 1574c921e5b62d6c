"""Kernels that write back what they received: the parameters' bytes, and the geometry that the hardware gave them."""

from __future__ import annotations

import ctypes
import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import torch

from trunnion.model.code import DeviceCode
from trunnion.testing.probe_compiler import ProbeImages, compile_probes
from trunnion.testing.symbols import kernel_symbol, variable_symbol

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from trunnion.contract.compiler import DeviceImage
    from trunnion.contract.spec import Target
    from trunnion.model.program import KernelProgram
    from trunnion.testing.probe_compiler import Layout

__all__ = ["Probes", "Record", "probe_source", "variable_source"]

_SLOTS: Final = 64
_SLOT_BYTES: Final = 64 + (1 << 15)
_HEAD: Final = 64  # the counter, and then the slots
_FIELDS: Final = (
    "gridDim.x", "gridDim.y", "gridDim.z", "blockDim.x", "blockDim.y", "blockDim.z", "cluster.x", "cluster.y",
    "cluster.z", "smem",
)  # fmt: skip

_SOURCE: Final = """
__device__ static uint3 cluster_of() {
  uint3 cluster = {1, 1, 1};
#if __CUDA_ARCH__ >= 900
  asm volatile("mov.u32 %0, %cluster_nctaid.x;" : "=r"(cluster.x));
  asm volatile("mov.u32 %0, %cluster_nctaid.y;" : "=r"(cluster.y));
  asm volatile("mov.u32 %0, %cluster_nctaid.z;" : "=r"(cluster.z));
#endif
  return cluster;
}
__device__ static bool is_first() {
  return !(threadIdx.x | threadIdx.y | threadIdx.z | blockIdx.x | blockIdx.y | blockIdx.z);
}
__device__ static unsigned char* record(unsigned kernel) {
  unsigned at = atomicAdd_system((unsigned*)BASE, 1u);
  if (at >= SLOTS) return nullptr;
  unsigned* slot = (unsigned*)(BASE + HEAD + (unsigned long long)at * SLOT_BYTES);
  uint3 cluster = cluster_of();
  unsigned smem;
  asm volatile("mov.u32 %0, %dynamic_smem_size;" : "=r"(smem));
  unsigned fields[] = {FIELDS};
  slot[0] = kernel;
  for (unsigned i = 0; i < sizeof(fields) / 4; ++i) slot[1 + i] = fields[i];
  return (unsigned char*)(slot + 16);
}
__device__ static void copy(unsigned char* to, const unsigned char* from, unsigned nbytes) {
  for (unsigned i = 0; i < nbytes; ++i) to[i] = from[i];
}
"""


@dataclass(frozen=True, slots=True, order=True)
class Record:
    """What one launch of a probe got."""

    kernel: int
    """Its number in the image."""

    geometry: tuple[int, ...]
    """Grid, block and cluster along x, y, z, and dynamic shared memory in bytes."""

    parameters: tuple[bytes, ...]
    """The bytes of each parameter."""


class Probes:
    """Makes images of probes, and reads what they wrote: in pinned memory, which every device can write to.

    Parameters
    ----------
    target
        What they are compiled for.
    """

    def __init__(self, target: Target) -> None:
        self._target = target
        self._memory = torch.zeros(_HEAD + _SLOTS * _SLOT_BYTES, dtype=torch.uint8, pin_memory=True)
        self._images = ProbeImages(self._compiled)
        self._sizes: dict[str, tuple[int, ...]] = {}

    def sizes(self, symbol: str) -> Sequence[int] | None:
        """Return the sizes of a probe's parameters in the last image, in bytes; None if it is none."""
        return self._sizes.get(symbol)

    def image(self, program: KernelProgram) -> DeviceImage:
        """Return an image whose probes take what the oracle says that the program passes.

        Raises
        ------
        DeviceRequirementError
            If there is no compiler for them.
        """
        image = self._images.of(program)
        self._sizes = {one.symbol: tuple(each.size for each in one.parameters) for one in image.kernels}
        return image

    def _compiled(self, layouts: tuple[Layout, ...], sizes: tuple[int, ...]) -> DeviceImage:
        source = probe_source(layouts, self._memory.data_ptr()) + variable_source(sizes)
        code = DeviceCode("cuda", source)
        return compile_probes(code, layouts, self._target, kind="cubin", variables=sizes)

    def take(self) -> list[Record]:
        """Return what was written since the last time; all launches have to be over.

        Raises
        ------
        AssertionError
            If more was written than there is room for.
        """
        base = self._memory.data_ptr()
        written = ctypes.c_uint32.from_address(base)
        count, written.value = written.value, 0
        if count > _SLOTS:
            raise AssertionError(f"{count} launches of probes, at most {_SLOTS} are recorded")
        return [self._read(base + _HEAD + index * _SLOT_BYTES) for index in range(count)]

    def _read(self, slot: int) -> Record:
        kernel, *geometry = struct.unpack(
            f"<{1 + len(_FIELDS)}I", ctypes.string_at(slot, 4 + 4 * len(_FIELDS))
        )
        parameters, at = [], slot + 64
        for size in self._sizes[kernel_symbol(kernel)]:
            parameters.append(ctypes.string_at(at, size))
            at += size
        return Record(kernel, tuple(geometry), tuple(parameters))


def probe_source(layouts: Iterable[Sequence[tuple[int, int]]], address: int) -> str:
    """Return the CUDA C++ of probes, ``kernel_symbol(0)`` and so on.

    Parameters
    ----------
    layouts
        Of each, its parameters' sizes and alignments in bytes.
    address
        Where they write to.
    """
    words = {
        "BASE": f"{address}ull",
        "HEAD": _HEAD,
        "SLOTS": _SLOTS,
        "SLOT_BYTES": f"{_SLOT_BYTES}ull",
        "FIELDS": ", ".join(_FIELDS),
    }
    defines = "".join(f"#define {word} {value}\n" for word, value in words.items())
    return defines + _SOURCE + "".join(_probe(index, layout) for index, layout in enumerate(layouts))


def variable_source(sizes: Iterable[int]) -> str:
    """Return the CUDA C++ of variables ``variable_0``, ``variable_1`` and so on, constant ones and others in turns.

    Parameters
    ----------
    sizes
        The bytes of each.
    """
    spaces = "__constant__", "__device__"
    return "".join(
        f'extern "C" {{ {spaces[index % 2]} unsigned char {variable_symbol(index)}[{nbytes}]; }}\n'
        for index, nbytes in enumerate(sizes)
    )


def _probe(index: int, layout: Sequence[tuple[int, int]]) -> str:
    """Return the source of one probe, whose parameters are structures of bytes."""
    lines, given, at = [], [], 0
    body = []
    for ordinal, (size, alignment) in enumerate(layout):
        kind = f"P{index}_{ordinal}"
        lines.append(f"struct alignas({alignment}) {kind} {{ unsigned char bytes[{size}]; }};\n")
        lines.append(f'static_assert(sizeof({kind}) == {size}, "a size that C has not");\n')
        given.append(f"const __grid_constant__ {kind} p{ordinal}")
        body.append(f"copy(to + {at}, p{ordinal}.bytes, {size});")
        at += size
    lines.append(
        f'extern "C" __global__ void {kernel_symbol(index)}({", ".join(given)}) {{ if (!is_first()) return; '
        f"unsigned char* to = record({index}); if (!to) return; {' '.join(body)} __threadfence_system(); }}\n"
    )
    return "".join(lines)
