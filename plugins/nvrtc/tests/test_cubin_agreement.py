"""The image reader and the synthetic writer agree with the cubins that NVRTC makes.

The expectations are the kernels' C++ declarations, whose sizes and alignments the language fixes; nothing is
taken from the reader's own answer. No GPU is needed.
"""

from __future__ import annotations

import re
from functools import cache

import pytest
from cuda.bindings import nvrtc
from hypothesis import given, settings
from hypothesis import strategies as st

from trunnion.errors import CorruptArtifactError
from trunnion.image import (
    CubinInfo,
    KernelInfo,
    SyntheticKernel,
    pack_parameters,
    place_parameters,
    read_cubin,
    synthetic_cubin,
)
from trunnion.image.elf import Elf, Section, read_elf
from trunnion.image.nvinfo import Attribute, Key, read_attributes

ARCHS = ("sm_80", "sm_90a", "sm_100a", "sm_120")
LONG = "a" * 3000

SOURCE = r"""
struct alignas(64) Map { char bytes[128]; };
struct Mixed { int a; short b; char c[5]; };
struct Empty {};
struct Narrow { char bytes[4348]; };
struct Wide { char bytes[4352]; };
struct Big { char bytes[5000]; };
template <int N, class T> __global__ void scaled(T* p, T v) { p[threadIdx.x] = v * N; }
template __global__ void scaled<128, float>(float*, float);
template __global__ void scaled<7, double>(double*, double);
__device__ __noinline__ float helper(float x) { return x * x + 1; }
namespace LONG_NAME { __global__ void f(char c) {} }
extern "C" {
__global__ void none() {}
__global__ void vadd(const float* a, const float* b, float* c, int n) {
  if (threadIdx.x < n) c[threadIdx.x] = *a + *b;
}
__global__ void unused(char c, double d, Mixed m, Empty e, int z) {}
__global__ void calls(float* p) { p[0] = helper(p[1]); }
__global__ void maps(const __grid_constant__ Map m, int x, const __grid_constant__ Map n, float* o) {
  o[threadIdx.x] = m.bytes[threadIdx.x] + n.bytes[x];
}
__global__ void narrow(int x, Narrow n) {}
__global__ void wide(int x, Wide w) {}
__global__ void bigs(int x, const __grid_constant__ Big b, char q, Big c, const __grid_constant__ Map m,
                     float* o) {
  o[threadIdx.x] = b.bytes[x] + q + c.bytes[x] + m.bytes[x];
}
__global__ void __launch_bounds__(128, 2) bounded(long long e, short d) {}
#if __CUDA_ARCH__ >= 900
__global__ void __cluster_dims__(2, 1, 1) clustered(float* p) { p[0] = 1; }
__global__ void __launch_bounds__(256, 1, 4) ranked(float* p) { p[0] = 1; }
__global__ void __block_size__((64, 2, 1), (2, 2, 1)) blocked(float* p) { p[0] = 1; }
#endif
}
""".replace("LONG_NAME", LONG)

POINTER, MAP, BIG = (8, 8), (128, 64), (5000, 1)
LAYOUTS: dict[str, list[tuple[int, int]]] = {
    "none": [],
    "vadd": [POINTER, POINTER, POINTER, (4, 4)],
    "unused": [(1, 1), (8, 8), (12, 4), (1, 1), (4, 4)],
    "calls": [POINTER],
    "maps": [MAP, (4, 4), MAP, POINTER],
    "narrow": [(4, 4), (4348, 1)],
    "wide": [(4, 4), (4352, 1)],
    "bigs": [(4, 4), BIG, (1, 1), BIG, MAP, POINTER],
    "bounded": [(8, 8), (2, 2)],
    "_Z6scaledILi128EfEvPT0_S0_": [POINTER, (4, 4)],
    "_Z6scaledILi7EdEvPT0_S0_": [POINTER, (8, 8)],
    f"_ZN3000{LONG}1fEc": [(1, 1)],
}
HOPPER_LAYOUTS = {"clustered": [POINTER], "ranked": [POINTER], "blocked": [POINTER]}


