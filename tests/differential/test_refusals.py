"""Mistakes of which more than one true thing could be said: both backends say the same."""

from __future__ import annotations

import itertools
import re
from contextlib import nullcontext
from dataclasses import replace
from types import SimpleNamespace

import pytest
import torch

import trunnion
from trunnion.errors import (
    ArgumentError,
    ArgumentTypeError,
    ArgumentValueError,
    DeviceRequirementError,
    DriverError,
    LifecycleError,
    ProgramError,
    TrunnionError,
)
from trunnion.model.builder import ProgramBuilder
from trunnion.model.code import DeviceCode
from trunnion.model.expr import Symbol
from trunnion.model.window import AccessPolicyWindow
from trunnion.sim.status import Status
from trunnion.testing.machine import synthetic_image
from trunnion.testing.strategies import CallSpec, TensorSpec
from trunnion.testing.strategies.calls import row_major
from trunnion.testing.symbols import kernel_symbol

N = Symbol("n")
LONG = "a" * 9999 + "b"


def tensor(extent, **said):
    return TensorSpec(dtype="float32", shape=(extent,), strides=(1,), **said)


def refused(twins, builder, *calls):
    with twins.loaded(builder.build()) as pair:
        for call in calls:
            pair.compare(call)
    assert pair.refused == len(calls)


def said_of(twins, builder, call):
    """Return the texts of the errors of a refused call."""
    refused(twins, builder, call)
    said = []
    with twins.loaded(builder.build()) as pair:
        for harness, loaded in pair.loaded:
            args = harness.arguments(call.args)
            out = None if call.out is None else harness.arguments(call.out)
            with pytest.raises(TrunnionError) as caught:
                loaded.call(args, out=out)
            said.append(str(caught.value))
    return said


def test_destinations_that_share_memory(twins):
    builder = ProgramBuilder("p", DeviceCode("cuda", "//"))
    n = Symbol("n")
    t = builder.input("t", "float32", (n,))
    outs = [builder.output(name, "float32", (n * times,)) for name, times in (("z", 3), (LONG, 1), ("a", 2))]
    builder.launch("k", (t, *outs), 1, 1)
    shared = tuple(tensor(extent, shared=True) for extent in (12, 4, 8))
    later = (shared[0], tensor(4), tensor(8, shared=True, offset=4))
    refused(twins, builder, *(CallSpec(args=(tensor(4),), out=out) for out in (shared, later)))


def test_tensors_on_two_devices_and_numbers_of_long_names(twins):
    builder = ProgramBuilder("p", DeviceCode("cuda", "//"))
    n = Symbol(LONG)
    a = builder.input(LONG, "float32", (n,))
    b = builder.input("b", "float32", (n * 2 + 1,))
    builder.scalar("s", "int32", symbol=n)
    builder.launch("k", (a, b), 1, 1)
    refused(
        twins,
        builder,
        CallSpec(args=(tensor(4), tensor(9, device=1), 4)),
        CallSpec(args=(tensor(4), tensor(8), 4)),
        CallSpec(args=(tensor(4), tensor(9), 5)),
    )


def test_a_workspace_that_no_memory_could_hold(twins):
    builder = ProgramBuilder("p", DeviceCode("cuda", "//"))
    n = Symbol("n")
    builder.scalar("s", "int64", symbol=n)
    out = builder.output("out", "int8", (4,), fill=0)
    scratch = [builder.workspace(f"scratch{by}", "int8", (n, 2), alignment=by) for by in (1, 1024)]
    builder.launch("k", (out, *scratch), 1, 1)
    refused(twins, builder, *(CallSpec(args=(count,), device=0) for count in (2**62, 2**63 - 1)))


