"""The drop-in: kernels are made, called and tuned as TileLang's are, and launched by trunnion, here simulated."""

from __future__ import annotations

import sys

import pytest
import tilelang
import tilelang.language as T
import torch
from tilelang.autotuner import AutoTuner, autotune, set_autotune_inputs
from tilelang.jit import JITImpl
from tilelang.jit.kernel import JITKernel
from tilelang.profiler import Profiler

import trunnion
from trunnion.errors import ArgumentTypeError, ArgumentValueError, ProgramError
from trunnion_tilelang import from_jit, jit


@jit(out_idx=[-1], target="sm_90a")
def add(n, block=128):
    @T.prim_func
    def added(A: T.Tensor((n,), "float32"), B: T.Tensor((n,), "float32"), C: T.Tensor((n,), "float32")):
        with T.Kernel(T.ceildiv(n, block), threads=128) as bx:
            for i in T.Parallel(block):
                C[bx * block + i] = A[bx * block + i] + B[bx * block + i]

    return added


@jit(target="sm_90a")
def doubled(A, block: int = 128):
    n = T.const("n")
    A: T.Tensor[[n], T.float32]
    B = T.empty((n,), "float32")
    with T.Kernel(T.ceildiv(n, block), threads=128) as bx:
        for i in T.Parallel(block):
            B[bx * block + i] = A[bx * block + i] * 2
    return B


def moved(outputs, **more):
    """A kernel whose every parameter but the outputs is an input."""

    @jit(out_idx=outputs, target="sm_90a", **more)
    def made():
        @T.prim_func
        def both(
            A: T.Tensor((128,), "float32"), B: T.Tensor((128,), "float32"), C: T.Tensor((128,), "float32")
        ):
            with T.Kernel(1, threads=128):
                for i in T.Parallel(128):
                    B[i] = A[i] + 1
                    C[i] = A[i] + 2

        return both

    return made()


def numbers(n):
    return torch.arange(float(n), device="cuda")


@pytest.fixture
def cuda(simulator):
    """The simulator, with bodies for the kernels of this file, and tensors made on it."""

    def vectors(call, *order):
        length = call.grid[0] * 128
        return [call.memory.view(call.pointer(i), "float32", (length,)) for i in order]

    def added(call):
        a, b, c = vectors(call, 0, 1, 2)
        c.copy_(a + b)

    def doubling(call):
        a, b = vectors(call, 0, 1)
        b.copy_(a * 2)

    def both(call):
        a, b, c = vectors(call, 0, 1, 2)
        b.copy_(a + 1)
        c.copy_(a + 2)

    def filled(call):
        (a,) = vectors(call, 0)
        a.fill_(call.scalar(1, "int32"))

    bodies = {"added_kernel": added, "doubled_kernel": doubling, "both_kernel": both, "filled_kernel": filled}
    for name, body in bodies.items():
        simulator.register_body(name, body)
    with simulator.torch_mode():
        yield simulator


# Calls ------------------------------------------------------------------------------------------------------------


def test_a_kernel_is_tilelang_s_and_returns_the_output(cuda):
    kernel = add(256)
    assert isinstance(add, JITImpl)
    assert isinstance(kernel, JITKernel)
    given = numbers(256)
    assert torch.equal(kernel(given, given), given * 2)
    assert kernel.out_idx == [2]


def test_one_kernel_is_made_for_each_set_of_arguments():
    assert add(256) is add(256)
    assert add(n=256) is not add(512)


def test_an_input_may_have_any_name(cuda):
    def summed(call):  # the kernel's own order is that of the names
        args, named, this = (call.memory.view(call.pointer(i), "float32", (128,)) for i in range(3))
        named.copy_(args + this)

    @jit(out_idx=[-1], target="sm_90a")
    def made():
        @T.prim_func
        def added(
            self: T.Tensor((128,), "float32"),
            args: T.Tensor((128,), "float32"),
            named: T.Tensor((128,), "float32"),
        ):
            with T.Kernel(1, threads=128):
                for i in T.Parallel(128):
                    named[i] = self[i] + args[i]

        return added

    given = numbers(128)
    cuda.unregister_body("added_kernel")
    cuda.register_body("added_kernel", summed)
    assert torch.equal(made()(self=given, args=given), given * 2)


def test_a_function_that_is_the_kernel_is_launched_at_once(cuda):
    given = numbers(384)
    assert torch.equal(doubled(given), given * 2)
    assert torch.equal(doubled(given, block=128), given * 2)


@pytest.mark.parametrize(
    ("outputs", "expected"), [([1, 2], (1, 2)), ([2, 1], (2, 1)), ([-1, -2], (2, 1))], ids=str
)
def test_several_outputs_are_a_list_in_the_order_that_is_said(cuda, outputs, expected):
    given = numbers(128)
    results = moved(outputs)(given)
    assert isinstance(results, list)
    for result, more in zip(results, expected, strict=True):
        assert torch.equal(result, given + more)


