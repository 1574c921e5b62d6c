"""Fatbins and LTO-IR as device code: what is taken of them, and what is refused."""

from __future__ import annotations

import os

import pytest
import torch
from cuda.bindings import nvfatbin
from cuda.pathfinder import load_nvidia_dynamic_lib

import trunnion
from trunnion.contract.compiler import CompileRequest, DeviceImage
from trunnion.contract.spec import Target
from trunnion.errors import (
    BackendUnavailableError,
    CompileError,
    CorruptArtifactError,
    ProgramError,
    UnknownVariableError,
)
from trunnion.image.cubin import read_cubin
from trunnion.image.ptx import read_ptx
from trunnion.model.plan import KernelSignature
from trunnion.sim.trace import Launched
from trunnion_nvrtc.compiler.compiler import NvrtcCompiler
from trunnion_nvrtc.compiler.fatbin import CUOBJDUMP
from trunnion_nvrtc.compiler.program import Program

SOURCE = """
template <int N> __global__ void add(float* x, int n) { if (threadIdx.x < n) x[threadIdx.x] += N; }
template __global__ void add<3>(float*, int);
extern "C" __global__ void plain(float* x, int n) { x[0] = n; }
"""
ADD = "_Z3addILi3EEvPfi"
MODES = {"cubin": (), "ptx": (), "ltoir": ("--dlink-time-opt",)}


def made(kind: str, arch: str = "sm_90a", source: str = SOURCE, *options: str) -> bytes:
    with Program(source) as program:
        program.compile([f"-arch={arch}", *MODES[kind], *options])
        return program.get_output(kind).data


def fatbin(*images: tuple[str, bytes, str], options: tuple[str, ...] = (), name: str = "one") -> bytes:
    load_nvidia_dynamic_lib("nvfatbin")
    handle = nvfatbin.create(list(options), len(options))
    for kind, data, arch in images:
        more = ("",) if kind != "cubin" else ()
        getattr(nvfatbin, f"add_{kind}")(handle, data, len(data), arch, name, *more)
    written = bytearray(nvfatbin.size(handle))
    nvfatbin.get(handle, written)
    nvfatbin.destroy(handle)
    return bytes(written)


def compiled(
    *code: trunnion.DeviceCode, target: str = "sm_90a", kernel: str = "plain", **options: object
) -> DeviceImage:
    wanted = (KernelSignature(kernel, ()),)
    return NvrtcCompiler().compile(
        CompileRequest(code=code, kernels=wanted, target=Target.parse(target), options=options)
    )


def fat(*images: tuple[str, bytes, str], **how: object) -> trunnion.DeviceCode:
    return trunnion.DeviceCode("fatbin", fatbin(*images, **how))  # type: ignore[arg-type]  # by name


@pytest.mark.parametrize("mode", [None, "none", "size", "speed"])
def test_the_cubin_for_the_architecture_is_taken_as_it_is(mode: str | None) -> None:
    """Compressed or not: what nvcc writes today is."""
    images = [("cubin", made("cubin", arch), arch[3:]) for arch in ("sm_80", "sm_90a", "sm_100a")]
    options = () if mode is None else (f"-compress-mode={mode}",)
    code = fat(("ptx", made("ptx", "compute_80"), "80"), *images, options=options)
    assert compiled(code).data == images[1][1]
    assert compiled(code, target="sm_100a").data == images[2][1]
    assert compiled(code, target="sm_86").data == images[0][1]  # the newest that runs there


def test_where_no_cubin_runs_the_newest_ptx_is_assembled() -> None:
    older, newer = made("ptx", "compute_80"), made("ptx", "compute_90")
    code = fat(("ptx", older, "80"), ("ptx", newer, "90"), ("cubin", made("cubin", "sm_80"), "80"))
    image = compiled(code, target="sm_100a")
    assert image.kind == "cubin"
    assert read_cubin(image.data).arch == "sm_100"  # portable PTX makes no other
    assert read_ptx(compiled(code, target="compute_100").data).target == "sm_90"
    assert read_ptx(compiled(code, target="compute_86").data).target == "sm_80"


