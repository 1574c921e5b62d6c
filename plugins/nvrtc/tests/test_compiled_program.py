"""`CompiledProgram` over a real artifact: the forms that a call's extras take, and tampered artifacts."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import pytest
import torch

import trunnion
from trunnion import errors, examples
from trunnion.sim.trace import Launched


@pytest.fixture
def add(simulator):
    example = examples.load("vector_add")
    with trunnion.compile(example.program, backend="nvrtc", target="sm_90a") as program:
        simulator.register_body("vector_add", example.bodies["vector_add"])
        with simulator.torch_mode():
            yield program


def vector(n=8, device="cuda:0"):
    return torch.arange(n, dtype=torch.float32).to(device)


def stream_of_last_launch(simulator):
    return [event for event in simulator.trace if isinstance(event, Launched)][-1].stream


@pytest.mark.parametrize("form", [lambda t: t, lambda t: [t], lambda t: (t,)])
def test_one_output_may_be_given_bare_or_in_a_sequence(add, form):
    x, out = vector(), vector()
    assert add(x, x, out=form(out)) is out
    assert torch.equal(out.cpu(), 2 * x.cpu())


@pytest.mark.parametrize("out", [[], (1, 2), [None], "c", 3])
def test_an_out_of_another_form_is_refused(add, out):
    with pytest.raises(errors.ArgumentTypeError):
        add(vector(), vector(), out=out)


@pytest.mark.parametrize("call", ["__call__", "bind"])
def test_arguments_go_by_name(add, call):
    x, y = vector(), vector()
    made = getattr(add, call)(b=y, a=x)
    assert torch.equal((made() if call == "bind" else made).cpu(), add(x, y).cpu())
    with pytest.raises(errors.ArgumentTypeError, match="one of 'a', 'b'") as caught:
        getattr(add, call)(x, nobody=y)
    assert caught.value.argument == "nobody"


def test_a_stream_may_be_an_int_or_an_object_of_either_protocol(simulator, add):
    x, handle = vector(), simulator.new_stream(0)
    for stream in (
        handle,
        SimpleNamespace(__cuda_stream__=lambda: (0, handle)),
        SimpleNamespace(cuda_stream=handle),
    ):
        add(x, x, stream=stream)
        assert stream_of_last_launch(simulator) == handle
    for legacy in (0, 1, 2):
        add(x, x, stream=legacy)
        assert stream_of_last_launch(simulator) == legacy


@pytest.mark.parametrize("stream", ["0", 1.5, object(), True])
def test_what_is_no_stream_is_refused(add, stream):
    with pytest.raises(errors.ArgumentTypeError) as caught:
        add(vector(), vector(), stream=stream)
    assert caught.value.argument == "stream"


@pytest.mark.parametrize("device", [0, "cuda", "cuda:0", torch.device("cuda", 0), torch.device("cuda")])
def test_the_device_of_the_tensors_may_be_named(add, device):
    assert add(vector(), vector(), device=device).get_device() == 0


@pytest.mark.parametrize("device", ["cpu", "cuda:x", "cuda:", 1.0, True, -1, 99])
def test_another_device_is_refused(add, device):
    with pytest.raises(errors.ArgumentError) as caught:
        add(vector(), vector(), device=device)
    assert caught.value.argument == "device"


@pytest.mark.parametrize("way", ["__call__", "entry"])
def test_what_a_body_raises_comes_out_of_the_call(simulator, add, way):
    def body(call):
        raise ZeroDivisionError("in the body")

    simulator.register_body("vector_add", body)
    with pytest.raises(ZeroDivisionError, match="in the body"):
        getattr(add, way)(vector(), vector())


def test_a_call_without_a_tensor_needs_a_device(simulator):
    code = trunnion.DeviceCode("cuda", 'extern "C" __global__ void k(int n) {}')
    p = trunnion.ProgramBuilder("scalars", code)
    n = p.scalar("n", "int32")
    p.launch("k", args=(n,), grid=1, block=1)
    with trunnion.compile(p.build(), target="sm_90a") as program:
        with pytest.raises(errors.DeviceRequirementError):
            program(3)
        for device in (0, 1):
            assert program(3, device=device) is None
            launched = [event for event in simulator.trace if isinstance(event, Launched)][-1]
            assert (launched.device, launched.parameters) == (device, ((3).to_bytes(4, "little"),))
        with pytest.raises(errors.ArgumentError):
            program(3, device=9)


def rows(shape, stride):
    return torch.zeros(64).as_strided(shape, (stride, 1)).to("cuda:0")


def test_a_stride_is_read_where_it_means_something(simulator):
    """A tensor of one row has any stride at all along its rows; the next tensor's is the one that counts."""
    code = trunnion.DeviceCode(
        "cuda", 'extern "C" __global__ void k(const float* a, const float* b, int s) {}'
    )
    p = trunnion.ProgramBuilder("rows", code)
    m, n, k, s = trunnion.symbols("m n k s")
    a, b = p.input("a", "float32", (m, k), strides=(s, 1)), p.input("b", "float32", (n, k), strides=(s, 1))
    p.launch("k", args=(a, b, s.cast("int32")), grid=1, block=1)
    with trunnion.compile(p.build(), target="sm_90a") as program, simulator.torch_mode():
        for first, second, seen in (
            (rows((1, 8), 1), rows((2, 8), 16), 16),
            (rows((2, 8), 16), rows((1, 8), 1), 16),
            (rows((1, 8), 3), rows((1, 8), 5), 3),
        ):
            program(first, second)
            launch = [event for event in simulator.trace if isinstance(event, Launched)][-1]
            assert launch.parameters[2] == seen.to_bytes(4, "little")
        with pytest.raises(errors.ArgumentValueError) as caught:
            program(rows((2, 8), 16), rows((2, 8), 8))
        assert caught.value.argument == "b"


