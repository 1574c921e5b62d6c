"""CuTeDSL text to cubins, with no GPU."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest

import trunnion
from trunnion.contract.compiler import CompileRequest
from trunnion.contract.spec import Target
from trunnion.errors import CompileError, ProgramError, UnsupportedFeatureError, UntrustedArtifactError
from trunnion.image.cubin import read_cubin
from trunnion.image.match import match_parameters
from trunnion.model.builder import ProgramBuilder
from trunnion.model.code import DeviceCode
from trunnion.model.expr import Symbol
from trunnion.model.struct import struct
from trunnion_cutedsl.compiler.compiler import CuteDslCompiler
from trunnion_cutedsl.compiler.dtypes import SPELLINGS

if TYPE_CHECKING:
    from trunnion.model.program import KernelProgram

HEAD = "import cutlass\nimport cutlass.cute as cute\nfrom cutlass.experimental.cuda.tensor_map import TensorMap\n"
N, K = Symbol("n", max=2**31 - 1), Symbol("k", multiple_of=8)


@pytest.fixture(scope="module")
def compiler():
    return CuteDslCompiler()


def builder(text: str, **fields: object) -> ProgramBuilder:
    fields.setdefault("name", "kernels.py")
    return ProgramBuilder("p", DeviceCode("cutedsl", HEAD + text, **fields))


def request(program: KernelProgram, arch: str = "sm_90a", **options: object) -> CompileRequest:
    plan = program.plan()
    return CompileRequest(
        code=program.code, kernels=plan.kernels, target=Target("cuda", arch), plan=plan, options=options
    )


EMPTY = "@cute.kernel\ndef k({}):\n    pass\n"


def launched(*args: object, text: str = "", count: int | None = None, kernel: str = "k", **launch: object):
    """Return a program with one launch; by default of a kernel that takes as many arguments and does nothing."""
    names = ", ".join(f"p{index}" for index in range(len(args) if count is None else count))
    p = builder(text or EMPTY.format(names))
    p.input("shown", "int8", (N, K))
    made = [arg(p) if callable(arg) else arg for arg in args]
    p.launch(kernel, args=made, grid=1, block=launch.pop("block", 64), **launch)
    return p.build()


# Parameters -------------------------------------------------------------------------------------------------------


def test_every_kind_of_argument_becomes_a_parameter_of_its_size(compiler):
    kinds = ("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
    kinds += ("float16", "bfloat16", "float32", "float64")
    names = [f"p{index}" for index in range(10 + len(kinds))]
    program = launched(
        lambda p: p.input("a", "float32", (N, K)).view(),
        lambda p: p.input("b", "float16", (16, 8)).view(),
        lambda p: p.input("c", "bfloat16", (4, N, K)).view(),
        lambda p: p.input("d", "uint8", (N, K), strides=(Symbol("s"), Symbol("t"))).view(),
        lambda p: p.input("e", "bool", (N,)),
        lambda p: p.workspace("w", "float64", (N, 2)).view(),
        lambda p: p.pointer("address", alignment=16),
        lambda p: p.input("m", "float16", (64, 64)).tiled((64, 64), swizzle="128B"),
        N.cast("int32"),
        K,
        *(lambda p, kind=kind: p.scalar(f"s_{kind}", kind) for kind in kinds),
        text=EMPTY.format(", ".join([*names[:7], "m: cutlass.GridConstant[TensorMap]", *names[8:]])),
    )
    image = compiler.compile(request(program))
    match_parameters(program.plan().kernels, image)
    assert [one.size for one in image.kernels[0].parameters[:10]] == [24, 8, 32, 32, 8, 16, 8, 128, 4, 8]
    assert image.kernels[0].symbol == "k_0"
    info = read_cubin(image.data)
    assert (info.arch, info.kernels[0].required_threads) == ("sm_90a", (64, 1, 1))


@pytest.mark.parametrize("arch", ["sm_80", "sm_100a"])
def test_it_compiles_for_architectures_that_are_not_here(compiler, arch):
    program = launched(lambda p: p.input("a", "float32", (N,)).view())
    image = compiler.compile(request(program, arch))
    assert read_cubin(image.data).arch == arch


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda p: p.struct("s", nbytes=8, alignment=8), "a struct has no counterpart in CuTeDSL"),
        (
            lambda p: struct(("n", p.scalar("n", "int32"))),
            "a struct has no counterpart in CuTeDSL: pass its members",
        ),
        (
            lambda p: p.input("a", "complex64", (4,)).view(),
            "got dtype complex64, which CuTeDSL does not have",
        ),
        (lambda p: p.scalar("s", "complex64"), "got a scalar of dtype complex64"),
        (lambda p: p.input("a", "int8", (4, 0)).view(), "got an extent that is always 0"),
    ],
)
def test_what_has_no_counterpart_is_refused_by_its_place(compiler, make, said):
    with pytest.raises(ProgramError, match=said) as caught:
        compiler.compile(request(launched(make)))
    assert caught.value.field == "launches[0].args[0]"


MAP = "@cute.kernel\ndef k(m: cutlass.GridConstant[TensorMap]):\n    print(m.element_type, m.tma_format, m.box_dims)\n"


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda p: p.input("a", "float8_e4m3fn", (N, 64)).tiled((8, 64)), "Float8E4M3FN default (64, 8)"),
        (lambda p: p.input("a", "bool", (N, 64)).tiled((8, 64)), "Uint8 default (64, 8)"),
        (lambda p: p.input("a", "int8", (N, 64)).tiled((8, 64)), "Int8 default (64, 8)"),
        (
            lambda p: p.input("a", "float32", (N, 64)).tiled((8, 32), dtype="TFLOAT32"),
            "TFloat32 default (32, 8)",
        ),
        (
            lambda p: p.input("a", "float32", (N, 64)).tiled((8, 32), dtype="TFLOAT32_FTZ"),
            "TFloat32 tf32_ftz (32, 8)",
        ),
        (
            lambda p: p.input("a", "float16", (4, 8, 8, 64)).im2col(
                channels_per_pixel=64,
                pixels_per_column=32,
                pixel_box_lower_corner=(0, 0),
                pixel_box_upper_corner=(-2, -1),
            ),
            "Float16 default ()",
        ),
    ],
)
def test_a_map_says_what_its_elements_are(compiler, make, said):
    assert compiler.compile(request(launched(make, text=MAP))).log.strip() == said


def test_every_type_that_it_has_can_be_in_memory(compiler):
    kinds = [name for name, spelling in SPELLINGS.items() if spelling]
    views = [lambda p, kind=kind: p.input(f"v_{kind}", kind, (N, K)).view() for kind in kinds]
    pointers = [lambda p, kind=kind: p.input(f"p_{kind}", kind, (N,)) for kind in kinds]
    program = launched(*views, *pointers)
    match_parameters(program.plan().kernels, compiler.compile(request(program)))


def test_clusters_and_cooperative_launches_compile(compiler):
    program = launched(
        lambda p: p.input("a", "float32", (N, K, N, K, N)).view(), cluster=(1, 1, 1), cooperative=True
    )
    assert compiler.compile(request(program)).kernels[0].parameters[0].size == 8 + 24 + 32


def test_a_kernel_may_have_any_name_that_python_allows(compiler):
    program = launched(text="@cute.kernel\ndef größe():\n    pass\n", kernel="größe")
    assert compiler.compile(request(program)).kernels[0].symbol == "gr__e_0"


def test_a_kernel_knows_the_box_and_the_swizzle_of_its_map(compiler):
    text = (
        "@cute.kernel\ndef k(m: cutlass.GridConstant[TensorMap]):\n"
        "    assert m.box_dims == (64, 32), m.box_dims\n"
        "    assert str(m.swizzle) == 's128b', m.swizzle\n"
        "    assert m.element_type is cutlass.Float16\n"
        "    assert m.global_tx_bytes() == 64 * 32 * 2\n"
    )
    program = launched(lambda p: p.input("a", "float16", (N, 64)).tiled((32, 64), swizzle="128B"), text=text)
    assert compiler.compile(request(program)).kernels[0].parameters[0].size == 128


def test_a_kernel_may_lay_out_a_pointer_itself(compiler):
    text = (
        "@cute.kernel\ndef k(a: cute.Pointer, n: cutlass.Int32):\n"
        "    x = cute.make_tensor(a, cute.make_layout((n, 4), stride=(4, 1)))\n"
        "    x[0, 1] = cutlass.Float32(1)\n"
    )
    program = launched(lambda p: p.output("a", "float32", (N, 4)), N.cast("int32"), text=text)
    assert [one.size for one in compiler.compile(request(program)).kernels[0].parameters] == [8, 4]


def test_a_map_that_is_not_declared_as_one_is_refused_by_name(compiler):
    with pytest.raises(
        ProgramError, match=r"the program gives p0 of k a tensor map: declare p0: cutlass\.GridConstant"
    ):
        compiler.compile(request(launched(lambda p: p.input("a", "float16", (64, 64)).tiled((64, 64)))))


def test_a_kernel_knows_what_is_constant_of_a_tensor_and_what_divides_the_rest(compiler):
    text = (
        "@cute.kernel\ndef k(a: cute.Tensor):\n"
        "    assert a.shape[1] == 24 and a.stride[2] == 1, a.layout\n"
        "    assert 'div=8' in str(a.type), a.type\n"
        "    assert a.iterator.alignment == 32, a.iterator\n"
    )
    compiler.compile(
        request(launched(lambda p: p.input("a", "float32", (N, 24, K), alignment=32).view(), text=text))
    )


def test_launches_that_differ_in_what_a_kernel_is_compiled_for_are_refused(compiler):
    p = builder("@cute.kernel\ndef k(a: cute.Pointer):\n    pass\n")
    a, b = p.input("a", "float16", (4,)), p.input("b", "int16", (4,))
    for tensor in (a, b):
        p.launch("k", args=(tensor,), grid=1, block=32)
    with pytest.raises(ProgramError, match="a kernel of CuTeDSL is compiled for one") as caught:
        compiler.compile(request(p.build()))
    assert caught.value.field == "launches[1].args[0]"


# Kernels ----------------------------------------------------------------------------------------------------------


def test_several_kernels_and_specialisations_are_one_image(compiler):
    text = (
        "@cute.kernel\ndef first(a: cute.Tensor, tile: cutlass.Constexpr = 4):\n    a[0] = cutlass.Float32(tile)\n"
        "@cute.kernel\ndef second(a: cute.Tensor):\n    a[0] = cutlass.Float32(1)\n"
    )
    p = builder(text)
    a = p.input("a", "float32", (N,))
    names = ("first", "first(tile=8)", "second")
    for name in names:
        p.launch(name, args=(a.view(),), grid=1, block=32)
    image = compiler.compile(request(p.build()))
    assert [kernel.name for kernel in image.kernels] == list(names)
    assert [kernel.symbol for kernel in image.kernels] == ["first_0", "first_1", "second_2"]
    assert {kernel.name for kernel in read_cubin(image.data).kernels} == {"first_0", "first_1", "second_2"}


@pytest.mark.parametrize(
    ("parameters", "kernel"),
    [
        ("c: cutlass.Constexpr, a: cute.Tensor, f: cutlass.Float32", "k(c=3)"),
        ("a: cute.Tensor, c: cutlass.Constexpr, f: cutlass.Float32", "k(c=3)"),
        ("a: cute.Tensor, c: cutlass.Constexpr = 3, f: cutlass.Float32 = 0", "k"),
        ("a: cute.Tensor, c: cutlass.Constexpr = 4, f: cutlass.Float32 = 0", "k(c=3)"),
    ],
)
def test_a_constant_stands_anywhere(compiler, parameters, kernel):
    text = f"@cute.kernel\ndef k({parameters}):\n    a[0] = f * c\n"
    usual = "@cute.kernel\ndef k(a: cute.Tensor, f: cutlass.Float32, c: cutlass.Constexpr = 3):\n    a[0] = f * c\n"
    images = []
    for body, name in ((text, kernel), (usual, "k")):
        p = builder(body)
        p.launch(
            name, (p.input("a", "float32", (N,), access="write").view(), p.scalar("f", "float32")), 1, 32
        )
        images.append(compiler.compile(request(p.build(), generate_line_info=False)).data)
    assert read_cubin(images[0]).kernels == read_cubin(images[1]).kernels


SHARED = (
    "from cutlass.memory import SmemAllocator\n"
    "@cute.kernel\ndef k(a: cute.Tensor, count: cutlass.Constexpr = 1000):\n"
    "    shared = SmemAllocator().allocate_tensor(cutlass.Float32, cute.make_layout(count), byte_alignment=16)\n"
    "    thread, _, _ = cute.arch.thread_idx()\n"
    "    shared[thread] = a[thread]\n"
    "    cute.arch.sync_threads()\n"
    "    a[thread] = shared[63 - thread]\n"
)


def _shared(smem: object, kernel: str = "k"):
    return launched(
        lambda p: p.input("a", "float32", (64,)).view(), text=SHARED, kernel=kernel, dynamic_smem_bytes=smem
    )


def test_shared_memory_is_inferred_for_each_kernel(compiler):
    assert compiler.compile(request(_shared(4000))).kernels[0].dynamic_smem_bytes == 4000
    assert compiler.compile(request(_shared(8000, "k(count=2000)"))).kernels[0].dynamic_smem_bytes == 8000


@pytest.mark.parametrize(
    ("smem", "given"), [(0, "got 0,"), (3996, "got 3996,"), (K * 4, "got 0 in some calls")]
)
def test_a_program_with_less_shared_memory_than_its_kernel_uses_is_refused(smem, given):
    with pytest.raises(ProgramError, match=given) as caught:
        trunnion.compile(_shared(smem), "nvrtc", target="sm_90a", trust=True)
    assert caught.value.field == "launches[0].dynamic_smem_bytes"
    assert "uses 4000 bytes; pass dynamic_smem_bytes=4000" in str(caught.value)


def test_a_block_that_a_call_decides_is_no_requirement(compiler):
    program = launched(
        lambda p: p.input("a", "float32", (N,)).view(), block=Symbol("n", max=2**31 - 1) % 256 + 1
    )
    assert read_cubin(compiler.compile(request(program)).data).kernels[0].required_threads is None


# Refusals ---------------------------------------------------------------------------------------------------------


def test_missing_and_superfluous_arguments_are_named(compiler):
    with pytest.raises(ProgramError, match="the program gives k 1 arguments, and it takes 2: p0, p1"):
        compiler.compile(request(launched(N, count=2)))
    with pytest.raises(ProgramError, match=r"is not in the text; its functions under @cute\.kernel are: k"):
        compiler.compile(request(launched(kernel="elsewhere")))


def test_what_only_a_host_function_makes_is_refused_by_name(compiler):
    text = "@cute.kernel\ndef k(atom: cute.CopyAtom, a: cute.Tensor):\n    pass\n"
    with pytest.raises(ProgramError, match="atom can only be made by a host function"):
        compiler.compile(request(launched(N, text=text)))


def test_a_constant_without_a_value_is_refused_by_name(compiler):
    text = "@cute.kernel\ndef k(n: cutlass.Int64, tile: cutlass.Constexpr):\n    pass\n"
    with pytest.raises(
        ProgramError, match=r"tile is a constant: say it in the kernel's name, as in 'k\(tile=...\)'"
    ):
        compiler.compile(request(launched(N, text=text)))


@pytest.mark.parametrize(
    ("text", "line", "said"),
    [
        ("def broken(:\n", 4, "SyntaxError"),
        ("x = 1\nraise LookupError('of the author')\n", 5, "LookupError: of the author"),
        ("import sys\nsys.exit(3)\n", 5, "SystemExit: 3"),
        ("@cute.kernel\ndef k():\n    x = 1\n    undefined_name()\n", 7, "undefined_name"),
        ("@cute.kernel\ndef k():\n    cute.arch.no_such_thing()\n", 6, "no_such_thing"),
    ],
)
def test_errors_carry_the_message_and_the_author_s_line(compiler, text, line, said):
    with pytest.raises(CompileError) as caught:
        compiler.compile(request(launched(text=text)))
    error = caught.value
    assert said in error.log, error.log
    assert error.line == line, error.log
    assert (error.source, error.arch) == (HEAD + text, "sm_90a")
    assert f"kernels.py:{line}" in error.log
    assert "\x1b" not in error.log


def test_what_a_text_prints_is_in_the_log(compiler):
    text = "print('from the text')\n@cute.kernel\ndef k():\n    pass\n"
    assert "from the text" in compiler.compile(request(launched(text=text))).log


def test_a_text_that_kills_or_hangs_its_process_hurts_only_its_job(compiler):
    with pytest.raises(CompileError, match="ended without an answer"):
        compiler.compile(request(launched(text="import os\nos._exit(0)\n")))
    with pytest.raises(CompileError, match=r"longer than 0\.5 s"):
        compiler.compile(request(launched(text="while True:\n    pass\n"), seconds=0.5))
    assert compiler.compile(request(launched())).kernels[0].symbol == "k_0"


def test_a_text_may_be_called_like_a_package(compiler):
    p = builder("@cute.kernel\ndef k():\n    pass\n", name="cutlass.py")
    p.launch("k", args=(), grid=1, block=32)
    compiler.compile(request(p.build()))


@pytest.mark.parametrize("files", [["tiles.py"], ["tiles/__init__.py", "tiles/parts/one.py"]], ids=len)
def test_modules_come_with_the_text(compiler, files):
    text = "from tiles import TILE\n@cute.kernel\ndef k():\n    assert TILE == 7\n"
    values = ["TILE = 7", "from .parts.one import TILE"]
    p = builder(text, includes=tuple(zip(files, values[len(files) - 1 :: -1], strict=True)))
    p.launch("k", args=(), grid=1, block=32)
    compiler.compile(request(p.build()))


@pytest.mark.parametrize("name", ["numpy", "inspect", "cutlass", "turtle", "cutlass/x"])
def test_a_module_that_would_not_be_the_one_imported_is_refused(compiler, name):
    p = builder("@cute.kernel\ndef k():\n    pass\n", includes=((f"{name}.py", "TILE = 7\n"),))
    p.launch("k", args=(), grid=1, block=32)
    top = name.partition("/")[0]
    with pytest.raises(ProgramError, match=rf"{name}\.py, and {top} is another module already"):
        compiler.compile(request(p.build()))


def test_the_same_request_gives_the_same_bytes(compiler):
    program = launched(lambda p: p.input("a", "float32", (N,)).view())
    options = {"generate_line_info": True}
    images = [compiler.compile(request(program, **options)).data for _ in range(2)]
    assert images[0] == images[1]
    assert images[0] != compiler.compile(request(program)).data


def test_text_runs_only_where_it_is_trusted():
    program = launched(lambda p: p.input("a", "float32", (N,)).view())
    with pytest.raises(UntrustedArtifactError, match="trust=True"):
        trunnion.compile(program, target="sm_90a")
    assert "cutlass" not in sys.modules


def test_several_parts_are_refused(compiler):
    program = launched()
    whole = request(program)
    two = CompileRequest(
        code=(*whole.code, *whole.code), kernels=whole.kernels, target=whole.target, plan=whole.plan
    )
    with pytest.raises(UnsupportedFeatureError, match="one DeviceCode"):
        compiler.compile(two)