# Around 4352 bytes, counted from zero and counted in place.
EDGES: dict[str, list[tuple[int, int]]] = {
    "fewer_in_place": [(1, 1), (128, 128), (4096, 1)],
    "wide_for_its_gap": [(1, 1), (128, 128), (4097, 1)],
    "more_in_place": [(128, 128), (4224, 1)],
    "one_too_many": [(128, 128), (4225, 1)],
    "beyond_every_base": [(1, 1), (256, 256), (3840, 1)],
    "wide_beyond_every_base": [(1, 1), (256, 256), (3841, 1)],
}


def edge_source() -> str:
    text = ""
    for name, layouts in EDGES.items():
        kinds = [f"{name}_{ordinal}" for ordinal in range(len(layouts))]
        for kind, (size, alignment) in zip(kinds, layouts, strict=True):
            text += f"struct alignas({alignment}) {kind} {{ char bytes[{size}]; }};\n"
        text += f'extern "C" __global__ void {name}({", ".join(kinds)}) {{}}\n'
    return text


def compiled(arch: str, source: str = SOURCE) -> bytes:
    """Return the cubin of `compiled_and_said`."""
    return compiled_and_said(arch, source)[0]


@cache
def compiled_and_said(arch: str, source: str, *more: str) -> tuple[bytes, str]:
    """Compile the source with NVRTC itself, not with the plugin that this file lies beside; return the log too."""
    status, program = nvrtc.nvrtcCreateProgram(source.encode(), b"agreement.cu", 0, [], [])
    assert status == nvrtc.nvrtcResult.NVRTC_SUCCESS
    options = [f"--gpu-architecture={arch}".encode(), *(word.encode() for word in more)]
    (status,) = nvrtc.nvrtcCompileProgram(program, len(options), options)
    _, size = nvrtc.nvrtcGetProgramLogSize(program)
    log = bytes(max(size, 2))  # its own: b" " is one object, which all of Python shares
    nvrtc.nvrtcGetProgramLog(program, log)
    assert status == nvrtc.nvrtcResult.NVRTC_SUCCESS, log.decode()
    _, size = nvrtc.nvrtcGetCUBINSize(program)
    image = bytes(max(size, 2))
    nvrtc.nvrtcGetCUBIN(program, image)
    nvrtc.nvrtcDestroyProgram(program)
    return image, log.decode()


def kernel(info: CubinInfo, name: str) -> KernelInfo:
    found = info.kernel(name)
    assert found is not None, name
    return found


def rewritten(info: CubinInfo) -> bytes:
    """Describe a real image's kernels with the synthetic writer."""
    fields = (
        "name",
        "parameters",
        "max_threads",
        "required_threads",
        "cluster",
        "max_cluster_blocks",
        "grid_counts_clusters",
        "registers",
        "local_bytes",
    )
    kernels = [
        SyntheticKernel(**{field: getattr(kernel, field) for field in fields}) for kernel in info.kernels
    ]
    return synthetic_cubin(kernels, info.arch)


def comparable(attributes: tuple[Attribute, ...]) -> list[Attribute]:
    """Keep what both files say: no other keys, symbol numbers, or address spaces (from sm_100)."""
    kept = []
    for attribute in attributes:
        if attribute.key not in set(Key):
            continue
        payload = bytearray(attribute.payload)
        if attribute.key == Key.KPARAM_INFO:
            payload[9] &= 0xF0
        if attribute.key == Key.KPARAM_INFO_WIDE:
            payload[11] &= 0xF0
        if attribute.key in {Key.PARAM_CBANK, Key.REGCOUNT}:
            payload[:4] = bytes(4)
        kept.append(Attribute(attribute.form, attribute.key, attribute.value, bytes(payload)))
    return sorted(kept, key=lambda attribute: (attribute.key, attribute.payload))


