"""Names that TileLang writes into its source as they are: that may be refused, and the host is none the worse."""

import pytest
import tilelang.language as T
from tilelang_corpus.corpus import TARGET
from tilelang_corpus.entry import Entry
from tilelang_host.bench import Bench, synthetic

from trunnion.contract.compiler import CompileRequest
from trunnion.contract.spec import Target
from trunnion.errors import CompileError
from trunnion.registry import default_registry
from trunnion_tilelang import from_artifact


def words_of_cpp():
    n = T.dynamic("class")

    @T.prim_func
    def new(
        int: T.Tensor((n,), T.float32), float: T.Tensor((n,), T.float32), template: T.Tensor((n,), T.float32)
    ):
        with T.Kernel(T.ceildiv(n, 128), threads=128) as block:
            for i in T.Parallel(128):
                template[block * 128 + i] = int[block * 128 + i] + float[block * 128 + i]

    return new


def letters_of_other_languages():
    n = T.dynamic("ν")

    @T.prim_func
    def größe(é: T.Tensor((n,), T.float32), ñ: T.Tensor((n,), T.float32), 長: T.Tensor((n,), T.float32)):
        with T.Kernel(T.ceildiv(n, 128), threads=128) as block:
            for i in T.Parallel(128):
                長[block * 128 + i] = ñ[block * 128 + i] + é[block * 128 + i]

    return größe


def words_of_cuda():
    n = T.dynamic("gridDim")

    @T.prim_func
    def launch(
        x: T.Tensor((n,), T.float32),
        blockIdx: T.Tensor((n,), T.float32),
        threadIdx: T.Tensor((n,), T.float32),
    ):
        with T.Kernel(T.ceildiv(n, 128), threads=128) as block:
            for i in T.Parallel(128):
                threadIdx[block * 128 + i] = x[block * 128 + i] + blockIdx[block * 128 + i]

    return launch


def two_vectors(draw):
    n = draw.size(1, 900)
    return draw.tensor((n,)), draw.tensor((n,))


@pytest.mark.parametrize("make", [words_of_cpp, letters_of_other_languages, words_of_cuda])
def test_names_are_carried_and_never_read(make, harnesses):
    entry = Entry(
        name="names",
        covers="names",
        make=make,
        inputs=two_vectors,
        reference=lambda x, y: (x + y,),
        out_idx=(2,),
    )
    artifact = entry.lower()
    subject, image = Bench(entry, artifact, from_artifact(artifact, out_idx=2)), synthetic(artifact, TARGET)
    signature = subject.program.signature
    written = [*signature.params, *signature.outputs]
    assert [param.name for param in written] == [buffer.name for buffer in make().buffer_map.values()]
    given = subject.given(harnesses[0], 1, 0)
    for harness in harnesses:
        with subject.loaded(harness, image) as loaded:
            assert subject.compared(subject.call(harness, loaded, given, 0), given)


@pytest.mark.parametrize("make", [words_of_cpp, words_of_cuda])
def test_source_that_no_compiler_takes_is_an_error_that_shows_it(make):
    entry = Entry(
        name="names", covers="names", make=make, inputs=two_vectors, reference=lambda x, y: (x + y,)
    )
    program = from_artifact(entry.lower())
    (spec,) = (spec for spec in default_registry().compilers() if spec.name == "nvrtc")
    kernels, target = program.plan().kernels, Target("cuda", TARGET)
    with pytest.raises(CompileError) as caught:
        spec.load_compiler()().compile(CompileRequest(code=program.code, kernels=kernels, target=target))
    assert "__global__ void" in str(caught.value)
