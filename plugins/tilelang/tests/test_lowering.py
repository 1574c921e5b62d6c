"""TileLang's functions are lowered here, for a target or a context, with their own settings and the caller's."""

from __future__ import annotations

import pytest
import tilelang
import tilelang.language as T
from tilelang import tvm

import trunnion
from trunnion.contract.spec import Target
from trunnion.errors import ProgramError
from trunnion.model.expr_text import format_expr
from trunnion_tilelang import from_artifact, from_jit, from_prim_func
from trunnion_tilelang.lowering import TUNED_FOR, lower


@T.prim_func
def double(A: T.Tensor((256,), "float32"), B: T.Tensor((256,), "float32")):
    with T.Kernel(2, threads=128) as bx:
        for i in T.Parallel(128):
            B[bx * 128 + i] = A[bx * 128 + i] * 2


@tilelang.jit(out_idx=[-1], target={"kind": "cuda", "arch": "sm_80"}, compile_flags=["-lineinfo"])
def scale(n, factor=3):
    @T.prim_func
    def scaled(A: T.Tensor((n,), "float32"), B: T.Tensor((n,), "float32")):
        with T.Kernel(T.ceildiv(n, 128), threads=128) as bx:
            for i in T.Parallel(128):
                B[bx * 128 + i] = A[bx * 128 + i] * factor

    return scaled


@tilelang.jit(target={"kind": "cuda", "arch": "sm_90a"})
def shifted(A):
    n = T.const("n")
    A: T.Tensor[[n], T.float32]
    B = T.empty((n,), "float32")
    with T.Kernel(T.ceildiv(n, 128), threads=128) as bx:
        for i in T.Parallel(128):
            B[bx * 128 + i] = A[bx * 128 + i] + 1
    return B


