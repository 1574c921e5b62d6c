"""Both examples on a GPU: numbers against torch, and what was launched read back from a graph."""

from __future__ import annotations

import importlib.util
import struct
import sys
import threading
from pathlib import Path

import pytest
import torch

import trunnion
from trunnion import errors, examples

pytestmark = pytest.mark.gpu


def _sibling(name: str):
    spec = importlib.util.spec_from_file_location(f"gpu_{name}", Path(__file__).with_name(f"{name}.py"))
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


readback = _sibling("readback")
cu = readback.cu


@pytest.fixture(scope="module", params=examples.EXAMPLES)
def compiled(request):
    example = examples.load(request.param)
    with trunnion.compile(example.program, backend="nvrtc") as program:
        yield example, program


def random(*shape, dtype=torch.float32):
    return torch.randn(*shape, device="cuda").to(dtype)


def error_of(example, got, want):
    assert not torch.isnan(got).any()
    return float((got - want).abs().max() / want.abs().max())


def test_numbers_match_torch(compiled):
    example, program = compiled
    for seed in range(5):
        args = example.inputs(torch.Generator().manual_seed(seed), "cuda:0")
        got = program(*args)
        torch.cuda.synchronize()
        assert error_of(example, got, example.reference(*args)) <= example.tolerance


@pytest.mark.parametrize("n", [1, 255, 256, 257, 1_000_003])
def test_vector_add_of_any_length(n):
    with trunnion.compile(examples.load("vector_add").program, backend="nvrtc") as program:
        a, b = random(n), random(n)
        assert torch.equal(program(a, b), a + b)
        out = torch.full((n,), float("nan"), device="cuda")
        assert program(a, b, out=out) is out
        assert torch.equal(out, a + b)


def test_an_empty_vector_launches_nothing():
    with trunnion.compile(examples.load("vector_add").program, backend="nvrtc") as program:
        empty, marker = torch.empty(0, device="cuda"), torch.zeros(1, device="cuda")
        program.preload(0)
        launches, _, result = readback.captured(lambda: (program(empty, empty), marker.add_(1))[0])
        assert len(launches) == 1  # the marker's: torch warns of a graph that holds nothing
        assert launches[0].symbol != "vector_add"
        assert result.shape == (0,)


@pytest.mark.parametrize(
    "shape", [(1, 1, 8), (300, 1, 72), (200, 328, 136), (129, 127, 584), (2048, 1024, 4096)]
)
def test_gemm_of_any_shape(shape):
    example = examples.load("hopper_gemm")
    m, n, k = shape
    with trunnion.compile(example.program, backend="nvrtc") as program:
        a, b = random(m, k, dtype=torch.float16), random(n, k, dtype=torch.float16)
        assert error_of(example, program(a, b), example.reference(a, b)) <= example.tolerance


def test_vector_add_read_back():
    with trunnion.compile(examples.load("vector_add").program, backend="nvrtc") as program:
        a, b = random(1000), random(1000)
        program.preload(0)
        (launch,), graph, c = readback.captured(lambda: program(a, b))
        assert launch.symbol == program.artifact.manifest.kernels[0].symbol == "vector_add"
        assert (launch.grid, launch.block, launch.dynamic_smem_bytes) == ((4, 1, 1), (256, 1, 1), 0)
        pointers = [struct.pack("<Q", t.data_ptr()) for t in (a, b, c)]
        assert list(launch.parameters) == [*pointers, struct.pack("<i", 1000)]
        graph.replay()
        assert torch.equal(c, a + b)


def test_gemm_read_back():
    m, n, k = 200, 328, 136
    with trunnion.compile(examples.load("hopper_gemm").program, backend="nvrtc") as program:
        a, b = random(m, k, dtype=torch.float16), random(n, k, dtype=torch.float16)
        program.preload(0)
        (launch,), graph, c = readback.captured(lambda: program(a, b))
        kernel = program.artifact.manifest.kernels[0]
        assert launch.symbol == kernel.symbol
        assert launch.offsets == tuple(p.offset for p in kernel.parameters)
        assert (launch.grid, launch.block, launch.dynamic_smem_bytes) == ((2, 3, 1), (288, 1, 1), 99328)
        assert launch.parameters[0] == encoded(a)
        assert launch.parameters[1] == encoded(b)
        assert launch.parameters[2:] == (
            struct.pack("<Q", c.data_ptr()),
            *(struct.pack("<i", v) for v in (m, n, k)),
        )
        graph.replay()
        assert error_of(examples.load("hopper_gemm"), c, examples.load("hopper_gemm").reference(a, b)) <= 1e-5