def test_what_it_is_can_be_read(add):
    assert (add.backend, str(add.target)) == ("nvrtc", "cuda:sm_90a")
    assert add.host_source.encode() == add.artifact.files["launcher.py"]
    assert "vector_add" in add.device_source
    assert add.image("cubin").startswith(b"\x7fELF")
    with pytest.raises(errors.ArgumentValueError):
        add.image("ptx")
    assert "vector_add" in repr(add)


def test_after_close_nothing_works(simulator):
    program = trunnion.compile(examples.load("vector_add").program, target="sm_90a")
    program.close()
    with pytest.raises(errors.LifecycleError):
        program.preload(0)
    with simulator.torch_mode(), pytest.raises(errors.LifecycleError):
        program(vector(), vector())


def test_an_artifact_with_another_program_is_refused(add):
    other = examples.load("hopper_gemm").program
    artifact = add.artifact.including("program.json", other.to_json().encode())
    with pytest.raises(errors.CorruptArtifactError) as caught:
        trunnion.load(artifact)
    assert caught.value.what == "program.json"
    with pytest.raises(errors.CorruptArtifactError):
        trunnion.load(add.artifact.including("program.json", b"{}"))


@pytest.mark.parametrize("form", ["artifact", "folder", "text"])
def test_an_artifact_is_taken_up_without_any_compiler(add, form, tmp_path, monkeypatch):
    def compile_again(self, request):
        raise AssertionError("a built program needs no compiler")

    monkeypatch.setattr("trunnion_nvrtc.compiler.compiler.NvrtcCompiler.compile", compile_again)
    add.artifact.save(tmp_path / "built")
    given = {"artifact": add.artifact, "folder": tmp_path / "built", "text": str(tmp_path / "built")}[form]
    with trunnion.CompiledProgram.from_artifact(given) as again:
        assert type(again) is trunnion.CompiledProgram
        assert again.artifact.digest == add.artifact.digest
        assert torch.equal(again(vector(), vector()).cpu(), 2 * vector(device="cpu"))
    with pytest.raises(errors.ArgumentTypeError) as caught:
        trunnion.CompiledProgram.from_artifact(given, registry="nvrtc")
    assert caught.value.argument == "registry"


def test_an_artifact_of_an_unknown_backend_is_refused(add):
    stranger = type(add.artifact)(replace(add.artifact.manifest, backend="acme"), add.artifact.files)
    with pytest.raises(errors.UnknownBackendError) as caught:
        trunnion.load(stranger)
    assert "nvrtc" in caught.value.available


@pytest.mark.parametrize("target", ["sm_1", "compute_1"])
def test_a_target_that_no_image_can_be_made_for_is_refused(target):
    with pytest.raises(errors.ProgramError):
        trunnion.compile(examples.load("vector_add").program, target=target)


def test_options_of_a_stranger_are_refused():
    program = examples.load("vector_add").program
    with pytest.raises(errors.ProgramError) as caught:
        trunnion.compile(program, target="sm_90a", options={"acme": {}})
    assert "acme" in str(caught.value)
    with pytest.raises(errors.ProgramError):
        trunnion.compile(program, target="sm_90a", options={"nvrtc": {"nonsense": 1}})


def test_a_bound_launch_says_what_it_is(simulator, add):
    handle = simulator.new_stream(0)
    bound = add.bind(vector(), vector(), stream=handle)
    assert (bound.name, bound.device, bound.stream) == ("vector_add", 0, handle)
    assert repr(bound) == f"<BoundLaunch of 'vector_add' on stream {handle:#x} of device 0>"