@T.prim_func
def shifted_by(A: T.Tensor((256,), "float32"), k: T.uint32):
    with T.Kernel(T.Cast("int32", T.shift_left(k, T.uint32(20)) // T.uint32(1 << 20)), threads=128) as bx:
        for i in T.Parallel(128):
            A[bx * 128 + i] = A[bx * 128 + i] * 2


def test_flags_that_are_no_texts_are_refused():
    with pytest.raises(ProgramError, match="compile_flags: got 5, expected"):
        from_prim_func(double, "sm_90a", compile_flags=5)


@pytest.mark.parametrize(
    "target",
    ["sm_90a", {"kind": "cuda", "arch": "sm_90a"}, tvm.target.Target({"kind": "cuda", "arch": "sm_90a"})],
    ids=["architecture", "dict", "Target"],
)
def test_a_target_is_said_in_any_way(target):
    program = from_prim_func(double, target)
    assert (program.name, program.code[0].target, program.code[0].name) == ("double", "sm_90a", "double.cu")
    assert [param.name for param in program.signature.params] == ["A", "B"]
    assert program.signature.outputs == ()


def test_the_type_of_a_shift_is_read():
    """Of an unsigned one, which in a host function wraps."""
    (launch,) = from_prim_func(shifted_by, "sm_90a").launches
    assert format_expr(launch.grid[0]) == "(cast(uint32, (k * 1048576)) // 1048576)"


def test_the_target_whose_context_this_is_counts_and_the_program_is_the_artifact_s():
    with tvm.target.Target({"kind": "cuda", "arch": "sm_80"}):
        program = from_prim_func(double, out_idx=-1, name="twice")
        artifact = tilelang.lower(double, target="auto")
    assert program.code[0].target == "sm_80"
    assert program == from_artifact(artifact, out_idx=[1], name="twice")
    assert [param.name for param in program.signature.outputs] == ["B"]


def test_settings_reach_the_passes_and_the_device_compiler():
    program = from_prim_func(
        double, "sm_90a", {"tl.enable_fast_math": True, TUNED_FOR: "any"}, compile_flags="-DX=1 -lineinfo"
    )
    (code,) = program.code
    assert code.defines == (("X", "1"),)
    assert code.options[-2:] == ("-lineinfo", "--use_fast_math")
    plain = {"tl.disable_vectorize_256": True, "tirx.disable_vectorize": True}
    assert "float2*" in from_prim_func(wide(), "sm_90a").code[0].source
    assert "float2*" not in from_prim_func(wide(), "sm_90a", plain).code[0].source


def wide():
    @T.prim_func
    def copied(A: T.Tensor((256,), "float32"), B: T.Tensor((256,), "float32")):
        with T.Kernel(1, threads=128):
            T.copy(A, B)

    return copied


def test_the_function_s_own_settings_come_first():
    own = double.with_attr("tilelang_pass_configs", {"tl.enable_fast_math": True})
    own = own.with_attr("tilelang_compile_flags", ["-lineinfo"])
    assert lower(own, "sm_90a").program(None).code[0].options[-2:] == ("-lineinfo", "--use_fast_math")
    (code,) = lower(own, "sm_90a", {"tl.enable_fast_math": False}, "-G").program(None).code
    assert code.options[-2:] == ("-lineinfo", "-G")


def test_a_jit_object_brings_its_settings_and_its_outputs():
    program = from_jit(scale, 512, factor=5)
    assert (program.code[0].target, program.code[0].options[-1]) == ("sm_80", "-lineinfo")
    assert [param.name for param in program.signature.outputs] == ["B"]
    assert program.launches[0].grid[0] == trunnion.model.expr.Const(4)


def test_a_function_that_is_the_kernel_itself_says_its_outputs():
    import torch

    program = from_jit(shifted, torch.empty(384))
    assert [len(program.signature.params), len(program.signature.outputs)] == [1, 1]
    func = shifted.get_tir(torch.empty(384))
    with pytest.raises(ProgramError, match="out_idx: got one, and the function returns tensors of its own"):
        from_prim_func(func, "sm_90a", out_idx=1)


@pytest.mark.parametrize("target", ["nonsense", {"kind": "nonsense"}, 3])
def test_a_target_that_tilelang_does_not_know_is_refused(target):
    with pytest.raises(ProgramError, match="target"):
        from_prim_func(double, target)


@pytest.mark.parametrize("target", ["sm_90a", "cuda:sm_90a", Target("cuda", "sm_90a")], ids=str)
def test_a_target_may_be_spelled_as_trunnion_does(target):
    (code,) = from_prim_func(double, target).code
    assert code.target == "sm_90a"


@pytest.mark.parametrize("target", ["cuda:sm_x", "cuda:compute_90", "cpu", Target("cpu")], ids=str)
def test_another_target_of_trunnion_s_is_refused(target):
    with pytest.raises(ProgramError, match="such as 'sm_90a'") as caught:
        from_prim_func(double, target)
    assert caught.value.field == "target"


def test_without_a_gpu_a_target_has_to_be_said(monkeypatch):
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    with pytest.raises(ProgramError, match="expected a GPU, which TileLang asks for its architecture"):
        from_prim_func(double)


@pytest.mark.parametrize("target", ["cuda", "cutedsl", {"kind": "cuda"}], ids=str)
def test_no_architecture_is_guessed(monkeypatch, target):
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    with pytest.raises(ProgramError, match="names no architecture") as caught:
        from_prim_func(double, target)
    assert caught.value.field == "target"


@pytest.mark.parametrize("target", ["c", {"kind": "hip"}, {"kind": "metal"}], ids=str)
def test_other_devices_are_refused_before_anything_is_lowered(target):
    with pytest.raises(ProgramError, match="expected a CUDA device") as caught:
        from_prim_func(double, target)
    assert caught.value.field == "target"


def test_what_is_no_function_of_tilelang_s_is_refused():
    with pytest.raises(ProgramError, match=r"expected what @T\.prim_func returns"):
        from_prim_func(lambda: None, "sm_90a")
    with pytest.raises(ProgramError, match=r"expected what @tilelang\.jit returns"):
        from_jit(double)


@pytest.mark.parametrize("given", ["1", 1.0, [1.0], True, {1}, [None]], ids=str)
def test_outputs_are_integers_in_an_order(given):
    with pytest.raises(ProgramError, match=r"out_idx: got .*, expected an integer, or integers in an order"):
        from_prim_func(double, "sm_90a", out_idx=given)


def test_a_host_function_that_is_not_lowered_is_refused():
    artifact = lower(double, "sm_90a").artifact
    artifact.host_mod = tvm.IRModule({"double": double})
    with pytest.raises(ProgramError, match=r"artifact\.host_mod: got a host function of 2 parameters"):
        from_artifact(artifact)
