"""What a built program says of its kernels: what the image says, and nothing that it does not."""

from __future__ import annotations

import dataclasses
import pickle
from typing import TYPE_CHECKING, Any

import pytest
import torch

import trunnion
from trunnion import DeviceCode, ProgramBuilder, examples, kernel_attributes
from trunnion.artifacts.artifact import Artifact
from trunnion.compiled_kernel import CompiledKernel, CompiledKernels, compiled_kernels
from trunnion.contract.compiler import ImageKernel
from trunnion.errors import (
    ArgumentTypeError,
    ArgumentValueError,
    BackendUnavailableError,
    CorruptArtifactError,
    DeviceRequirementError,
    DriverError,
    UnknownKernelError,
)
from trunnion.image import SyntheticKernel, pack_parameters, read_cubin, synthetic_cubin
from trunnion.sim.status import Status
from trunnion.toolchain import disassembler
from trunnion.toolchain.disassembler import NVDISASM

if TYPE_CHECKING:
    from collections.abc import Callable

    from trunnion.sim import Simulator

SOURCE = """
__constant__ float table[16];
template <int N> __global__ void __launch_bounds__(N, 2) scaled(float* x, int n) {
  __shared__ float part[N];
  part[threadIdx.x] = x[threadIdx.x] * table[n % 16];
  __syncthreads();
  x[threadIdx.x] = part[N - 1 - threadIdx.x];
}
extern "C" __global__ void kept(float* x, int n) {
  float all[50];
  for (int i = 0; i < 50; ++i) all[i] = x[i * n];
  for (int i = 0; i < n; ++i) x[i] += all[i * 7 % 50];
}
"""


def built(**more: Any) -> trunnion.CompiledProgram:
    p = ProgramBuilder("two", DeviceCode("cuda", SOURCE))
    x = p.input("x", "float32", (4096,), access="read_write")
    n = p.scalar("n", "int32")
    p.launch("scaled<64>", (x, n), grid=1, block=64)
    p.launch("kept", (x, n), grid=1, block=1)
    return trunnion.compile(p.build(), **{"backend": "nvrtc", "target": "sm_90a"} | more)


@pytest.fixture(scope="module")
def program() -> trunnion.CompiledProgram:
    return built()


def test_kernels_go_by_the_programs_names_in_its_order(program: trunnion.CompiledProgram) -> None:
    kernels = program.kernels
    assert [*kernels] == ["scaled<64>", "kept"]
    assert len(kernels) == 2
    assert "kept" in kernels
    assert "scaled" not in kernels
    assert kernels.get("scaled") is None
    assert kernels == program.kernels
    assert kernels["scaled<64>"].symbol.startswith("_Z")
    assert repr(kernels) == "<CompiledKernels 'scaled<64>', 'kept'>"


def test_the_figures_are_those_of_the_cubin(program: trunnion.CompiledProgram) -> None:
    assert program.artifact.images == {"cubin": program.image("cubin")}
    info = read_cubin(program.image("cubin"))
    for kernel in program.kernels.values():
        said = info.kernel(kernel.symbol)
        assert said is not None
        for field in dataclasses.fields(said):
            if field.name not in {"name", "parameter_base"}:
                assert getattr(kernel, field.name) == getattr(said, field.name), field.name
        assert (kernel.image_kind, kernel.arch, kernel.constant_bytes) == ("cubin", "sm_90a", 64)
    scaled, kept = program.kernels.values()
    assert (scaled.static_smem_bytes, scaled.local_bytes, scaled.max_threads_per_block) == (256, 0, 64)
    assert (kept.static_smem_bytes, kept.local_bytes, kept.max_threads_per_block) == (0, 200, None)
    assert scaled.registers is not None
    assert 0 < scaled.registers <= 255
    assert [one.size for one in kept.parameters] == [8, 4]
    assert kept.parameter_bytes == 12


def test_ptx_does_not_say_what_its_assembler_decides() -> None:
    program = built(target="compute_90")
    scaled = program.kernels["scaled<64>"]
    assert (scaled.image_kind, scaled.arch) == ("ptx", "sm_90")
    assert (scaled.static_smem_bytes, scaled.max_threads) == (256, (64, 1, 1))
    assert scaled.registers is scaled.local_bytes is scaled.constant_bytes is None
    assert [one.size for one in scaled.parameters] == [8, 4]
    assert scaled.ptx is not None
    assert ".entry kept" in scaled.ptx
    assert "\0" not in scaled.ptx
    assert scaled.sass() is None


def test_an_image_of_the_cpu_says_no_figures() -> None:
    program = trunnion.compile(examples.load("cpu_axpy").program)
    (kernel,) = program.kernels.values()
    assert kernel.image_kind == "host-object"
    assert kernel.registers is kernel.static_smem_bytes is kernel.local_bytes is kernel.arch is None
    assert kernel.ptx is kernel.sass() is None
    assert kernel.parameters == program.artifact.manifest.kernels[0].parameters


