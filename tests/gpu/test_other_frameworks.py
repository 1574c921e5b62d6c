"""Arrays of JAX, CuPy and NumPy on a machine with a GPU: values, and the stream on which a program is launched.

A stream is told apart by holding it back: nothing that was launched on it has happened until it is let go.
"""

from __future__ import annotations

import contextlib
import threading
import time
from functools import partial

import pytest
import torch
from gpu_reading.stalls import stalled

import trunnion
from trunnion import DeviceCode, ProgramBuilder, ceildiv, symbols
from trunnion.errors import ArgumentValueError

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.filterwarnings("ignore"),  # of libraries that are not ours
]

CODE = """
extern "C" __global__ void weigh(const float* x, float k, const float* b, float* y, long long n) {
  const long long i = blockIdx.x * 256ll + threadIdx.x;
  if (i < n) y[i] = k * x[i] + (b == nullptr ? 0 : b[i]);
}
extern "C" __global__ void stretch(const float* x, float k, float* w, long long n) {
  const long long i = blockIdx.x * 256ll + threadIdx.x;
  if (i < n) w[i] = k * x[i];
}
extern "C" __global__ void mirror(const float* w, float* y, long long n) {
  const long long i = blockIdx.x * 256ll + threadIdx.x;
  if (i < n) y[i] = w[i] + w[n - 1 - i];
}
"""
CODE_OF_CPU = """
#include <trunnion/block.h>
void weigh(const float* x, float k, const float* b, float* y, int64_t n, const trunnion_block_t*) {
  for (int64_t i = 0; i < n; ++i) y[i] = k * x[i] + (b == nullptr ? 0 : b[i]);
}
"""
SOME_TIME = 0.3  # seconds: a launch that waits for nothing has happened by then
AT_MOST = 50.0  # seconds until something is enqueued


def weighed(code):
    """y = k * x + b: a number between two tensors, one of which may be left out; no workspace."""
    (n,) = symbols("n")
    p = ProgramBuilder("weighed", code)
    x, k = p.input("x", "float32", (n,)), p.scalar("k", "float32")
    b, y = p.input("b", "float32", (n,), nullable=True), p.output("y", "float32", (n,))
    p.launch("weigh", args=(x, k, b, y, n), grid=ceildiv(n, 256), block=256)
    return p.build()


def mirrored():
    """y = k * x + k * x backwards, by way of a workspace."""
    (n,) = symbols("n")
    p = ProgramBuilder("mirrored", DeviceCode("cuda", CODE))
    x, k = p.input("x", "float32", (n,)), p.scalar("k", "float32")
    w, y = p.workspace("w", "float32", (n,)), p.output("y", "float32", (n,))
    p.launch("stretch", args=(x, k, w, n), grid=ceildiv(n, 256), block=256)
    p.launch("mirror", args=(w, y, n), grid=ceildiv(n, 256), block=256)
    return p.build()


@pytest.fixture(scope="module")
def weigh():
    """The program for the GPU."""
    with trunnion.compile(weighed(DeviceCode("cuda", CODE)), "tvm_ffi") as program:
        yield program


def library(program, folder):
    """Save a program; return the path of its launcher, which is a TVM-FFI module."""
    program.artifact.save(folder)
    return folder / "launcher.so"


# CuPy ----------------------------------------------------------------------------------------------------------


@pytest.fixture(params=["the module itself", "from_module"])
def call_of_cupy(request, weigh, tmp_path):
    """Return ``call(x, k, b, out, stream)``."""
    import tvm_ffi

    from trunnion_tvm_ffi import from_module

    path = library(weigh, tmp_path / "weigh")
    if request.param == "from_module":
        checked = from_module(path, "main_out", weigh.program.signature)
        return lambda x, k, b, out, stream: checked(x, k, b, out=out, stream=stream)
    main_out, dlpack = tvm_ffi.load_module(str(path)).main_out, tvm_ffi.from_dlpack

    def plain(x, k, b, out, stream):
        main_out(dlpack(x), k, None if b is None else dlpack(b), dlpack(out), stream.ptr)

    return plain


@pytest.mark.parametrize("count", [1, 257, 1_000_003])
def test_arrays_of_cupy_on_a_stream_of_cupy(call_of_cupy, count):
    import cupy
    import numpy as np

    stream, other = (cupy.cuda.Stream(non_blocking=True) for _ in range(2))
    with stream:
        x, b = (cupy.asarray(np.random.default_rng(seed).random(count, dtype=np.float32)) for seed in (1, 2))
        out = cupy.full(count, -1, dtype=cupy.float32)
    for bias in (b, None):  # which loads everything before something is held back
        with stream:
            x += 1
        call_of_cupy(x, 2.5, bias, out, stream)
        want = 2.5 * x.get(stream=stream) + (0 if bias is None else b.get(stream=stream))
        assert abs(out.get(stream=stream) - want).max() <= 1e-6
    with stream:
        out.fill(-1)
    stream.synchronize()
    with stalled(torch.cuda.ExternalStream(stream.ptr)):
        with stream:
            x += 1
        call_of_cupy(x, 3.0, None, out, stream)
        time.sleep(SOME_TIME)
        assert not stream.done
        assert (out.get(stream=other) == -1).all()
    assert (
        abs(out.get(stream=other) - 3 * x.get(stream=other)).max() <= 1e-6
    )  # stalled waited for the stream alone