def section(elf: Elf, name: str) -> Section:
    (found,) = (section for section in elf.sections if section.name == name)
    return found


@pytest.mark.parametrize("arch", ARCHS)
def test_the_reader_finds_what_the_source_declares(arch: str) -> None:
    info = read_cubin(compiled(arch))
    layouts = LAYOUTS if arch == "sm_80" else LAYOUTS | HOPPER_LAYOUTS
    assert info.arch == arch
    assert not info.relocatable
    assert {kernel.name for kernel in info.kernels} == set(layouts)
    for name, layout in layouts.items():
        assert kernel(info, name).parameters == pack_parameters(layout, arch), name
        assert kernel(info, name).registers in range(1, 256)
    maps = kernel(info, "maps")
    assert maps.parameter_base is not None
    assert [(maps.parameter_base + maps.parameters[ordinal].offset) % 64 for ordinal in (0, 2)] == [0, 0]


@pytest.mark.parametrize("arch", ARCHS)
def test_the_reader_finds_the_launch_bounds(arch: str) -> None:
    info = read_cubin(compiled(arch))
    assert kernel(info, "bounded").max_threads == (128, 1, 1)
    assert kernel(info, "vadd").max_threads is None
    if arch != "sm_80":
        assert kernel(info, "clustered").cluster == (2, 1, 1)
        assert [one.name for one in info.kernels if one.grid_counts_clusters] == ["blocked"]
        assert kernel(info, "ranked").max_threads == (256, 1, 1)
        assert kernel(info, "ranked").max_cluster_blocks == 4
        assert kernel(info, "blocked").required_threads == (64, 2, 1)
        assert kernel(info, "blocked").cluster == (2, 2, 1)


MEMORY = r"""
__constant__ float table[64];
__constant__ char more[3];
extern "C" __global__ void plain(float* x) { x[threadIdx.x] += table[threadIdx.x] + more[threadIdx.x]; }
extern "C" __global__ void array(float* x, int n) {
  float kept[100];
  for (int i = 0; i < 100; ++i) kept[i] = x[i * n];
  for (int i = 0; i < n; ++i) x[i] += kept[i * 7 % 100];
}
__device__ __noinline__ float callee(float* x, int n) {
  float kept[20];
  for (int i = 0; i < 20; ++i) kept[i] = x[i * n];
  x[n] = kept[int(x[1]) % 20];
  return kept[n % 20];
}
extern "C" __global__ void nested(float* x, int n) {
  float kept[30];
  for (int i = 0; i < 30; ++i) kept[i] = x[i * n];
  x[0] = callee(x, n) + kept[int(x[2]) % 30];
}
extern "C" __global__ void __launch_bounds__(1024, 2) spills(float* x, int n) {
  float kept[48];
#pragma unroll
  for (int i = 0; i < 48; ++i) kept[i] = x[i * n + threadIdx.x];
  __syncthreads();
#pragma unroll
  for (int i = 0; i < 48; ++i) x[i * n + threadIdx.x] = kept[i] * kept[(i + 7) % 48] + kept[(i + 20) % 48];
}
"""


@pytest.mark.parametrize("arch", ARCHS)
def test_local_memory_is_what_the_assembler_prints(arch: str) -> None:
    image, log = compiled_and_said(arch, MEMORY, "--ptxas-options=-v")
    info = read_cubin(image)
    printed = dict.fromkeys(("plain", "array", "nested", "spills"), 0)
    name = ""
    for line in log.splitlines():
        entry = re.search(r"entry function '(\w+)'", line)
        name = entry[1] if entry else name
        size = re.search(r"(\d+) bytes cumulative stack size", line)
        if size:
            printed[name] = int(size[1])
    assert {one.name: one.local_bytes for one in info.kernels} == printed
    assert printed["plain"] == 0
    assert printed["array"] == 400
    assert printed["nested"] >= 200
    assert printed["spills"] > 0
    assert info.constant_bytes == 4 * 64 + 3