def test_no_output_is_an_empty_list(cuda):
    a, b, c = numbers(128), torch.zeros(128, device="cuda"), torch.zeros(128, device="cuda")
    assert moved(None)(a, b, c) == []
    assert torch.equal(c, a + 2)


def test_inputs_may_be_named(cuda):
    kernel, a, b = add(256), numbers(256), torch.ones(256, device="cuda")
    assert torch.equal(kernel(B=b, A=a), a + 1)
    assert torch.equal(kernel(a, B=b, stream=0), a + 1)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda k, a: k(a), "got 1 arguments, expected 2"),
        (lambda k, a: k(a, a, a), "got 3 arguments, expected 2"),
        (lambda k, a: k(A=a), "got 1 arguments without 'B', expected 2"),
        (lambda k, a: k(a, a, a, stream=0), "got 3 arguments, expected 2"),
        (
            lambda k, a: k(a, a, A=a),
            "argument 'A': got it by position and by name, expected each of A, B once",
        ),
        (lambda k, a: k(a, C=a), "argument 'C': got it by name, expected each of A, B once"),
    ],
)
def test_arguments_that_do_not_fit_are_refused(cuda, call, message):
    with pytest.raises(ArgumentTypeError) as caught:
        call(add(256), numbers(256))
    assert str(caught.value).startswith(message)


def test_every_call_is_checked(cuda):
    with pytest.raises(
        ArgumentValueError, match="argument 'B': got extent 128 along dimension 0, expected 256"
    ):
        add(256)(numbers(256), numbers(128))


def test_a_kernel_without_tensors_runs_on_the_current_device(cuda):
    @jit(out_idx=0, target="sm_90a")
    def fill():
        @T.prim_func
        def filled(A: T.Tensor((128,), "int32"), value: T.int32):
            with T.Kernel(1, threads=128):
                for i in T.Parallel(128):
                    A[i] = value

        return filled

    cuda.register_body(
        "filled_kernel", lambda call: call.memory.view(call.pointer(0), "int32", (128,)).fill_(7)
    )
    result = fill()(7)
    assert (result.device, result.tolist()) == (torch.device("cuda", 0), [7] * 128)


def test_without_a_target_it_is_made_for_the_one_whose_context_this_is(cuda):
    @jit
    def bare(n):
        @T.prim_func
        def doubled(A: T.Tensor((n,), "float32"), B: T.Tensor((n,), "float32")):
            with T.Kernel(T.ceildiv(n, 128), threads=128) as bx:
                for i in T.Parallel(128):
                    B[bx * 128 + i] = A[bx * 128 + i] * 2

        return doubled

    with tilelang.tvm.target.Target({"kind": "cuda", "arch": "sm_90"}):
        kernel = bare(128)
    assert str(kernel.compiled.target) == "cuda:sm_90"
    given, result = numbers(128), torch.zeros(128, device="cuda")
    assert kernel(given, result) == []
    assert torch.equal(result, given * 2)


# What is behind it --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("backend", ["nvrtc", "tvm_ffi", "cutedsl"])
def test_any_backend_launches(cuda, backend):
    kernel = moved([1], backend=backend)
    given = numbers(128)
    assert kernel.compiled.backend == backend
    assert torch.equal(kernel(given, numbers(128)), given + 1)


def test_settings_reach_the_compiler(tmp_path):
    @jit(
        target="sm_90a",
        backend="nvrtc",
        options={"nvrtc": {"lineinfo": True}},
        cache=tmp_path,
        compile_flags="-DX=2",
    )
    def made():
        return add.get_tir(128)

    kernel = made()
    assert kernel.compiled.program.code[0].defines == (("X", "2"),)
    assert list(tmp_path.iterdir())
    assert made.get_kernel_source() == kernel.get_kernel_source()


@pytest.mark.parametrize("choice", [{"execution_backend": "cython"}, {"target_host": "c"}], ids=str)
def test_tilelang_s_own_launchers_are_refused(choice):
    with pytest.raises(
        ProgramError, match="one of TileLang's own launchers; backend= chooses among trunnion's"
    ):
        jit(lambda: None, **choice)


def test_its_sources_can_be_read(capsys, tmp_path):
    kernel = add(256)
    assert "added_kernel(" in kernel.get_kernel_source()
    assert kernel.get_host_source() in kernel.get_kernel_source(kernel_only=False)
    kernel.show_source("both")
    assert kernel.get_kernel_source() in capsys.readouterr().out
    assert "def added" in kernel.prim_func.script()


def test_what_was_built_is_saved_and_loaded_without_tilelang(cuda, tmp_path):
    add(256).export_library(str(tmp_path / "add"))
    given = numbers(256)
    assert torch.equal(trunnion.load(tmp_path / "add")(given, given), given * 2)