def test_a_launch_on_another_stream_would_have_been_seen(weigh, tmp_path):
    import cupy
    import tvm_ffi

    main_out = tvm_ffi.load_module(str(library(weigh, tmp_path / "weigh"))).main_out
    held, other = (cupy.cuda.Stream(non_blocking=True) for _ in range(2))
    x, out = (cupy.full(1000, value, dtype=cupy.float32) for value in (1, -1))
    call = partial(main_out, tvm_ffi.from_dlpack(x), 2.0, None, tvm_ffi.from_dlpack(out))
    call(other.ptr)
    other.synchronize()
    out.fill(-1)
    cupy.cuda.runtime.deviceSynchronize()
    with stalled(torch.cuda.ExternalStream(held.ptr)):
        call(other.ptr)
        assert (out.get(stream=other) == 2).all()


def test_cupy_without_a_stream_is_refused(weigh, tmp_path):
    import cupy

    from trunnion_tvm_ffi import from_module

    checked = from_module(library(weigh, tmp_path / "weigh"), "main_out", weigh.program.signature)
    x = cupy.zeros(3, dtype=cupy.float32)
    with pytest.raises(ArgumentValueError, match="a stream: that library does not tell"):
        checked(x, 1.0, None, out=x.copy())


# NumPy ---------------------------------------------------------------------------------------------------------


def test_arrays_of_numpy_and_a_program_for_the_cpu(tmp_path):
    import numpy as np
    import tvm_ffi

    from trunnion_tvm_ffi import from_module

    program = trunnion.compile(weighed(DeviceCode("c++", CODE_OF_CPU)))
    path = library(program, tmp_path / "weigh")
    checked = from_module(path, "main_out", program.program.signature)
    main_out = tvm_ffi.load_module(str(path)).main_out
    for count in (0, 1, 1000):
        x, b = (np.random.default_rng(seed).random(count, dtype=np.float32) for seed in (1, 2))
        outs = [np.full(count, -1, np.float32) for _ in range(2)]
        assert checked(x, 2.0, b, out=outs[0]) is outs[0]
        main_out(*(one if type(one) is float else tvm_ffi.from_dlpack(one) for one in (x, 2.0, b, outs[1])))
        for out in outs:
            assert np.allclose(out, 2 * x + b)
    with pytest.raises(
        ArgumentValueError, match="argument 'b': got extent 2 along dimension 0, expected 1000"
    ):
        checked(x, 2.0, b[:2], out=outs[0])


