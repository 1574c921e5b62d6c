"""Module variables with real NVRTC: names, sizes and symbols of what it compiles, and what is launched with them."""

from __future__ import annotations

import pickle
import struct

import pytest
import torch

import trunnion
from trunnion import DeviceCode, KernelProgram, ProgramBuilder, ceildiv, errors, symbols
from trunnion.contract.compiler import CompileRequest, ImageVariable
from trunnion.contract.spec import Target
from trunnion.sim.trace import Launched, MemoryCopied
from trunnion_nvrtc.compiler.compiler import NvrtcCompiler
from trunnion_nvrtc.compiler.missing_variable import MissingVariableError, variable_names

SOURCE = """
__constant__ float filter[4];
namespace ns {
__device__ int counter = 5;
static __constant__ float gain;
template <class T> __device__ T cell;
}
__managed__ int managed;
extern "C" __global__ void scale(const float* x, float* y, int* counter, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = ns::gain * filter[i % 4] * x[i];
  if (i == 0) ++*counter;
}
"""
KERNEL = "template <int N> __global__ void step() {}"
UNUSED = "__constant__ int unused[2]; __device__ int used;"


def scaled(**fields: object) -> KernelProgram:
    p = ProgramBuilder("scale", DeviceCode("cuda", SOURCE))
    (n,) = symbols("n")
    x, taps = p.input("x", "float32", (n,)), p.input("taps", "float32", (4,))
    y = p.output("y", "float32", (n,))
    filt = p.variable(**{"name": "filter", "dtype": "float32", "shape": (4,), **fields})  # type: ignore[arg-type]  # a test's own
    p.variable("ns::gain", "float32", init=2.0)
    counter = p.variable("ns::counter", "int32")
    if not fields:
        p.copy(filt, taps)
    p.launch("scale", (x, y, counter, n.cast("int32")), grid=ceildiv(n, 256), block=256)
    return p.build()


@pytest.mark.parametrize("arch", ["sm_80", "sm_90a", "compute_90"])
def test_names_are_lowered_and_sizes_read_in_cubins_and_ptx(arch: str) -> None:
    p = ProgramBuilder("p", DeviceCode("cuda", SOURCE))
    for name, kind, shape in (
        ("filter", "float32", (4,)),
        ("ns::counter", "int32", ()),
        ("ns::cell<long>", "int64", ()),
    ):
        p.variable(name, kind, shape)
    p.launch("scale", (), 1, 1)
    plan = p.build().plan()
    request = CompileRequest(
        code=p.build().code, kernels=plan.kernels, variables=plan.variables, target=Target("cuda", arch)
    )
    assert NvrtcCompiler().compile(request).variables == (
        ImageVariable("filter", "filter", 16),
        ImageVariable("ns::counter", "_ZN2ns7counterE", 4),
        ImageVariable("ns::cell<long>", "_ZN2ns4cellIlEE", 8),
    )


@pytest.mark.parametrize("options", [(), ("--relocatable-device-code=true",)])
def test_parts_that_are_linked_keep_them(options: tuple[str, ...]) -> None:
    main = DeviceCode("cuda", SOURCE, options=options)
    other = DeviceCode("cuda", UNUSED, name="other.cu", options=options)
    p = ProgramBuilder("p", (main, other))
    filt, used = p.variable("filter", "float32", (4,)), p.variable("used", "int32", code=other, init=3)
    n = p.input("x", "float32", (4,))
    p.launch("scale", (n, n, used, p.scalar("n", "int32")), 1, 32)
    built = trunnion.compile(p.build(), "nvrtc", target="sm_90a", cache=False)
    assert [one.symbol for one in built.artifact.manifest.variables] == ["filter", "used"]
    assert filt.nbytes == 16


@pytest.mark.parametrize(
    ("fields", "error", "said"),
    [
        (
            {"shape": (3,)},
            errors.VariableMismatchError,
            "the program says 12 bytes, the compiled code has 16 bytes",
        ),
        ({"name": "filtr"}, MissingVariableError, "identifier \"filtr\" is undefined; did you mean 'filter'"),
        ({"name": "ns::filter"}, MissingVariableError, 'namespace "ns" has no member "filter"'),
        ({"name": "scale"}, errors.UnknownVariableError, "has no variable 'scale'"),
    ],
)
def test_what_the_code_has_not_is_named_at_the_build(
    fields: dict[str, object], error: type[Exception], said: str
) -> None:
    with pytest.raises(error) as caught:
        trunnion.compile(scaled(**fields), "nvrtc", target="sm_90a", cache=False)
    assert said in str(caught.value)
    assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)  # noqa: S301 - our own


def test_a_missing_variable_is_a_compile_error_with_the_names_there_are() -> None:
    with pytest.raises(
        errors.CompileError, match="the source's variables: 'filter', 'counter', 'gain'"
    ) as caught:
        trunnion.compile(scaled(name="filtr"), "nvrtc", target="sm_90a", cache=False)
    assert isinstance(caught.value, LookupError)