def test_an_output_that_no_memory_could_hold(twins, simulator):
    """Not through the trace: the simulator would raise what its own allocator said, before anybody could say why."""
    builder = ProgramBuilder("p", DeviceCode("cuda", "//"))
    n = Symbol("n")
    builder.scalar("s", "int64", symbol=n)
    builder.launch("k", (builder.output("out", "float32", (n, 2)),), 1, 1)
    said = []
    with twins.loaded(builder.build()) as pair:
        for (_, loaded), count in itertools.product(pair.loaded, (2**60, 2**63 - 1)):
            with pytest.raises(ArgumentValueError, match=f"an output of shape \\({count}, 2\\)") as caught:
                loaded.call((count,), device=0)
            said.append((count, str(caught.value), vars(caught.value)))
    simulator.forget_pending()
    assert said[:2] == said[2:]


@pytest.mark.parametrize(
    ("shape", "text"),
    [
        ((3, 5, 4), "got extent 3 along dimension 0, expected 4 ((n + 1))"),
        ((4, 6, 4), f"got extent 6 along dimension 1, expected 5 ({LONG[:200]}...)"),
        ((4, 5, 5), "got extent 5 along dimension 2, expected 4"),
    ],
)
def test_a_destination_of_another_extent_is_told_in_the_author_s_words(twins, shape, text):
    builder = ProgramBuilder("p", DeviceCode("cuda", "//"))
    n, m = Symbol("n"), Symbol(LONG)
    given = builder.input("given", "float32", (n, m))
    first = builder.output("first", "float32", (n,))
    out = builder.output("out", "float32", (n + 1, m, 4))
    builder.launch("k", (given, first, out), 1, 1)
    x, y, z = (
        TensorSpec(dtype="float32", shape=one, strides=row_major(one)) for one in ((3, 5), (3,), shape)
    )
    said = said_of(twins, builder, CallSpec(args=(x,), out=(y, z)))
    assert set(said) == {f"argument 'out' (out[1]): {text}"}


DENSE = "expected a contiguous row-major tensor to write into: allocate one, and copy from it"


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ({"shape": (5, 3), "strides": (1, 5)}, f"got strides (1, 5) for shape (5, 3), {DENSE}"),
        ({"dtype": "int32"}, "got a tensor of torch.int32, expected one of float32"),
        ({"shape": (5,), "strides": (1,)}, "got 1 dimensions, shape (5,), expected 2 dimensions"),
        ({"device": 1}, "got a tensor on cuda:1, expected CUDA device 0"),
    ],
)
def test_a_destination_that_does_not_fit_is_told_by_the_output_and_where_it_was_given(twins, given, text):
    builder = ProgramBuilder("p", DeviceCode("cuda", "//"))
    n = Symbol("n")
    x = builder.input("x", "float32", (n,))
    one, _ = (builder.output(name, "float32", (n, 3)) for name in ("y", "z"))
    good = TensorSpec(dtype="float32", shape=(5, 3), strides=(3, 1))
    bad = replace(good, **given)
    builder.launch("k", (x, one), 1, 1)
    said = said_of(twins, builder, CallSpec(args=(tensor(5),), out=(good, bad)))
    assert set(said) == {f"argument 'z' (out[1]): {text}"}
    single = ProgramBuilder("p", DeviceCode("cuda", "//"))
    x, y = single.input("x", "float32", (n,)), single.output("y", "float32", (n, 3))
    single.launch("k", (x, y), 1, 1)
    assert set(said_of(twins, single, CallSpec(args=(tensor(5),), out=(bad,)))) == {
        f"argument 'y' (out): {text}"
    }


@pytest.mark.parametrize(("n", "m", "named"), [(2**31, 4, "x"), (3, 2**31, "out")])
def test_an_extent_that_no_view_holds_is_told_by_the_argument_s_name(twins, n, m, named):
    builder = ProgramBuilder("p", DeviceCode("cuda", "//"))
    x = builder.input("x", "int8", (2, Symbol("n")), strides=(Symbol("s"), Symbol("t")))
    y = builder.input("y", "int8", (Symbol("m"),), strides=(Symbol("u"),))
    out = builder.output("out", "int8", (Symbol("m") - 2, 0))
    builder.launch("k", (x.view(), y, out.view()), 1, 1)
    one, other = (
        TensorSpec(dtype="int8", shape=shape, strides=(0,) * len(shape)) for shape in ((2, n), (m + 2,))
    )
    axis = 1 if named == "x" else 0
    wanted = (
        f"argument '{named}': got extent 2147483648 along dimension {axis}, "
        "expected -2147483648 to 2147483647: a view passes it as int32"
    )
    assert set(said_of(twins, builder, CallSpec(args=(one, other)))) == {wanted}