# JAX -----------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def jax():
    """The module, which leaves memory to torch and CuPy."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
        import jax

        assert jax.default_backend() == "gpu"
        yield jax


@pytest.fixture(scope="module")
def mirror(jax):
    """Its launcher is called by XLA itself, with a workspace."""
    return trunnion.jax_call(trunnion.compile(mirrored(), "tvm_ffi"))


def drawn(jax, *shape, seed=0):
    return jax.random.normal(jax.random.key(seed), shape, dtype="float32")


def test_jax_calls_a_program_with_a_workspace_in_what_it_compiles(jax, mirror):
    model = jax.jit(lambda x, k: mirror(x + 1, k) * 3, static_argnums=1)
    for count, k in ((1000, 2.0), (1_000_003, -0.5), (1000, 3.0), (1, 2.0), (1000, 2.0)):
        x = drawn(jax, count, seed=count)
        want = 3 * k * ((x + 1) + (x + 1)[::-1])
        assert jax.numpy.allclose(model(x, k), want, rtol=1e-5, atol=1e-5)


def test_arrays_of_jax_without_elements(jax, mirror):
    assert jax.jit(lambda x: mirror(x, 2.0))(drawn(jax, 0)).shape == (0,)


def test_jax_calls_it_outside_of_what_it_compiles_and_member_by_member(jax, mirror):
    x = drawn(jax, 3, 1000)
    want = 2 * (x + x[:, ::-1])
    assert jax.numpy.allclose(mirror(x[1], 2.0), want[1], rtol=1e-5, atol=1e-5)
    assert jax.numpy.allclose(jax.jit(jax.vmap(lambda x: mirror(x, 2.0)))(x), want, rtol=1e-5, atol=1e-5)


def test_jax_calls_it_by_way_of_python_where_arguments_are_put_in_order(jax, weigh):
    call, x, b = trunnion.jax_call(weigh), drawn(jax, 5000), drawn(jax, 5000, seed=1)
    assert jax.numpy.allclose(jax.jit(lambda x, b: call(x, 2.5, b))(x, b), 2.5 * x + b, rtol=1e-5, atol=1e-5)
    assert jax.numpy.array_equal(jax.jit(lambda x: call(x, 2.0, None))(x), 2 * x)


def test_a_program_for_the_cpu_is_called_where_jax_has_a_gpu_too(jax):
    call = trunnion.jax_call(trunnion.compile(weighed(DeviceCode("c++", CODE_OF_CPU))))
    with jax.default_device(jax.devices("cpu")[0]):
        x = drawn(jax, 1000)
        assert jax.numpy.array_equal(jax.jit(lambda x: call(x, 2.0, None))(x), 2 * x)


@pytest.mark.parametrize("own", [False, True], ids=["the default stream", "a stream of its own"])
def test_what_torch_calls_afterwards_is_on_the_stream_of_torch(jax, mirror, weigh, own):
    """Nothing says that whoever told XLA's stream took it back."""
    mirror(drawn(jax, 1000), 2.0).block_until_ready()
    stream, other = torch.cuda.Stream() if own else torch.cuda.default_stream(), torch.cuda.Stream()
    x = torch.ones(1000, device="cuda")
    out = weigh(x, 3.0, None)
    out.fill_(-1)
    torch.cuda.synchronize()
    with stalled(stream), torch.cuda.stream(stream):
        weigh(x, 2.0, None, out=out)
        time.sleep(SOME_TIME)
        with torch.cuda.stream(other):
            assert (out.cpu() == -1).all()
    assert (out == 2).all()


class Held:
    """A model whose stream is held back before the call that is looked at.

    Parameters
    ----------
    jax
        The module.
    copy
        ``copy(x, out, stream)`` launches a copy.
    call
        What is called behind it.
    """

    def __init__(self, jax, copy, call):
        self._copy, self._stack = copy, None
        self._enqueued = threading.Event()
        before, after = (self._target(jax, function) for function in (self._before, self._after))
        self._model = jax.jit(lambda x: after(call(before(x) + 1)) * 3)

    @staticmethod
    def _target(jax, function):
        import jax_tvm_ffi
        import tvm_ffi

        name = f"trunnion_tests.{jax_tvm_ffi.registered_count()}"
        converted = tvm_ffi.convert(function)
        jax_tvm_ffi.register_ffi_target(name, converted, ["args", "rets", "ctx.stream"], platform="gpu")
        return lambda x: jax.ffi.ffi_call(name, jax.ShapeDtypeStruct(x.shape, x.dtype))(x)

    def _before(self, x, out, stream):
        self._copy(x, out, stream)
        if self._stack is not None:
            self.stream = torch.cuda.ExternalStream(stream)
            self._stack.enter_context(stalled(self.stream))

    def _after(self, x, out, stream):
        self._copy(x, out, stream)
        self._enqueued.set()

    def __call__(self, first, x):
        """Return what the model makes of ``x``; of ``first`` it makes something before anything is held back."""
        self._model(first).block_until_ready()
        self._enqueued.clear()
        with contextlib.ExitStack() as self._stack:
            result = self._model(x)
            assert self._enqueued.wait(AT_MOST)
            time.sleep(SOME_TIME)
            assert not self.stream.query()
        return result.block_until_ready()


@pytest.mark.parametrize("way", ["XLA", "Python", "another stream"])
def test_a_program_is_launched_on_the_stream_of_xla(jax, weigh, mirror, tmp_path, way):
    import tvm_ffi

    main_out = tvm_ffi.load_module(str(library(weigh, tmp_path / "weigh"))).main_out
    other, through = torch.cuda.Stream(), trunnion.jax_call(weigh)
    elsewhere = Held._target(jax, lambda x, out, _: main_out(x, 2.0, None, out, other.cuda_stream))
    call, factor = {
        "XLA": (lambda x: mirror(x, 2.0), lambda x: 2 * (x + x[::-1])),
        "Python": (lambda x: through(x, 2.0, None), lambda x: 2 * x),
        "another stream": (elsewhere, lambda x: 2 * x),
    }[way]
    held = Held(jax, lambda x, out, stream: main_out(x, 1.0, None, out, stream), call)
    first, x = (drawn(jax, 100_003, seed=seed).block_until_ready() for seed in (1, 2))
    right = jax.numpy.allclose(held(first, x), 3 * factor(x + 1), rtol=1e-5, atol=1e-5)
    assert bool(right) is (way != "another stream")
