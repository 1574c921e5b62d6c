"""Launches on a GPU beyond the examples' own sizes: lengths, shapes, refusals, shared memory, explicit streams."""

from __future__ import annotations

import threading

import pytest
import torch

import trunnion
from trunnion import errors, examples

pytestmark = pytest.mark.gpu


def random(*shape, dtype=torch.float32):
    return torch.randn(*shape, device="cuda").to(dtype)


@pytest.mark.parametrize("n", [1, 255, 256, 257, 1_000_003])
def test_vector_add_of_any_length(build, n):
    with build(examples.load("vector_add").program) as program:
        a, b = random(n), random(n)
        assert torch.equal(program(a, b), a + b)
        out = torch.full((n,), float("nan"), device="cuda")
        assert program(a, b, out=out) is out
        assert torch.equal(out, a + b)


@pytest.mark.parametrize(
    "shape", [(1, 1, 8), (300, 1, 72), (200, 328, 136), (129, 127, 584), (2048, 1024, 4096)]
)
def test_gemm_of_any_shape(build, shape):
    example = examples.load("hopper_gemm")
    m, n, k = shape
    with build(example.program) as program:
        args = random(m, k, dtype=torch.float16), random(n, k, dtype=torch.float16)
        assert example.largest_error(program(*args), args) <= example.tolerance


@pytest.mark.parametrize("shape", [(4, 28, 28, 128, 256), (7, 3, 50, 24, 65), (1, 200, 1, 8, 3)])
def test_convolution_of_any_shape(build, shape):
    example = examples.load("im2col_conv")
    *images, c, k = shape
    with build(example.program) as program:
        args = random(*images, c, dtype=torch.float16), random(k, 3, 3, c, dtype=torch.float16)
        assert example.largest_error(program(*args), args) <= example.tolerance


@pytest.mark.parametrize("name", ["cluster_norm", "cluster_norm_16"])
def test_rows_of_any_length(build, name):
    example = examples.load(name)
    with build(example.program) as program:
        for shape in ((1000, 300), (3, 1_000_003), (65535, 1)):
            args = (random(*shape) * 5 - 3, 1e-5)
            assert example.largest_error(program(*args), args) <= example.tolerance


def test_a_wrong_tensor_is_refused_and_named(build):
    with build(examples.load("vector_add").program) as program:
        with pytest.raises(errors.ArgumentTypeError) as caught:
            program(random(8), random(8).half())
        assert caught.value.argument == "b"
        with pytest.raises(errors.ArgumentValueError) as caught:
            program(random(8), torch.randn(8))
        assert caught.value.argument == "b"


def test_static_and_dynamic_shared_memory_together(build):
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
    with build(p.build()) as program:
        assert program(torch.tensor([1.0, 2.0], device="cuda")).item() == 3.0


def test_the_barrier_of_cooperative_groups(build):
    """The toolkit's own header, and its barrier, which finds no workspace unless the launch is cooperative."""
    source = """
    #include <cooperative_groups.h>
    extern "C" __global__ void turn(const int* x, int* y) {
      const auto grid = cooperative_groups::this_grid();
      y[blockIdx.x] = x[blockIdx.x];
      grid.sync();
      const int next = y[(blockIdx.x + 1) % gridDim.x];
      grid.sync();
      y[blockIdx.x] = next;
    }"""
    p = trunnion.ProgramBuilder("turn", trunnion.DeviceCode("cuda", source))
    x, y = p.input("x", "int32", (128,)), p.output("y", "int32", (128,))
    p.launch("turn", args=(x, y), grid=128, block=1, cooperative=True)
    with build(p.build()) as program:
        for _ in range(20):
            given = torch.randint(1 << 30, (128,), device="cuda", dtype=torch.int32)
            assert torch.equal(program(given), given.roll(-1))


def test_an_explicit_stream_is_used_and_its_memory_is_its_own(build):
    with build(examples.load("vector_add").program) as program:
        a, b = random(1_000_003), random(1_000_003)
        torch.cuda.synchronize()
        stream = torch.cuda.Stream()
        for handle in (stream, stream.cuda_stream):
            result = program(a, b, stream=handle)
            stream.synchronize()
            assert torch.equal(result, a + b)


@pytest.mark.parametrize("stream", [0, 1, 2])
@pytest.mark.parametrize("beside", [False, True], ids=["on the default stream", "on a stream of torch's"])
def test_the_drivers_own_streams_allocate_and_are_in_order_with_the_default_one(build, stream, beside):
    """What torch's default stream does before and after a call on 0, 1 or 2 needs no other synchronisation."""
    n = 5_000_011
    with build(examples.load("vector_add").program) as program:
        a, b = torch.zeros(n, device="cuda"), random(n)
        torch.cuda.synchronize()
        side = torch.cuda.Stream()
        for step in range(30):
            a.fill_(step)
            if beside:
                with torch.cuda.stream(side):
                    result = program(a, b, stream=stream)
            else:
                result = program(a, b, stream=stream)
            assert torch.equal(result, b + step)
            del result


def test_threads_on_their_own_streams_do_not_share_memory_in_use(build):
    """Workspaces go back to the allocator at once; another thread's per-thread stream must not be given them."""
    example = examples.load("split_k")
    with build(example.program) as program:
        rows = [example.inputs(torch.Generator().manual_seed(seed), "cuda") for seed in range(4)]
        program.preload(0)
        torch.cuda.synchronize()
        failed = []

        def work(args):
            for _ in range(50):
                result = program(*args, stream=2)
                if not example.largest_error(result, args) <= example.tolerance:
                    failed.append(args)

        threads = [threading.Thread(target=work, args=(args,)) for args in rows]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert not failed
