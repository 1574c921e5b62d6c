"""Facts of the device on a GPU: what launches are sized by, compared with what torch and the driver say."""

from __future__ import annotations

import ctypes

import pytest
import torch

import trunnion
from trunnion.model.facts import ATTRIBUTES

pytestmark = pytest.mark.gpu

SOURCE = """
extern "C" __global__ void __launch_bounds__(256) sums(const float* x, float* partial, long long* told, int n,
                                                       long long blocks, long long processors) {
  extern __shared__ float rows[];
  float sum = 0.0f;
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) sum += x[i];
  rows[threadIdx.x] = sum;
  __syncthreads();
  if (threadIdx.x == 0) {
    for (int i = 1; i < blockDim.x; ++i) sum += rows[i];
    partial[blockIdx.x] = sum;
    if (blockIdx.x == 0) { told[0] = gridDim.x; told[1] = blocks; told[2] = processors; }
  }
}
extern "C" __global__ void total(const float* partial, float* y, int count) {
  float sum = 0.0f;
  for (int i = 0; i < count; ++i) sum += partial[i];
  y[0] = sum;
}
"""
SMEM = 65536
RESERVED = 1024  # bytes of a block that the driver takes, since compute capability 8.0


def persistent():
    p = trunnion.ProgramBuilder("persistent", trunnion.DeviceCode("cuda", SOURCE))
    (n,) = trunnion.symbols("n")
    x = p.input("x", "float32", (n,))
    told, y = p.output("told", "int64", (3,)), p.output("y", "float32", (1,))
    processors, blocks = trunnion.device.multiprocessor_count, trunnion.occupancy("sums", 256, SMEM)
    grid = trunnion.minimum(trunnion.ceildiv(n, 256), processors * blocks)
    partial = p.workspace("partial", "float32", (processors * blocks,))
    args = (x, partial, told, n.cast("int32"), blocks, processors)
    p.launch("sums", args, grid, 256, dynamic_smem_bytes=SMEM)
    p.launch("total", (partial, y, grid.cast("int32")), 1, 1)
    return p.build()


@pytest.mark.parametrize("n", [1, 1000, 10_000_019])
def test_a_persistent_kernel(build, n):
    device = torch.cuda.get_device_properties(0)
    room = device.shared_memory_per_multiprocessor // (SMEM + RESERVED)  # which runs out before threads do
    with build(persistent()) as program:
        told, y = program(torch.ones(n, device="cuda"))
        grid, blocks, processors = told.tolist()
        assert (blocks, processors) == (room, device.multi_processor_count)
        assert grid == min(-(-n // 256), processors * blocks)
        assert y.item() == n


def test_every_attribute_is_what_the_driver_answers(build):
    source = (
        'extern "C" __global__ void store(long long* y, long long value, long long at) { y[at] = value; }'
    )
    p = trunnion.ProgramBuilder("facts", trunnion.DeviceCode("cuda", source))
    y = p.output("y", "int64", (len(ATTRIBUTES),))
    for place, name in enumerate(ATTRIBUTES):
        p.launch("store", (y, getattr(trunnion.device, name), place), 1, 1)
    driver, value = ctypes.CDLL("libcuda.so.1"), ctypes.c_int()
    with build(p.build()) as program:
        for ordinal in range(torch.cuda.device_count()):
            got = program(device=ordinal).tolist()
            for row, answered in zip(ATTRIBUTES.values(), got, strict=True):
                assert driver.cuDeviceGetAttribute(ctypes.byref(value), row.number, ordinal) == 0
                assert answered == value.value


def test_the_driver_says_what_a_kernel_takes_of_this_device(build):
    with build(persistent()) as program:
        for kernel in program.kernels.values():
            said = kernel.attributes(0)
            assert said["NUM_REGS"] == kernel.registers
            assert said["LOCAL_SIZE_BYTES"] == kernel.local_bytes
            assert said["SHARED_SIZE_BYTES"] == kernel.static_smem_bytes
            assert said["MAX_THREADS_PER_BLOCK"] == (kernel.max_threads_per_block or 1024)
            assert said["BINARY_VERSION"] == said["PTX_VERSION"] == 90


def holding(count):
    held = ", ".join(f"a{i} = from[{i}]" for i in range(count))
    back = " ".join(f"from[{i}] = a{count - 1 - i};" for i in range(count))
    source = f'extern "C" __global__ void holding(volatile float* from) {{ float {held}; __syncthreads(); {back} }}'
    p = trunnion.ProgramBuilder(f"holding_{count}", trunnion.DeviceCode("cuda", source))
    x, (threads,) = p.input("x", "float32", (count,), access="read_write"), trunnion.symbols("threads")
    p.scalar("threads", "int32", symbol=threads)
    p.launch("holding", (x,), 1, threads)
    return p.build()


@pytest.mark.parametrize("count", [64, 80, 100])  # 72, 96 and 128 registers
def test_the_largest_block_is_the_largest_that_is_launched(build, count):
    """Of a kernel whose threads hold so many values at once that there are no registers for the device's largest."""
    with build(holding(count)) as program:
        said = program.kernels["holding"].attributes(0)
        most, x = said["MAX_THREADS_PER_BLOCK"], torch.ones(count, device="cuda")
        assert said["NUM_REGS"] > count
        assert most % 32 == 0
        program(x, most)
        torch.cuda.synchronize()
        with pytest.raises((trunnion.errors.DriverError, trunnion.errors.DeviceRequirementError)):
            program(x, most + 32)