def test_a_fatbin_is_linked_with_other_parts() -> None:
    uses = """extern "C" __device__ int half_of(int);
extern "C" __global__ void plain(float* x, int n) { x[half_of(n)] = 1; }"""
    half = made("cubin", "sm_90a", 'extern "C" __device__ int half_of(int n) { return n / 2; }', "-rdc=true")
    image = compiled(trunnion.DeviceCode("cuda", uses, options=("-dc",)), fat(("cubin", half, "90a")))
    assert [kernel.name for kernel in read_cubin(image.data).kernels] == ["plain"]


def test_a_fatbin_that_holds_nothing_for_the_target_says_what_it_holds() -> None:
    code = fat(("cubin", made("cubin", "sm_100a"), "100a"), ("ptx", made("ptx", "compute_100"), "100"))
    with pytest.raises(
        ProgramError,
        match=r"nothing for 'sm_90a', only cubin for sm_100a, ptx for sm_100: .* PTX for sm_90a or older",
    ) as caught:
        compiled(code)
    assert caught.value.field == "code"
    alone = fat(("ltoir", made("ltoir"), "90a"))
    with pytest.raises(ProgramError, match="LTO-IR is given as code of its own"):
        compiled(alone)
    with pytest.raises(
        ProgramError, match=r"nothing for 'compute_90a': no PTX for compute_90a or older; LTO-IR"
    ):
        compiled(fat(("cubin", made("cubin"), "90a")), target="compute_90a")


def test_several_images_of_which_none_is_better_are_refused() -> None:
    first, second = made("cubin"), made("cubin", "sm_90a", 'extern "C" __global__ void other() {}')
    with pytest.raises(ProgramError, match="two cubin images of one name"):
        compiled(fat(("cubin", first, "90a"), ("cubin", second, "90a")))
    both = ("ptx", made("ptx", "compute_90"), "90"), ("ptx", made("ptx", "compute_90"), "89")
    with pytest.raises(ProgramError, match="2 ptx images for 'sm_90', expected one: link them first"):
        compiled(fat(*both))


@pytest.mark.parametrize("data", [b"", b"\x7fELF", b"MZ"])
def test_bytes_that_are_none_are_refused_before_any_tool_sees_them(data: bytes) -> None:
    for language in ("fatbin", "ltoir"):
        with pytest.raises(ProgramError, match="which begins with"):
            compiled(trunnion.DeviceCode(language, data))