@pytest.mark.parametrize(
    ("given", "text"),
    [
        (None, "got NoneType, expected a tensor; a parameter that is declared nullable=True takes None"),
        (3, "got int, expected a tensor"),
        (tensor(4, device=None), "got a tensor on cpu, expected a tensor on a CUDA device; call .to('cuda')"),
    ],
)
def test_of_an_argument_that_is_no_tensor_of_the_device_it_is_told_what_to_do(twins, given, text):
    builder = ProgramBuilder("p", DeviceCode("cuda", "//"))
    x = builder.input("x", "float32", (4,))
    builder.launch("k", (x, builder.output("y", "float32", (4,))), 1, 1)
    assert set(said_of(twins, builder, CallSpec(args=(given,)))) == {f"argument 'x': {text}"}


def test_of_nothing_to_write_into_no_declaration_is_advised(twins):
    builder = ProgramBuilder("p", DeviceCode("cuda", "//"))
    x = builder.input("x", "float32", (4,))
    outs = [builder.output(name, "float32", (4,)) for name in ("y", "z")]
    builder.launch("k", (x, *outs), 1, 1)
    said = said_of(twins, builder, CallSpec(args=(tensor(4),), out=(tensor(4), None)))
    assert set(said) == {"argument 'z' (out[1]): got NoneType, expected a tensor"}


LAUNCHED = "the launch is of kernel 'scale<float>' with grid=(4, 1, 1), block=(16, 2, 1) (32 threads)"


def said_of_launch(backends, simulator, fault=None, entered=0, **said):
    """Return the texts of the errors of a launch that the driver refuses."""
    builder = ProgramBuilder("p", DeviceCode("cuda", "//"))
    t = builder.input("t", "float32", (Symbol("n"),))
    window = AccessPolicyWindow(t, hit_ratio=0.5) if said.pop("window", False) else None
    builder.launch("scale<float>", (t,), (4, 1, 1), (16, 2, 1), window=window, **said)
    texts = []
    with backends.loaded(builder.build()) as pair:
        for harness, loaded in pair.loaded:
            args = harness.arguments((tensor(4),))
            loaded.preload(0)
            planted = nullcontext() if fault is None else simulator.fault("cuLaunchKernelEx", fault)
            context = nullcontext() if entered is None else simulator.current(entered)
            stream = None if entered is not None else simulator.new_stream(0)
            with planted, context, pytest.raises((DriverError, DeviceRequirementError)) as caught:
                loaded.call(args, stream=stream)
            assert "cuLaunchKernelEx" in str(caught.value)
            assert getattr(caught.value, "code", fault) == int(fault or 1)
            texts.append(str(caught.value))
    return texts


@pytest.mark.parametrize("priority", [-500, 7])
def test_a_launch_that_the_device_refuses_says_with_what(with_sample, simulator, priority):
    texts = said_of_launch(with_sample, simulator, priority=priority, pdl=True)
    assert len(set(texts)) == 1, texts
    assert f"{LAUNCHED}, pdl=True, priority={priority}; " in texts[0]
    assert texts[0].endswith("the device takes priorities from -5 to 0")


def test_where_no_context_is_current_the_device_is_not_asked_for_its_priorities(with_sample, simulator):
    texts = said_of_launch(with_sample, simulator, Status.NOT_SUPPORTED, None, priority=-2)
    assert all(f"{LAUNCHED}, priority=-2" in text for text in texts), texts