@pytest.mark.parametrize("arch", ARCHS)
def test_the_writer_says_what_the_compiler_says(arch: str) -> None:
    info = read_cubin(compiled(arch))
    copy = rewritten(info)
    assert read_cubin(copy) == info
    real, ours = read_elf(compiled(arch)), read_elf(copy)
    assert (ours.kind, ours.abi_version, ours.flags) == (real.kind, real.abi_version, real.flags)
    assert compiled(arch)[:16] == copy[:16]
    for mine in ours.sections:
        theirs = section(real, mine.name)
        assert (mine.kind, mine.flags) == (theirs.kind, theirs.flags), mine.name
        if mine.name.startswith(".nv.info."):
            records = [
                read_attributes(elf.contents(its), its.name) for elf, its in ((ours, mine), (real, theirs))
            ]
            assert comparable(records[0]) == comparable(records[1]), mine.name


@pytest.mark.parametrize("arch", ["sm_75", *ARCHS])
def test_the_place_and_the_records_at_the_edge_are_the_compilers(arch: str) -> None:
    data = compiled(arch, edge_source())
    places = {name: place_parameters(layouts, arch) for name, layouts in EDGES.items()}
    kernels = [
        SyntheticKernel(name=name, parameters=place.parameters, parameter_base=place.base, wide=place.wide)
        for name, place in places.items()
    ]
    for name, place in places.items():
        records = []
        for image in (data, synthetic_cubin(kernels, arch)):
            found = kernel(read_cubin(image), name)
            assert (found.parameter_base, found.parameters) == (place.base, place.parameters), name
            elf = read_elf(image)
            its = section(elf, f".nv.info.{name}")
            records.append(comparable(read_attributes(elf.contents(its), its.name)))
        assert records[0] == records[1], name


@pytest.mark.parametrize("arch", ARCHS)
def test_the_writers_kernel_symbols_are_like_the_compilers(arch: str) -> None:
    """Compare everything that the reader looks at in a symbol, but for weak binding of template instances."""
    described = []
    for data in (compiled(arch), rewritten(read_cubin(compiled(arch)))):
        elf = read_elf(data)
        symbols = [symbol for symbol in elf.symbols() if symbol.other == 0x10]
        names = elf.symbol_names(symbols)
        described.append(
            {
                name: (symbol.kind, elf.sections[symbol.section].name)
                for name, symbol in zip(names, symbols, strict=True)
            }
        )
    assert described[0] == described[1]


@settings(max_examples=200)
@given(data=st.data())
def test_a_changed_real_cubin_is_read_or_refused(data: st.DataObject) -> None:
    image = bytearray(compiled("sm_90a"))
    # Code and constants fill most of the file and are not read: aim at headers, names and records as well.
    spans = [(0, 64), (int.from_bytes(image[40:48], "little"), len(image))]
    spans += [
        (section.offset, section.offset + section.size)
        for section in read_elf(bytes(image)).sections
        if section.name.startswith((".nv.info", ".symtab", ".strtab", ".shstrtab", ".note")) and section.size
    ]
    for _ in range(data.draw(st.integers(1, 4))):
        start, stop = data.draw(st.sampled_from(spans))
        image[data.draw(st.integers(start, stop - 1))] = data.draw(st.integers(0, 255))
    try:
        read_cubin(bytes(image))
    except CorruptArtifactError:
        return  # either outcome is right; any other exception fails the test


@settings(max_examples=100)
@given(data=st.data())
def test_a_truncated_real_cubin_is_refused(data: st.DataObject) -> None:
    image = compiled("sm_90a")
    sections_end = int.from_bytes(image[40:48], "little") + 64 * int.from_bytes(image[60:62], "little")
    with pytest.raises(CorruptArtifactError):
        read_cubin(image[: data.draw(st.integers(0, sections_end - 1))])