@pytest.mark.parametrize("mode", ["none", "speed"])
def test_a_truncated_fatbin_never_reaches_the_tool(mode: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is a bad input, not a tool that is missing or too old."""
    whole = fatbin(("cubin", made("cubin"), "90a"), options=(f"-compress-mode={mode}",))
    monkeypatch.setattr(type(CUOBJDUMP), "path", lambda _: pytest.fail("was asked"))
    for cut in (4, 5, 15, 16, 64, len(whole) // 2, len(whole) - 1):
        with pytest.raises(CorruptArtifactError, match=f"{cut} bytes") as caught:
            compiled(trunnion.DeviceCode("fatbin", whole[:cut]))
        assert caught.value.what == "fatbin"
        assert "truncated" in caught.value.problem


@pytest.mark.parametrize(
    ("place", "data", "said"),
    [
        (6, b"\0\0", "its header is damaged: it says that it has 0 bytes, of 16 or more"),
        (6, b"\x0f\0", "its header is damaged: it says that it has 15 bytes, of 16 or more"),
        (8, bytes(8), "its header is damaged: it says that nothing is behind it"),
        (6, b"\xff\xff", "or its header is damaged, which says that it has 65535 bytes, and"),
        (8, b"\xff" * 8, "which says that it has 16 bytes, and 18446744073709551615 behind it"),
    ],
)
def test_of_a_damaged_header_it_is_said_what_is_wrong_with_it(
    place: int, data: bytes, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = fatbin(("cubin", made("cubin"), "90a"))
    monkeypatch.setattr(type(CUOBJDUMP), "path", lambda _: pytest.fail("was asked"))
    with pytest.raises(CorruptArtifactError) as caught:
        compiled(trunnion.DeviceCode("fatbin", whole[:place] + data + whole[place + len(data) :]))
    assert caught.value.what == "fatbin"
    assert said in caught.value.problem


@pytest.mark.parametrize(("place", "data"), [(8, b"\1" + bytes(7)), (20, b"\xff" * 4), (24, b"\xff" * 8)])
def test_of_a_header_that_the_tool_refuses_it_is_said_that_the_fatbin_is_damaged(
    place: int, data: bytes
) -> None:
    """And not that the tool is to be installed again; where its file lay for a moment, nobody can look."""
    whole = fatbin(("cubin", made("cubin"), "90a"))
    with pytest.raises(CorruptArtifactError) as caught:
        compiled(trunnion.DeviceCode("fatbin", whole[:place] + data + whole[place + len(data) :]))
    assert caught.value.what == "fatbin"
    assert caught.value.problem.startswith("the header of an image in it is damaged, says cuobjdump")
    assert "scratch" not in str(caught.value)


def test_a_damaged_fatbin_is_refused_by_the_tool_and_ends_nothing() -> None:
    whole = fatbin(("cubin", made("cubin"), "90a"))
    for place in (4, 16, 20, 44):
        damaged = whole[:place] + b"\xff" * 4 + whole[place + 4 :]
        with pytest.raises((BackendUnavailableError, CorruptArtifactError, ProgramError)):
            compiled(trunnion.DeviceCode("fatbin", damaged))


def test_names_in_a_fatbin_lead_nowhere(tmp_path, monkeypatch) -> None:
    """The tool makes a file of each; none is made but in a folder that goes again."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    data = made("cubin")
    for name in ("../../escaped", str(tmp_path / "absolute"), "a b\n/c", "-x"):
        assert compiled(fat(("cubin", data, "90a"), name=name)).data == data
    assert list(tmp_path.iterdir()) == []


def test_without_the_tool_the_error_says_what_brings_it(monkeypatch) -> None:
    code = fat(("cubin", made("cubin"), "90a"))
    monkeypatch.setattr(os, "access", lambda *_: False)
    with pytest.raises(BackendUnavailableError, match="pip install nvidia-cuda-cuobjdump") as caught:
        compiled(code)
    assert caught.value.name == CUOBJDUMP.name


@pytest.mark.parametrize("kernel", [ADD, "plain"])
def test_ltoir_is_optimised_when_it_is_linked(kernel: str) -> None:
    image = compiled(trunnion.DeviceCode("ltoir", made("ltoir")), kernel=kernel)
    assert image.kernels[0].symbol == kernel
    assert [one.size for one in image.kernels[0].parameters] == [8, 4]
    assert "nvjitlink" in image.toolchain
    assert "nvrtc" not in image.toolchain
    virtual = compiled(trunnion.DeviceCode("ltoir", made("ltoir")), target="compute_90a", kernel=kernel)
    assert virtual.kind == "ptx"


def test_ltoir_and_cuda_are_inlined_into_each_other() -> None:
    helper = trunnion.DeviceCode(
        "ltoir", made("ltoir", source='extern "C" __device__ int half_of(int n) { return n / 2; }')
    )
    uses = """extern "C" __device__ int half_of(int);
extern "C" __global__ void plain(float* x, int n) { x[half_of(n)] = 1; }"""
    image = compiled(trunnion.DeviceCode("cuda", uses), helper)
    assert read_cubin(image.data).definitions == ()


def test_a_kernel_that_ltoir_does_not_hold_is_named_with_those_that_it_does() -> None:
    with pytest.raises(ProgramError, match=rf"got 'add<3>', expected the exact name .* this ltoir \(.*{ADD}"):
        compiled(trunnion.DeviceCode("ltoir", made("ltoir")), kernel="add<3>")


def test_ltoir_goes_with_cuda_alone() -> None:
    late = trunnion.DeviceCode("ltoir", made("ltoir"))
    for other in (
        trunnion.DeviceCode("ptx", made("ptx", "compute_90").decode().rstrip("\0")),
        trunnion.DeviceCode("cubin", made("cubin", "sm_90a", SOURCE, "-rdc=true")),
    ):
        with pytest.raises(ProgramError, match="every part must be CUDA C\\+\\+ or LTO-IR") as caught:
            compiled(late, other)
        assert caught.value.field == "code[0]"
    with pytest.raises(ProgramError, match="leave out relocatable-device-code"):
        compiled(late, trunnion.DeviceCode("cuda", "__device__ int x;", options=("-dc",)))
    with pytest.raises(ProgramError, match="means nothing"):
        compiled(late, std="c++20")


def test_damaged_ltoir_is_a_compile_error() -> None:
    whole = made("ltoir")
    for cut in (8, 100, len(whole) // 2):
        with pytest.raises(CompileError):
            compiled(trunnion.DeviceCode("ltoir", whole[:cut]))


@pytest.mark.parametrize("language", ["ltoir", "fatbin"])
def test_it_is_launched_and_its_document_comes_back(simulator, tmp_path, language: str) -> None:
    data = made("ltoir") if language == "ltoir" else fatbin(("cubin", made("cubin"), "90a"))
    (tmp_path / f"k.{language}").write_bytes(data)
    code = trunnion.DeviceCode.from_file(tmp_path / f"k.{language}")
    assert (code.language, code.source) == (language, data)
    p = trunnion.ProgramBuilder("binary", code)
    (n,) = trunnion.symbols("n")
    x = p.input("x", "float32", (n,), access="read_write")
    p.launch(ADD, args=(x, n.cast("int32")), grid=1, block=32)
    program = p.build()
    assert trunnion.KernelProgram.from_json(program.to_json()) == program
    for _ in ("made", "found in the cache"):
        with (
            trunnion.compile(program, backend="nvrtc", target="sm_90a", cache=tmp_path / "cache") as built,
            simulator.torch_mode(),
        ):
            built(torch.zeros(7, device="cuda:0"))
    launches = [event for event in simulator.trace if isinstance(event, Launched)]
    assert [(one.kernel, one.parameters[1]) for one in launches] == [(ADD, b"\x07\0\0\0")] * 2


@pytest.mark.parametrize("backend", ["nvrtc", "tvm_ffi"])
@pytest.mark.parametrize("language", ["ptx", "cubin", "fatbin", "ltoir"])
def test_its_variables_go_by_their_exact_names(simulator, language: str, backend: str) -> None:
    source = """namespace ns { __constant__ int cells[2]; }
extern "C" __global__ void taken(int* x) { *x = *ns::cells; }"""
    data = fatbin(("cubin", made("cubin", "sm_90a", source), "90a")) if language == "fatbin" else None
    if data is None:
        data = made(language, "compute_90" if language == "ptx" else "sm_90a", source)
    code = trunnion.DeviceCode(language, data.decode().rstrip("\0") if language == "ptx" else data)
    p = trunnion.ProgramBuilder("binary", code)
    cells = p.variable("_ZN2ns5cellsE", "int32", (2,), init=[3, -4])
    p.launch("taken", args=(cells,), grid=1, block=1)
    held = []
    program = trunnion.compile(p.build(), backend, target="sm_90a", cache=False)
    simulator.register_body("taken", lambda call: held.append(call.memory.read(call.pointer(0), 8)))
    program(device=0)
    assert held == [b"\3\0\0\0\xfc\xff\xff\xff"]


def test_a_variable_that_ltoir_does_not_hold_is_named() -> None:
    p = trunnion.ProgramBuilder("binary", trunnion.DeviceCode("ltoir", made("ltoir")))
    p.variable("nowhere", "int32")
    p.launch("plain", args=(p.input("x", "float32", (4,)), p.scalar("n", "int32")), grid=1, block=1)
    with pytest.raises(UnknownVariableError, match="has no variable 'nowhere'"):
        trunnion.compile(p.build(), "nvrtc", target="sm_90a", cache=False)