def encoded(tensor: torch.Tensor) -> bytes:
    """Encode the map that the example describes, here, by hand."""
    rows, columns = tensor.shape
    tensor_map = readback.ok(
        cu.cuTensorMapEncodeTiled(
            cu.CUtensorMapDataType.CU_TENSOR_MAP_DATA_TYPE_FLOAT16,
            2,
            tensor.data_ptr(),
            [cu.cuuint64_t(columns), cu.cuuint64_t(rows)],
            [cu.cuuint64_t(columns * 2)],
            [cu.cuuint32_t(64), cu.cuuint32_t(128)],
            [cu.cuuint32_t(1), cu.cuuint32_t(1)],
            cu.CUtensorMapInterleave.CU_TENSOR_MAP_INTERLEAVE_NONE,
            cu.CUtensorMapSwizzle.CU_TENSOR_MAP_SWIZZLE_128B,
            cu.CUtensorMapL2promotion.CU_TENSOR_MAP_L2_PROMOTION_L2_128B,
            cu.CUtensorMapFloatOOBfill.CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE,
        )
    )
    return b"".join(int(word).to_bytes(8, "little") for word in tensor_map.opaque)


def test_side_streams_and_threads():
    with trunnion.compile(examples.load("vector_add").program, backend="nvrtc") as program:
        failures = []

        def work(seed: int) -> None:
            generator = torch.Generator().manual_seed(seed)
            stream = torch.cuda.Stream()
            with torch.cuda.stream(stream):
                for _ in range(200):
                    a, b = (torch.randn(4096 + seed, generator=generator).cuda() for _ in range(2))
                    if not torch.equal(program(a, b), a + b):
                        failures.append(seed)

        threads = [threading.Thread(target=work, args=(seed,)) for seed in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert failures == []


def test_a_wrong_tensor_is_refused_and_named():
    with trunnion.compile(examples.load("vector_add").program, backend="nvrtc") as program:
        with pytest.raises(errors.ArgumentTypeError) as caught:
            program(random(8), random(8).half())
        assert caught.value.argument == "b"
        with pytest.raises(errors.ArgumentValueError) as caught:
            program(random(8), torch.randn(8))
        assert caught.value.argument == "b"


def test_closed():
    program = trunnion.compile(examples.load("vector_add").program, backend="nvrtc")
    a = random(8)
    entry = program.entry
    entry(a, a)
    program.close()
    program.close()
    with pytest.raises(errors.LifecycleError):
        program(a, a)
    with pytest.raises(errors.LifecycleError):
        entry(a, a)


@pytest.mark.skipif("torch.cuda.device_count() < 2", reason="needs two devices")
def test_two_devices():
    with trunnion.compile(examples.load("vector_add").program, backend="nvrtc") as program:
        for tensors, current in ((1, 0), (0, 1), (1, 1)):
            with torch.cuda.device(current):
                a, b = (torch.randn(5000, device=f"cuda:{tensors}") for _ in range(2))
                assert torch.equal(program(a, b), a + b)
                assert torch.cuda.current_device() == current
        results = []
        a = torch.randn(5000, device="cuda:1")
        thread = threading.Thread(target=lambda: results.append(program(a, a)))
        thread.start()
        thread.join()
        assert torch.equal(results[0], a + a)
        with pytest.raises(errors.ArgumentValueError):
            program(a, a.to("cuda:0"))


def test_static_and_dynamic_shared_memory_together():
    """40 KiB and 20 KiB: more than a kernel has without asking, though the dynamic part alone is not."""
    source = """
    extern "C" __global__ void sums(const float* x, float* y) {
      __shared__ float fixed[10240];
      extern __shared__ float given[];
      for (int i = threadIdx.x; i < 10240; i += blockDim.x) fixed[i] = x[0];
      for (int i = threadIdx.x; i < 5120; i += blockDim.x) given[i] = x[1];
      __syncthreads();
      if (threadIdx.x == 0) { y[0] = fixed[10239] + given[5119]; }
    }"""
    p = trunnion.ProgramBuilder("sums", trunnion.DeviceCode("cuda", source))
    x, y = p.input("x", "float32", (2,)), p.output("y", "float32", (1,))
    p.launch("sums", args=(x, y), grid=1, block=128, dynamic_smem_bytes=20 * 1024)
    with trunnion.compile(p.build(), backend="nvrtc") as program:
        assert program(torch.tensor([1.0, 2.0], device="cuda")).item() == 3.0


def test_an_explicit_stream_is_used_and_its_memory_is_its_own():
    with trunnion.compile(examples.load("vector_add").program, backend="nvrtc") as program:
        a, b = random(1_000_003), random(1_000_003)
        torch.cuda.synchronize()
        stream = torch.cuda.Stream()
        for handle in (stream, stream.cuda_stream):
            result = program(a, b, stream=handle)
            stream.synchronize()
            assert torch.equal(result, a + b)