def test_sources_are_written_for_debugging(tmp_path):
    kernel = moved([1, 2], debug_root_path=str(tmp_path))
    files = {path.name: path.read_text() for path in tmp_path.iterdir()}
    assert files["tilelang_jit_kernel_made.c"] == kernel.get_kernel_source()
    assert "def both" in files["tilelang_jit_program_made.py"]


def test_several_are_compiled_at_once():
    kernels = add.par_compile([(128,), {"n": 256, "block": 128}], num_workers=2)
    assert [kernel.compiled.program.launches[0].grid[0].value for kernel in kernels] == [1, 2]


def test_one_that_cannot_be_made_is_left_out_if_it_may_be(caplog):
    broken = jit(target="sm_90a", out_idx=[9])(add.func.orig_func)
    with pytest.raises(ProgramError, match="out_idx"):
        broken.par_compile([(128,)])
    assert broken.par_compile([(128,)], ignore_error=True) == [None]
    assert "a configuration was left out" in caplog.text


def test_a_jit_object_of_ours_is_one_to_import():
    program = from_jit(add, 256)
    assert [param.name for param in program.signature.outputs] == ["C"]


@pytest.mark.parametrize("module", ["tilelang", "tilelang.jit"])
def test_the_decorator_may_be_put_in_tilelang_s_place(cuda, monkeypatch, module):
    """As people do who switch a program by hand; it called itself until nothing was left of the stack."""
    monkeypatch.setattr(sys.modules[module], "jit", jit)
    kernel = jit(out_idx=[-1], target="sm_90a")(add.func.orig_func)(256)
    assert isinstance(kernel, type(add(256)))


# Tuning -------------------------------------------------------------------------------------------------------------


@pytest.fixture
def timed(cuda, monkeypatch, tmp_path):
    """Instead of a GPU's time: a launch takes as many milliseconds as it has blocks. TileLang keeps all in a folder."""
    seen, given = [], (numbers(1024), numbers(1024))

    def do_bench(self, *args, **named):
        self.adapter(*given)
        blocks = self.adapter._kernel.compiled.program.launches[0].grid[0].value
        seen.append(blocks)
        return float(blocks)

    monkeypatch.setattr(Profiler, "do_bench", do_bench)
    monkeypatch.setattr(AutoTuner, "_memory_cache", {})
    monkeypatch.setenv("TILELANG_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    return seen


def tuned():
    @autotune(configs=[{"block": 128}, {"block": 256}, {"block": 512}], warmup=1, rep=1, timeout=0)
    @jit(out_idx=[-1], target="sm_90a")
    def tuned_add(n, block=128):
        @T.prim_func
        def added(A: T.Tensor((n,), "float32"), B: T.Tensor((n,), "float32"), C: T.Tensor((n,), "float32")):
            with T.Kernel(T.ceildiv(n, block), threads=128) as bx:
                for i in T.Parallel(block):
                    C[bx * block + i] = A[bx * block + i] + B[bx * block + i]

        return added

    return tuned_add


def sums(call):
    a, b, c = (call.memory.view(call.pointer(i), "float32", (1024,)) for i in range(3))
    c.copy_(a + b)


def test_tilelang_s_autotuner_finds_the_best_configuration(cuda, timed):
    cuda.register_body("added_kernel", sums)
    given = numbers(1024)
    with set_autotune_inputs(given, given):
        kernel = tuned()(1024)
    assert sorted(timed) == [2, 4, 8]
    assert kernel.get_tuner_result() == {"latency": 2.0, "config": {"block": 512}, "ref_latency": None}
    assert isinstance(kernel, type(add(128)))
    assert torch.equal(kernel(given, given), given * 2)


def test_what_is_tuned_is_found_again_and_what_others_tuned_is_not(cuda, timed, tmp_path):
    """TileLang keeps what it tuned in folders, and would give back a kernel that it launches itself."""
    cuda.register_body("added_kernel", sums)
    assert tuned()(1024).config == tuned()(1024).config == {"block": 512}
    assert len(timed) == 3
    assert list((tmp_path / "cache").rglob("best_config.json"))
    AutoTuner._memory_cache.clear()
    assert isinstance(tuned()(1024), type(add(128)))

    def key(made):
        return (
            autotune(configs=[{}])(made(tuned().jit_impl.func.orig_func))
            .get_tunner()
            .generate_cache_key({}, {})
        )

    ours, same, other = (jit(target="sm_90a", backend=name) for name in ("auto", "auto", "nvrtc"))
    theirs = tilelang.jit(target={"kind": "cuda", "arch": "sm_90a"})
    assert key(ours) == key(same)
    assert len({key(ours), key(other), key(theirs)}) == 3