def test_every_attribute_of_a_refused_launch_is_told(every_backend, simulator):
    said = {
        "cluster": (2, 1, 1),
        "preferred_cluster": (4, 1, 1),
        "cooperative": True,
        "carveout": 25,
        "scheduling_policy": "spread",
        "mem_sync_domain": "remote",
        "window": True,
    }
    texts = said_of_launch(every_backend, simulator, Status.LAUNCH_OUT_OF_RESOURCES, **said)
    assert len(set(texts)) == 1, texts
    told = ("cluster=(2, 1, 1)", "preferred_cluster=(4, 1, 1)", "cooperative=True", "carveout=25", "window")
    assert all(one in texts[0] for one in (*told, "scheduling_policy='spread'", "mem_sync_domain='remote'"))


def test_a_refused_launch_without_attributes_names_its_kernel_and_its_shape(with_sample, simulator):
    texts = said_of_launch(with_sample, simulator, Status.INVALID_VALUE)
    assert len(set(texts)) == 1, texts
    assert "(program.kernels[...].max_threads says)?" in texts[0]
    assert texts[0].endswith(LAUNCHED)


def test_a_refused_cluster_is_told_with_kernel_and_grid(with_sample, simulator):
    texts = said_of_launch(with_sample, simulator, Status.INVALID_CLUSTER_SIZE, cluster=(2, 1, 1))
    assert len(set(texts)) == 1, texts
    assert "(program.kernels[...].cluster says which)" in texts[0]
    assert texts[0].endswith(f"{LAUNCHED}, cluster=(2, 1, 1)")


def test_a_kernel_that_the_image_lacks_is_named(with_sample, simulator):
    builder = ProgramBuilder("p", DeviceCode("cuda", "//"))
    builder.launch("scale<float>", (builder.scalar("number", "int32"),), 1, 1)
    program, texts = builder.build(), []
    image = synthetic_image(program)
    lacking = replace(image, kernels=tuple(replace(one, symbol="_Z'5\tscale") for one in image.kernels))
    for harness in with_sample.harnesses:
        artifact = harness.built(program, lacking)
        with pytest.raises(DriverError) as caught:
            harness.load(artifact).close()
        assert (caught.value.call, caught.value.code_name) == ("cuLibraryGetKernel", "CUDA_ERROR_NOT_FOUND")
        texts.append(str(caught.value))
    assert len(set(texts)) == 1, texts
    assert "the image has no symbol of that name; the image is for sm_90a, device 0 is sm_90, " in texts[0]
    assert texts[0].endswith('; the kernel is "_Z\'5\\tscale"')


@pytest.mark.parametrize("said", [{"dynamic_smem_bytes": 64}, {"cluster": (16, 1, 1)}], ids=str)
def test_a_kernel_of_which_a_device_refuses_something_is_named_with_the_device(with_sample, simulator, said):
    builder = ProgramBuilder("p", DeviceCode("cuda", "//"))
    builder.launch("scale<float>", (builder.scalar("number", "int32"),), 16, 1, **said)
    texts = []
    with with_sample.loaded(builder.build()) as pair:
        for _, loaded in pair.loaded:
            planted = simulator.fault("cuKernelSetAttribute", Status.INVALID_HANDLE)
            with planted, pytest.raises(DriverError) as caught:
                loaded.preload(1)
            assert caught.value.call == "cuKernelSetAttribute"
            texts.append(str(caught.value))
    assert len(set(texts)) == 1, texts
    assert texts[0].endswith(f"; the kernel is '{kernel_symbol(0)}' on device 1")


@pytest.mark.parametrize("backend", ["nvrtc", "tvm_ffi"])
def test_a_device_without_tensor_maps_is_told_as_too_small(simulator, backend):
    code = DeviceCode(
        "cuda", 'struct alignas(64) Map { char bytes[128]; }; extern "C" __global__ void k(Map map) {}'
    )
    builder = ProgramBuilder("p", code)
    builder.launch("k", (builder.input("x", "float16", (64, 64)).tiled((64, 64)),), 2, 32)
    program = trunnion.compile(builder.build(), backend, target="compute_80")
    with simulator.configured(arch="sm_80"), pytest.raises(DeviceRequirementError) as caught:
        simulator.call(program, simulator.tensor(torch.zeros(64, 64, dtype=torch.float16), 0))
    assert str(caught.value) == (
        "needs compute capability 9.0 for a tensor map over 'x', got a device of compute capability 8.0; launch on a "
        "device that has it, or leave the map out"
    )