@pytest.mark.parametrize("backend", ["nvrtc", "tvm_ffi", "cutedsl"])
def test_every_backends_artifact_says_the_same(backend: str, program: trunnion.CompiledProgram) -> None:
    kernels = trunnion.load(built(backend=backend, compiler="nvrtc").artifact).kernels
    assert {name: one.registers for name, one in kernels.items()} == {
        name: one.registers for name, one in program.kernels.items()
    }


def test_a_lazy_program_is_built_for_it() -> None:
    assert built(lazy=True).kernels["kept"].local_bytes == 200


@pytest.mark.parametrize("name", ["kep", "", 3, None, "\x1b[31m", ["kept"]])
def test_a_name_that_no_kernel_has_is_refused_with_those_that_there_are(
    program: trunnion.CompiledProgram, name: Any
) -> None:
    with pytest.raises(UnknownKernelError, match="'scaled<64>', 'kept'") as caught:
        program.kernels[name]
    assert isinstance(caught.value, KeyError)
    assert caught.value.kernels == ("scaled<64>", "kept")
    assert "\x1b" not in str(caught.value)


def test_a_near_name_is_suggested(program: trunnion.CompiledProgram) -> None:
    with pytest.raises(UnknownKernelError, match="did you mean 'kept'"):
        program.kernels["Kept"]


def test_nothing_of_it_can_be_changed(program: trunnion.CompiledProgram) -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        program.kernels["kept"].registers = 1  # type: ignore[misc]  # what is tried
    with pytest.raises(TypeError):
        program.kernels["kept"] = program.kernels["kept"]  # type: ignore[index]  # the same


def test_a_kernel_pickles_and_shows_no_image(program: trunnion.CompiledProgram) -> None:
    kernel = program.kernels["kept"]
    assert pickle.loads(pickle.dumps(kernel)) == kernel  # noqa: S301 - our own
    assert "image=" not in repr(kernel)


def test_kernels_that_are_called_alike_go_by_their_symbols() -> None:
    alike = [CompiledKernel(name="gemm", symbol=symbol, image_kind="cubin", image=b"") for symbol in "ab"]
    other = CompiledKernel(name="init", symbol="c", image_kind="cubin", image=b"")
    kernels = CompiledKernels((*alike, other))
    assert {name: one.symbol for name, one in kernels.items()} == {"a": "a", "b": "b", "init": "c"}


def artifact_with(program: trunnion.CompiledProgram, files: dict[str, bytes]) -> Artifact:
    """Return an artifact whose image was exchanged, under a manifest that says so."""
    old = program.artifact
    kept = {name: data for name, data in old.files.items() if not name.startswith("image.")}
    bare = Artifact(
        dataclasses.replace(old.manifest, files={name: old.manifest.files[name] for name in kept}), kept
    )
    for name, data in files.items():
        bare = bare.including(name, data)
    return bare


def test_an_image_that_lacks_a_kernel_or_cannot_be_read_is_refused(program: trunnion.CompiledProgram) -> None:
    foreign = synthetic_cubin([SyntheticKernel(name="kept", parameters=pack_parameters([(8, 8), (4, 4)]))])
    with pytest.raises(CorruptArtifactError, match=r"image\.cubin: has no kernel '_Z"):
        compiled_kernels(artifact_with(program, {"image.cubin": foreign}))
    with pytest.raises(CorruptArtifactError):
        compiled_kernels(artifact_with(program, {"image.cubin": b"\x7fELF"}))


def test_images_of_unknown_kinds_and_none_say_what_the_manifest_says(
    program: trunnion.CompiledProgram,
) -> None:
    for files, kind in (({"image.acme": b"x"}, "acme"), ({}, "")):
        kernel = compiled_kernels(artifact_with(program, files))["kept"]
        assert kernel.image_kind == kind
        assert kernel.registers is kernel.static_smem_bytes is kernel.ptx is kernel.sass() is None
        assert kernel.parameter_bytes == 12


@pytest.mark.usefixtures("simulator")
@pytest.mark.parametrize("backend", ["nvrtc", "tvm_ffi"])
def test_the_driver_says_what_a_kernel_takes_of_a_device(backend: str) -> None:
    (kernel,) = (
        one for one in built(backend=backend, compiler="nvrtc").kernels.values() if one.name == "scaled<64>"
    )
    said = kernel.attributes(0)
    assert said["NUM_REGS"] == kernel.registers
    assert (said["SHARED_SIZE_BYTES"], said["MAX_THREADS_PER_BLOCK"], said["BINARY_VERSION"]) == (256, 64, 90)
    assert built().kernels["kept"].attributes("cuda:0")["LOCAL_SIZE_BYTES"] == 200
    assert built(target="compute_90").kernels["scaled<64>"].attributes(0)["SHARED_SIZE_BYTES"] == 256
    with pytest.raises(TypeError):
        said["NUM_REGS"] = 1  # type: ignore[index]  # what is tried


