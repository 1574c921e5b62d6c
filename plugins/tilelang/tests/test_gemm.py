"""A GEMM with tensor maps, from TileLang's language to a program: the path as a whole."""

from __future__ import annotations

import pytest
import tilelang
import tilelang.language as T
from tilelang import tvm

import trunnion_tilelang
from trunnion import KernelProgram, Symbol, TensorParam, TiledTensorMap
from trunnion.errors import ProgramError

TARGET = tvm.target.Target({"kind": "cuda", "arch": "sm_90a"})


def gemm():
    m = T.dynamic("m")

    @T.prim_func
    def main(
        A: T.Tensor((m, 256), "float16"), B: T.Tensor((256, 512), "float16"), C: T.Tensor((m, 512), "float16")
    ):
        with T.Kernel(T.ceildiv(512, 128), T.ceildiv(m, 128), threads=128) as (bx, by):
            a = T.alloc_shared((128, 64), "float16")
            b = T.alloc_shared((64, 128), "float16")
            c = T.alloc_fragment((128, 128), "float32")
            T.clear(c)
            for k in T.Pipelined(T.ceildiv(256, 64), num_stages=3):
                T.copy(A[by * 128, k * 64], a)
                T.copy(B[k * 64, bx * 128], b)
                T.gemm(a, b, c)
            T.copy(c, C[by * 128, bx * 128])

    return main


@pytest.fixture(scope="module")
def artifact():
    with TARGET:
        return tilelang.lower(gemm(), target=TARGET)


def test_the_parameters_carry_the_authors_names_and_layout(artifact):
    program = trunnion_tilelang.from_artifact(artifact)
    m = Symbol("m", max=2**31 - 1)
    given = [
        (param.name, param.dtype.name, param.shape[0], param.strides) for param in program.signature.params
    ]
    assert given == [
        ("A", "float16", m, None),
        ("B", "float16", program.signature.params[1].shape[0], None),
        ("C", "float16", m, None),
    ]
    assert [param.shape[1].value for param in program.signature.params] == [256, 512, 512]
    assert program.name == "main"


def test_the_launch_has_the_maps_and_operands_of_the_kernels_own_order(artifact):
    program = trunnion_tilelang.from_artifact(artifact)
    (launch,) = program.launches
    a, b, c = program.signature.params
    first, second, pointer, extent = launch.args
    assert (first.tensor, first.box_dim, first.swizzle.word) == (a, (128, 64), "128B")
    assert (second.tensor, second.box_dim, second.l2_promotion.word) == (b, (64, 64), "L2_128B")
    assert isinstance(first, TiledTensorMap)
    assert (first.shape, first.strides) == (None, None)
    assert isinstance(pointer, TensorParam)
    assert pointer == c
    assert extent == Symbol("m", max=2**31 - 1).cast("int32")
    assert launch.kernel == "main_kernel"
    assert [axis.value for axis in launch.block] == [256, 1, 1]
    assert launch.dynamic_smem_bytes.value == 98304


def test_trunnions_own_checks_are_all_that_the_assertions_ask_for(artifact):
    assert trunnion_tilelang.from_artifact(artifact).signature.checks == ()


def test_the_device_code_is_the_artifacts(artifact):
    (code,) = trunnion_tilelang.from_artifact(artifact).code
    assert (code.language, code.target) == ("cuda", "sm_90a")
    assert "__global__ void main_kernel" in code.source


def test_an_output_is_taken_out_of_the_parameters_and_returned(artifact):
    program = trunnion_tilelang.from_artifact(artifact, out_idx=-1, name="gemm")
    assert [param.name for param in program.signature.params] == ["A", "B"]
    assert [output.name for output in program.signature.outputs] == ["C"]
    assert program.launches[0].args[2] == program.signature.outputs[0]
    assert program.name == "gemm"


@pytest.mark.parametrize("out_idx", [3, -4, [0, -3]])
def test_an_output_that_is_no_parameter_or_named_twice_is_refused(artifact, out_idx):
    with pytest.raises(ProgramError) as caught:
        trunnion_tilelang.from_artifact(artifact, out_idx=out_idx)
    assert caught.value.field == "out_idx"


def test_what_is_written_through_a_map_is_not_called_read_only():
    """TileLang's host function lists it among what is only read: the pass sees no store through a descriptor."""

    @T.prim_func
    def stored(
        A: T.Tensor((256, 256), "float16"),
        B: T.Tensor((256, 256), "float16"),
        C: T.Tensor((256, 256), "float16"),
    ):
        with T.Kernel(2, 2, threads=128) as (bx, by):
            a, b = T.alloc_shared((128, 64), "float16"), T.alloc_shared((64, 128), "float16")
            sums, tile = T.alloc_fragment((128, 128), "float32"), T.alloc_shared((128, 128), "float16")
            T.clear(sums)
            for k in T.Pipelined(4, num_stages=2):
                T.copy(A[by * 128, k * 64], a)
                T.copy(B[k * 64, bx * 128], b)
                T.gemm(a, b, sums)
            T.copy(sums, tile)
            T.copy(tile, C[by * 128, bx * 128])

    with TARGET:
        lowered = tilelang.lower(stored, target=TARGET)
    (host,) = lowered.host_mod.functions.values()
    assert [int(index) for index in host.attrs["tl.readonly_param_indices"]] == [0, 1, 2]
    program = trunnion_tilelang.from_artifact(lowered)
    assert all(isinstance(argument, TiledTensorMap) for argument in program.launches[0].args)
    assert program.signature.params[2].access == "read_write"


def test_the_program_survives_json_and_can_be_planned(artifact):
    program = trunnion_tilelang.from_artifact(artifact)
    assert KernelProgram.from_json(program.to_json()) == program
    assert program.plan().hash


def test_what_is_no_artifact_is_refused():
    with pytest.raises(ProgramError) as caught:
        trunnion_tilelang.from_artifact(object())
    assert caught.value.field == "artifact"