@pytest.mark.parametrize("version", [11000, 11080])
@pytest.mark.parametrize("backend", ["nvrtc", "tvm_ffi", "cutedsl"])
def test_a_driver_that_is_too_old_is_told_with_what_it_lacks(backend, version, forked_python):
    source = f"""
import trunnion
from trunnion import sim
from trunnion.model.builder import ProgramBuilder
from trunnion.model.code import DeviceCode
simulator = sim.start(arch="sm_90a", driver_version={version})
builder = ProgramBuilder("p", DeviceCode("cuda", 'extern "C" __global__ void k(int number) {{}}'))
builder.launch("k", (builder.scalar("number", "int32"),), 1, 1)
program = trunnion.compile(builder.build(), "{backend}", target="sm_90a")
try:
    program(1, device=0)
except trunnion.errors.DeviceRequirementError as error:
    print(error)
"""
    # The bindings keep for the whole process what they found in the first driver.
    done = forked_python(source, timeout=60)
    assert done.stdout.strip() == (
        f"needs a driver for CUDA 12.0 or later, with cuLibraryLoadData, got one for CUDA 11.{version % 1000 // 10}; "
        "update the driver"
    ), done.stderr


@pytest.mark.parametrize("backend", ["nvrtc", "tvm_ffi", "cutedsl"])
def test_an_image_for_another_device_names_both_architectures(simulator, backend):
    builder = ProgramBuilder("p", DeviceCode("cuda", 'extern "C" __global__ void k(int number) {}'))
    builder.launch("k", (builder.scalar("number", "int32"),), 1, 1)
    for target, kind in (("sm_100a", "cubin"), ("compute_120", "ptx")):
        if backend == "cutedsl" and kind == "ptx":
            continue
        program = trunnion.compile(builder.build(), backend, target=target)
        with pytest.raises(DriverError) as caught:
            simulator.call(program, 1, device=0)
        assert caught.value.code_name == "CUDA_ERROR_NO_BINARY_FOR_GPU"
        assert f"the image is for {target}, device 0 is sm_90" in str(caught.value)


@pytest.mark.parametrize(
    ("backend", "target"),
    [
        ("nvrtc", "sm_90a"),
        ("nvrtc", "compute_90"),
        ("tvm_ffi", "sm_90a"),
        ("tvm_ffi", "compute_90"),
        ("cutedsl", "sm_90a"),
    ],
)
@pytest.mark.parametrize(
    ("attribute", "said", "place", "problem"),
    [
        ("__launch_bounds__(128)", {"block": 129}, "block", "got 129 threads, .* at most 128"),
        ("__block_size__((64, 2, 1))", {"block": 128}, r"block\[0\]", "got 128, .* 64 threads"),
        (
            "__cluster_dims__(4)",
            {"block": 32, "cluster": 2},
            "cluster",
            r"got \(2, 1, 1\), .* of \(4, 1, 1\)",
        ),
        ("__cluster_dims__(4)", {"block": 32, "grid": 6}, r"grid\[0\]", "got 6 blocks, .* multiple of 4"),
    ],
)
def test_a_launch_that_its_kernel_was_not_compiled_for_is_refused_at_the_build(
    backend, attribute, said, place, problem, target
):
    builder = ProgramBuilder(
        "p", DeviceCode("cuda", f'extern "C" __global__ void {attribute} k(int number) {{}}')
    )
    builder.launch("k", (builder.scalar("number", "int32"),), **({"grid": 8} | said))
    with pytest.raises(ProgramError, match=rf"^launches\[0\]\.{place}: {problem}"):
        trunnion.compile(builder.build(), backend, target=target)


