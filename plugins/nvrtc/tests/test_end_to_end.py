"""The whole way with real NVRTC: program, plan, launcher, cubin, artifact, simulated launch, numbers."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

import trunnion
from trunnion import errors, examples
from trunnion.artifacts.manifest import FileRecord
from trunnion.model.tensormap import TiledTensorMap
from trunnion.registry import default_registry
from trunnion.sim.tensormap import decode
from trunnion.sim.trace import Launched
from trunnion.torch_runtime import default_runtime
from trunnion_nvrtc.backend.adapter import NvrtcAdapter


def run(simulator, example, program=None):
    """Compile, launch once on the simulated driver, and return how far the results are from the reference."""
    compiled = trunnion.compile(program or example.program, backend="nvrtc", target="sm_90a")
    for kernel in compiled.artifact.manifest.kernels:
        simulator.register_body(kernel.symbol, example.bodies[kernel.name])
    with compiled, simulator.torch_mode():
        args = example.inputs(torch.Generator().manual_seed(7), "cuda:0")
        with simulator.reraise():
            results = compiled(*args)
        return example.largest_error(results, args)


def with_args(example, reorder):
    """Return the example's program with its one launch's arguments in another order."""
    (launch,) = example.program.launches
    return replace(example.program, launches=(replace(launch, args=reorder(launch.args)),))


def swap(first, second):
    def reorder(args):
        args = list(args)
        args[first], args[second] = args[second], args[first]
        return tuple(args)

    return reorder


@pytest.mark.parametrize("name", examples.EXAMPLES)
def test_the_numbers_are_right(simulator, name):
    example = examples.load(name)
    assert run(simulator, example) <= example.tolerance


@pytest.mark.parametrize(("first", "second"), [(0, 1), (3, 4), (3, 5), (4, 5)])
def test_swapped_parameters_of_equal_size_give_wrong_numbers(simulator, first, second):
    example = examples.load("hopper_gemm")
    program = with_args(example, swap(first, second))
    try:
        error = run(simulator, example, program)
    except (errors.DriverError, RuntimeError):
        return  # the body read outside of an allocation, or multiplied matrices that do not fit: red as well
    assert not error <= 1e-3


@pytest.mark.parametrize(("first", "second"), [(0, 2), (1, 2), (2, 3)])
def test_swapped_parameters_of_different_size_are_refused_at_build(first, second):
    example = examples.load("hopper_gemm")
    program = with_args(example, swap(first, second))
    with pytest.raises(errors.ParameterMismatchError) as caught:
        trunnion.compile(program, backend="nvrtc", target="sm_90a")
    assert caught.value.kernel == "hopper_gemm<3>"
    assert caught.value.ordinal == min(first, second)


def test_a_64_bit_value_for_an_int_is_refused_at_build():
    example = examples.load("vector_add")
    program = with_args(example, lambda args: (*args[:3], args[3].operand))
    with pytest.raises(errors.ParameterMismatchError) as caught:
        trunnion.compile(program, backend="nvrtc", target="sm_90a")
    assert (caught.value.kernel, caught.value.ordinal) == ("vector_add", 3)


def test_a_missing_argument_is_refused_at_build():
    example = examples.load("vector_add")
    with pytest.raises(errors.ParameterMismatchError) as caught:
        trunnion.compile(with_args(example, lambda args: args[:3]), backend="nvrtc", target="sm_90a")
    assert caught.value.ordinal == -1


def test_the_map_that_the_kernel_reads_is_the_one_that_was_described(simulator):
    example = examples.load("hopper_gemm")
    simulator.clear_trace()
    run(simulator, example)
    (launch,) = [event for event in simulator.trace if isinstance(event, Launched)]
    described = [arg for arg in example.program.launches[0].args if isinstance(arg, TiledTensorMap)]
    assert [len(parameter) for parameter in launch.parameters] == [128, 128, 8, 4, 4, 4]
    for parameter, tensor_map in zip(launch.parameters, described, strict=False):
        request = decode(parameter)
        assert request.box == tuple(reversed(tensor_map.box_dim))
        assert request.swizzle == tensor_map.swizzle.code


@pytest.mark.parametrize("name", examples.EXAMPLES)
def test_an_artifact_is_the_same_bytes_each_time_and_runs_from_disk(simulator, name, tmp_path):
    example = examples.load(name)
    first, second = (trunnion.compile(example.program, backend="nvrtc", target="sm_90a") for _ in range(2))
    assert first.artifact.digest == second.artifact.digest
    assert first.artifact.files == second.artifact.files
    first.artifact.save(tmp_path / "artifact")
    loaded = trunnion.load(tmp_path / "artifact")
    assert loaded.artifact.digest == first.artifact.digest
    assert loaded.program == example.program
    for kernel in loaded.artifact.manifest.kernels:
        simulator.register_body(kernel.symbol, example.bodies[kernel.name])
    with loaded, simulator.torch_mode(), simulator.reraise():
        args = example.inputs(torch.Generator().manual_seed(3), "cuda:1")
        results = loaded(*args)
        assert all(one.get_device() == 1 for one in (results if isinstance(results, tuple) else (results,)))
        assert example.largest_error(results, args) <= example.tolerance


@pytest.mark.parametrize("target", ["compute_80", "compute_90", "compute_90a"])
def test_ptx_is_launched_and_runs_from_disk(simulator, target, tmp_path):
    example = examples.load("vector_add")
    compiled = trunnion.compile(example.program, backend="nvrtc", target=target, cache=tmp_path / "store")
    assert compiled.image("ptx").endswith(b"\n\0")
    assert compiled.artifact.manifest.target == f"cuda:{target}"
    with pytest.raises(errors.ArgumentValueError, match=r"kept \(ptx\)"):
        compiled.image("cubin")
    compiled.artifact.save(tmp_path / "artifact")
    simulator.register_body("vector_add", example.bodies["vector_add"])
    for program in (compiled, trunnion.load(tmp_path / "artifact")):
        with program, simulator.torch_mode(), simulator.reraise():
            args = example.inputs(torch.Generator().manual_seed(3), "cuda:1")
            assert example.largest_error(program(*args), args) == 0


def test_ptx_for_another_device_is_refused_when_it_is_loaded(simulator):
    program = trunnion.compile(examples.load("vector_add").program, backend="nvrtc", target="compute_100a")
    with (
        simulator.configured(arch="sm_90a"),  # each device; one that differs might run it
        pytest.raises(errors.DriverError, match="pass target="),
    ):
        program.preload(0)


def test_ptx_that_is_newer_than_the_driver_is_a_device_requirement(simulator):
    program = trunnion.compile(examples.load("vector_add").program, backend="nvrtc", target="compute_90")
    with simulator.configured(driver_version=12080):
        with pytest.raises(errors.DeviceRequirementError, match="UNSUPPORTED_PTX_VERSION") as caught:
            program.preload(0)
        assert "update the driver, or compile to a cubin" in caught.value.hint
    program.preload(0)


@pytest.mark.parametrize(
    "files", [("launcher.py",), ("image.ptx",), ("launcher.py", "image.cubin", "image.ptx")]
)
def test_an_artifact_holds_a_launcher_and_one_image(simulator, files):
    program = trunnion.compile(examples.load("vector_add").program, backend="nvrtc", target="compute_90")
    held = {name: program.artifact.files.get(name, b"") for name in files}
    records = {name: FileRecord.of(data) for name, data in held.items()}
    broken = type(program.artifact)(replace(program.artifact.manifest, files=records), held)
    with pytest.raises(errors.CorruptArtifactError, match=r"image\.cubin and image\.ptx"):
        NvrtcAdapter(default_registry().backend("nvrtc")).load(broken, default_runtime())


def test_a_store_builds_once(tmp_path, monkeypatch):
    from trunnion_nvrtc.compiler.compiler import NvrtcCompiler

    calls = []
    original = NvrtcCompiler.compile
    monkeypatch.setattr(
        NvrtcCompiler, "compile", lambda self, request: calls.append(1) or original(self, request)
    )
    program = examples.load("vector_add").program
    digests = {
        trunnion.compile(program, backend="nvrtc", target="sm_90a", cache=tmp_path / "store").artifact.digest
        for _ in range(3)
    }
    assert len(digests) == 1
    assert len(calls) == 1
    trunnion.compile(program, backend="nvrtc", target="sm_80", cache=tmp_path / "store")
    assert len(calls) == 2


def test_a_compile_error_shows_the_line():
    code = trunnion.DeviceCode("cuda", 'extern "C" __global__ void k(float* x)\n{\n  x[0] = nonsense;\n}\n')
    p = trunnion.ProgramBuilder("broken", code)
    x = p.input("x", "float32", (4,), access="write")
    p.launch("k", args=(x,), grid=1, block=1)
    with pytest.raises(errors.CompileError) as caught:
        trunnion.compile(p.build(), target="sm_90a")
    error = caught.value
    assert error.line == 3
    assert "nonsense" in error.log
    assert "> 3 |   x[0] = nonsense;" in str(error)
    assert error.arch == "sm_90a"
    assert error.compiler.startswith("NVRTC 13")


HOSTILE = [
    "class",
    "stream",
    "out",
    "device",
    "args",
    "t0",
    'a"b',
    "a'b",
    "a\nb",
    "a\\",
    "é \U0001f600",
    "x" * 10_000,
]


@pytest.mark.parametrize("name", HOSTILE, ids=lambda name: ascii(name)[:20])
def test_any_name_works(simulator, name):
    example = examples.load("vector_add")
    p = trunnion.ProgramBuilder(name, example.program.code)
    n = trunnion.Symbol(name)
    a, b = p.input(name, "float32", (n,)), p.input(name + "2", "float32", (n,))
    c = p.output(name + "3", "float32", (n,))
    p.check(trunnion.ge(n, 0), name)
    p.launch("vector_add", args=(a, b, c, n.cast("int32")), grid=trunnion.ceildiv(n, 256), block=256)
    program = trunnion.KernelProgram.from_json(p.build().to_json())
    assert run(simulator, example, program) == 0