def of_parts(*, scale: int = 0, variable: str = "", kernel: str = "") -> list[str]:
    """Return the notes of a build that looks for something in a part where it is not."""
    parts = DeviceCode("cuda", SOURCE), DeviceCode("cuda", UNUSED + KERNEL, name="other.cu")
    p = ProgramBuilder("p", parts)
    n = p.input("x", "float32", (4,))
    count, number = p.input("c", "int32", ()), p.scalar("n", "int32")
    p.launch("scale", (n, n, count, number), 1, 32, code=parts[scale])
    if variable:
        p.variable(variable, "int32", init=3)
    if kernel:
        p.launch(kernel, (), 1, 32)
    with pytest.raises(errors.CompileError) as caught:
        trunnion.compile(p.build(), "nvrtc", target="sm_90a", cache=False)
    return getattr(caught.value, "__notes__", [])


def test_of_what_lies_in_another_part_it_is_said_to_name_the_part() -> None:
    """Without ``code=`` it is looked for in the first, and the error alone would deny that there is one."""
    looked = "it was looked for in code[0], 'kernel.cu'"
    assert of_parts(variable="used") == [
        f"hint: 'used' is seen in code[1], 'other.cu'; {looked}: say variable(..., code=...)"
    ]
    assert of_parts(kernel="step<4>") == [
        f"hint: 'step<4>' is seen in code[1], 'other.cu'; {looked}: say launch(..., code=...)"
    ]
    assert of_parts(variable="hidden") == [
        f"hint: {looked}; if 'hidden' is in another of the 2 parts, say variable(..., code=...)"
    ]
    elsewhere = "it was looked for in code[1], 'other.cu'"
    assert of_parts(scale=1) == [
        f"hint: 'scale' is seen in code[0], 'kernel.cu'; {elsewhere}: say launch(..., code=...)"
    ]


def test_of_one_part_nothing_is_said_of_others() -> None:
    with pytest.raises(MissingVariableError) as caught:
        trunnion.compile(scaled(name="filtr"), "nvrtc", target="sm_90a", cache=False)
    assert not any("code=" in note for note in getattr(caught.value, "__notes__", []))


@pytest.mark.parametrize(
    ("source", "names"),
    [
        ("__constant__ float a[3], b;", ("a",)),
        ("__device__ int f(int x); __device__ int v = 3;", ("v",)),
        ("// __constant__ int not_this;\n__constant__ int this_one{4};", ("this_one",)),
        ("alignas(16) __device__ P cell;", ("cell",)),
    ],
)
def test_names_in_a_source_are_found_for_messages(source: str, names: tuple[str, ...]) -> None:
    assert variable_names(source) == names


@pytest.mark.parametrize("backend", ["nvrtc", "tvm_ffi", "cutedsl"])
def test_each_device_is_initialised_and_copies_are_captured(simulator, backend: str) -> None:  # type: ignore[no-untyped-def]  # a fixture
    program = trunnion.compile(scaled(), backend, target="sm_90a")
    names = {one.name: one.symbol for one in program.artifact.manifest.variables}
    held = []

    def body(call):  # type: ignore[no-untyped-def]  # a body
        counter = call.variable(names["ns::counter"], "int32")
        counter.fill_(int(counter) + 1)
        assert call.pointer(2) == counter.data_ptr()
        gain, filt = call.variable(names["ns::gain"], "float32"), call.variable("filter", "float32", (4,))
        held.append((call.device, float(gain), filt.tolist(), int(counter)))

    simulator.register_body("scale", body)
    with program, simulator.torch_mode(), simulator.reraise():
        for device in (0, 1):
            held.clear()
            x, taps = torch.ones(8, device=f"cuda:{device}"), torch.arange(4.0, device=f"cuda:{device}")
            program(x, taps)
            program(x, taps)
            assert held == [(device, 2.0, [0.0, 1.0, 2.0, 3.0], 6 + call) for call in (0, 1)]
        stream = simulator.new_stream(0)
        x, taps = torch.ones(8, device="cuda"), torch.arange(4.0, device="cuda")
        held.clear()
        with simulator.capture(stream, 0) as graph:
            program(x, taps, stream=stream)
        assert held == []
        simulator.clear_trace()
        graph.launch()
        work = [event for event in simulator.trace if isinstance(event, (Launched, MemoryCopied))]
        assert [type(event) for event in work] == [MemoryCopied, Launched]
        assert held == [(0, 2.0, [0.0, 1.0, 2.0, 3.0], 8)]
    simulator.unregister_body("scale")


@pytest.mark.parametrize("backend", ["nvrtc", "tvm_ffi"])
def test_preparing_a_device_disturbs_no_capture_of_another_stream(simulator, backend: str) -> None:  # type: ignore[no-untyped-def]  # a fixture
    with trunnion.compile(scaled(), backend, target="sm_90a") as program, simulator.reraise():
        stream = simulator.new_stream(0)
        with simulator.capture(stream, 0) as graph:
            program.preload(0)
        graph.launch()
        copied = [event for event in simulator.trace if isinstance(event, MemoryCopied)]
        assert [(event.direction, event.nbytes) for event in copied][-1:] == [("HtoD", 4)]


def test_what_is_written_is_rounded_once() -> None:
    assert scaled().variables[1].init == struct.pack("<f", 2.0)