def test_the_driver_is_asked_about_the_device_that_is_meant(simulator: Simulator) -> None:
    asked: list[int] = []

    def note(proceed: Callable[..., None], *arguments: Any) -> None:
        asked.append(arguments[-1])
        proceed(*arguments)

    with simulator.intercept("cuDeviceGet", note):
        for device in (0, 1):
            built().kernels["kept"].attributes(device)
    assert asked == [0, 1]


def test_nothing_is_left_behind_when_the_driver_was_asked(simulator: Simulator) -> None:
    kernel = built().kernels["kept"]
    context = simulator.state.contexts[0]
    references = context.references
    for call in ("cuLibraryLoadData", "cuLibraryGetKernel", "cuKernelGetAttribute"):
        with simulator.fault(call, Status.LAUNCH_FAILED), pytest.raises(DriverError, match=call):
            kernel.attributes(0)
    kernel.attributes(0)
    assert context.references == references
    assert not simulator.state.stack()


def test_a_capture_goes_on_when_the_driver_was_asked(simulator: Simulator) -> None:
    program = built()
    program.preload(0)
    x = simulator.tensor(torch.zeros(4096))
    with simulator.capture(device=0) as graph:
        program.kernels["kept"].attributes(0)
        program(x, 1)
    assert len(graph.nodes) == 2


def test_what_the_driver_refuses_reads_as_it_does_where_a_program_is_loaded(simulator: Simulator) -> None:
    program = built(target="sm_89")  # which none of the devices is
    said = []
    kernel = program.kernels["scaled<64>"]
    for ask in (kernel.attributes, program.preload):
        with pytest.raises(DriverError) as caught:
            ask(0)
        said.append(str(caught.value))
    assert said[0] == said[1]
    too_new = simulator.fault("cuLibraryLoadData", Status.UNSUPPORTED_PTX_VERSION)
    with too_new, pytest.raises(DeviceRequirementError, match="update the driver"):
        built().kernels["kept"].attributes(0)


@pytest.mark.usefixtures("simulator")
@pytest.mark.parametrize(
    ("device", "error"), [(99, ArgumentValueError), (-1, ArgumentValueError), ("cpu", ArgumentTypeError)]
)
def test_the_driver_is_asked_about_devices_alone_that_there_are(
    program: trunnion.CompiledProgram, device: Any, error: type[Exception]
) -> None:
    with pytest.raises(error, match="device"):
        program.kernels["kept"].attributes(device)


@pytest.mark.usefixtures("simulator")
def test_a_device_that_is_not_there_is_refused_as_a_call_refuses_it(
    program: trunnion.CompiledProgram,
) -> None:
    said = []
    for ask in (program.kernels["kept"].attributes, program.preload):
        with pytest.raises(ArgumentValueError) as caught:
            ask(99)
        said.append((str(caught.value), vars(caught.value)))
    assert said[0] == said[1]
    assert said[0][1]["refusal"] == "integer-range"


@pytest.mark.usefixtures("simulator")
def test_the_driver_loads_no_other_image() -> None:
    with pytest.raises(DriverError, match="NO_BINARY_FOR_GPU"):
        built(target="sm_80").kernels["kept"].attributes(0)
    (kernel,) = trunnion.compile(examples.load("cpu_axpy").program).kernels.values()
    with pytest.raises(
        DeviceRequirementError, match="needs a cubin or PTX, got an image of kind 'host-object'"
    ):
        kernel.attributes(0)


def test_without_a_driver_there_is_nobody_to_ask(
    program: trunnion.CompiledProgram, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kernel_attributes, "_SONAME", "libcuda-absent.so.1")
    with pytest.raises(DeviceRequirementError, match="needs a CUDA driver"):
        program.kernels["kept"].attributes(0)


def test_the_machine_code_is_that_of_the_one_kernel(
    program: trunnion.CompiledProgram, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[tuple[bytes, int]] = []
    monkeypatch.setattr(disassembler, "disassembled", lambda *what: asked.append(what) or "text")
    assert [one.sass() for one in program.kernels.values()] == ["text"] * 2
    assert len({index for _, index in asked}) == 2
    assert {image for image, _ in asked} == {program.image("cubin")}
    stray = dataclasses.replace(program.kernels["kept"], symbol="gone")
    with pytest.raises(CorruptArtifactError, match="no kernel 'gone'"):
        stray.sass()


def test_a_real_disassembler_writes_it(program: trunnion.CompiledProgram) -> None:
    """Where there is none, the same call says what to install: nothing skips."""
    kept = program.kernels["kept"]
    if NVDISASM.find() is None:
        with pytest.raises(BackendUnavailableError, match="pip install"):
            kept.sass()
        return
    text = kept.sass()
    assert text is not None
    assert ".text.kept" in text
    assert "EXIT" in text
    assert ".text._Z" not in text


def test_a_manifest_of_parameters_alone_is_enough() -> None:
    kernel = ImageKernel("k", "k", pack_parameters([(4, 4)]))
    assert (
        CompiledKernel(
            name="k", symbol="k", image_kind="", parameters=kernel.parameters, image=b""
        ).parameter_bytes
        == 4
    )