@pytest.mark.parametrize("backend", ["nvrtc", "tvm_ffi", "cutedsl"])
@pytest.mark.parametrize(
    ("attribute", "said", "error", "told"),
    [
        (
            "__launch_bounds__(128)",
            {"grid": 1, "block": N},
            DriverError,
            "threads than the kernel was compiled for",
        ),
        (
            "__cluster_dims__(2)",
            {"grid": N, "block": 32},
            DeviceRequirementError,
            "a grid that is a multiple of it",
        ),
    ],
)
def test_one_that_a_call_decides_is_refused_with_where_to_look(
    simulator, backend, attribute, said, error, told
):
    builder = ProgramBuilder(
        "p", DeviceCode("cuda", f'extern "C" __global__ void {attribute} k(int number) {{}}')
    )
    builder.launch("k", (builder.scalar("number", "int32", N),), **said)
    program = trunnion.compile(builder.build(), backend, target="sm_90a")
    simulator.call(program, 128, device=0)
    with pytest.raises(error, match=told) as caught:
        simulator.call(program, 129, device=0)
    assert re.search(
        r"program\.kernels\[\.\.\.\]\.\w+ says.* of kernel .k. with grid=\(\d+, 1, 1\), block=",
        str(caught.value),
    )


@pytest.mark.parametrize("backend", ["nvrtc", "tvm_ffi", "cutedsl"])
def test_a_target_without_clusters_and_tensor_maps_is_refused_at_the_build(backend):
    code = DeviceCode(
        "cuda", 'struct alignas(64) Map { char bytes[128]; }; extern "C" __global__ void k(Map map) {}'
    )
    for said, told in (({"cluster": 2}, r"cluster=\(2, 1, 1\)"), ({}, "a tensor map")):
        builder = ProgramBuilder("p", code)
        builder.launch("k", (builder.input("x", "float16", (64, 64)).tiled((64, 64)),), 2, 32, **said)
        with pytest.raises(
            DeviceRequirementError, match=f"^needs compute capability 9.0 for {told} .* sm_80, "
        ):
            trunnion.compile(builder.build(), backend, target="sm_80")


WRONG_CALLS = {
    "too few": lambda loaded, t: loaded.entry(),
    "bound with too few": lambda loaded, t: loaded.bind(()),
    "bound": lambda loaded, t: loaded.bind((3,)),
    "an unknown name": lambda loaded, t: loaded.entry(t, nobody=1),
    "a missing name": lambda loaded, t: loaded.entry(stream=0),
    "no device": lambda loaded, t: loaded.entry(t, device="nowhere"),
    "no stream": lambda loaded, t: loaded.entry(t, stream="x"),
}


@pytest.mark.parametrize("call", WRONG_CALLS)
def test_a_closed_program_says_so_before_anything_is_said_of_the_call(with_sample, call):
    builder = ProgramBuilder("p", DeviceCode("cuda", "//"))
    builder.launch("k", (builder.input("t", "float32", (4,)),), 1, 1)
    with with_sample.loaded(builder.build()) as pair:
        (t,) = pair.loaded[0][0].arguments((tensor(4),))
        for _, loaded in pair.loaded:
            with pytest.raises(TrunnionError) as caught:
                WRONG_CALLS[call](loaded, t)
            assert isinstance(caught.value, ArgumentError)
            entry = loaded.entry
            loaded.close()
            for ended in (loaded, SimpleNamespace(entry=entry, bind=loaded.bind)):
                with pytest.raises(LifecycleError, match="closed"):
                    WRONG_CALLS[call](ended, t)


@pytest.mark.parametrize("words", [{"device": "nowhere"}, {"stream": "x"}, {"out": 3}], ids=str)
def test_words_that_are_wrong_are_told_before_the_count_of_arguments(with_sample, words):
    builder = ProgramBuilder("p", DeviceCode("cuda", "//"))
    t = builder.input("t", "float32", (4,))
    builder.launch("k", (t, *(builder.output(name, "float32", (4,)) for name in "yz")), 1, 1)
    (word,) = words
    with with_sample.loaded(builder.build()) as pair:
        for _, loaded in pair.loaded:
            with pytest.raises(ArgumentTypeError) as caught:
                loaded.entry(**words)
            assert caught.value.argument == word
