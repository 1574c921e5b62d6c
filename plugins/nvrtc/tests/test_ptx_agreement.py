"""What we read in PTX, against what NVRTC's own assembler makes of the same source."""

import pytest
from cuda.bindings import nvrtc

from trunnion.image import read_cubin, read_ptx

SOURCE = b"""
struct alignas(64) Map { unsigned long long opaque[16]; };
struct Mixed { char c; double d; short s; };
__shared__ int shared_by_two[7];
extern "C" __global__ void __launch_bounds__(128, 2) many(
    char c, const __grid_constant__ Map m, float* p, short s, Mixed q, bool b, double d) {
  shared_by_two[threadIdx.x] = s; p[0] = m.opaque[0] + c + s + q.d + b + d + shared_by_two[1];
}
extern "C" __global__ void none() { __shared__ double t[33]; t[threadIdx.x] = 1; shared_by_two[0] = t[1]; }
extern "C" __global__ void dynamic(float* p) {
  extern __shared__ float s[]; s[threadIdx.x] = p[0]; __syncthreads(); p[1] = s[9 - threadIdx.x];
}
template <int N> __global__ void templated(int* x) { x[0] = N; }
template __global__ void templated<3>(int*);
"""
CLUSTERED = b"""
extern "C" __global__ void __cluster_dims__(2, 1, 1) clustered(int* x) { x[0] = 1; }
extern "C" __global__ void __launch_bounds__(64, 2, 8) ranked(int* x) { x[0] = 1; }
"""


def compiled(source, arch):
    status, program = nvrtc.nvrtcCreateProgram(source, b"agreement.cu", 0, [], [])
    assert status == 0
    assert nvrtc.nvrtcCompileProgram(program, 1, [b"--gpu-architecture=" + arch.encode()]) == (0,)
    found = []
    for size_of, get in (
        (nvrtc.nvrtcGetPTXSize, nvrtc.nvrtcGetPTX),
        (nvrtc.nvrtcGetCUBINSize, nvrtc.nvrtcGetCUBIN),
    ):
        data = bytes(size_of(program)[1])
        assert get(program, data) == (0,)
        found.append(data)
    nvrtc.nvrtcDestroyProgram(program)
    return found


@pytest.mark.parametrize("arch", ["sm_80", "sm_90a", "sm_100a", "sm_120a"])
def test_ptx_and_cubin_say_the_same(arch):
    source = SOURCE if arch == "sm_80" else SOURCE + CLUSTERED
    text, cubin = compiled(source, arch)
    info = read_ptx(text)
    assert info.target == arch
    mine = {kernel.name: kernel for kernel in info.kernels}
    theirs = {kernel.name: kernel for kernel in read_cubin(cubin).kernels}
    assert mine.keys() == theirs.keys()
    fields = (
        "parameters",
        "max_threads",
        "required_threads",
        "cluster",
        "max_cluster_blocks",
        "grid_counts_clusters",
    )
    for name, kernel in theirs.items():
        for field in fields:
            assert getattr(mine[name], field) == getattr(kernel, field), (name, field)
        # where the module has an external shared variable too, the assembler rounds up to its alignment
        assert 0 <= kernel.static_smem_bytes - mine[name].static_smem_bytes < 16
