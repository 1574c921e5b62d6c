"""What a kernel's annotations say, against what the program passes: two types that differ make no cubin."""

from __future__ import annotations

import itertools

import pytest

from trunnion.contract.compiler import CompileRequest
from trunnion.contract.spec import Target
from trunnion.errors import ProgramError
from trunnion.model.builder import ProgramBuilder
from trunnion.model.code import DeviceCode
from trunnion.model.expr import Symbol
from trunnion_cutedsl.compiler.compiler import CuteDslCompiler
from trunnion_cutedsl.compiler.dtypes import SPELLINGS

HEAD = (
    "import cutlass\nfrom cutlass import cute, Float32\nfrom typing import *\nG = cutlass.AddressSpace.gmem\n"
)
SIZES = (
    ("bool", "int8", "uint8"),
    ("int16", "uint16", "float16", "bfloat16"),
    ("int32", "uint32", "float32"),
    ("int64", "uint64", "float64"),
)
NUMBERS = [name for names in SIZES for name in names]
PAIRS = [pair for names in SIZES for pair in itertools.permutations(names, 2)]  # no size tells these apart
PAIRS += [
    ("float32", "int64"),
    ("int32", "uint64"),
    ("float64", "float32"),
    ("int64", "int32"),
    ("bool", "int32"),
]
ELEMENTS = [name for name, spelling in SPELLINGS.items() if spelling and name not in ("bool", "uint8")]
N = Symbol("n", max=2**31 - 1)


@pytest.fixture(scope="module")
def compiler():
    return CuteDslCompiler()


def compiled(compiler: CuteDslCompiler, annotation: str, make: object, head: str = HEAD):
    """Compile a kernel of one parameter, ``x``."""
    said = f"x: {annotation}" if annotation else "x"
    p = ProgramBuilder(
        "p", DeviceCode("cutedsl", f"{head}@cute.kernel\ndef k({said}):\n    print(x.dtype)\n")
    )
    p.input("shown", "int8", (N,))
    p.launch("k", args=(make(p),), grid=1, block=32)
    plan = p.build().plan()
    code = p.build().code
    return compiler.compile(
        CompileRequest(
            code=code, kernels=plan.kernels, target=Target("cuda", "sm_90a"), plan=plan, options={}
        )
    )


def scalar(kind: str):
    return lambda p: p.scalar("x", kind)


def tensor(kind: str):
    return lambda p: p.input("x", kind, (64,))


def view(kind: str):
    return lambda p: p.input("x", kind, (64,)).view()


# Numbers ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("annotated", "passed"), PAIRS)
def test_a_number_of_another_type_than_its_annotation_is_refused(compiler, annotated, passed):
    wanted, given = SPELLINGS[annotated], SPELLINGS[passed]
    with pytest.raises(ProgramError) as caught:
        compiled(compiler, f"cutlass.{wanted}", scalar(passed))
    assert (
        f"x of k is annotated {wanted}, and the program passes a number of type {given}: write x: {given}, and convert"
    ) in str(caught.value)


@pytest.mark.parametrize("kind", NUMBERS)
def test_a_number_is_taken_as_what_is_passed(compiler, kind):
    name = SPELLINGS[kind]
    for annotation in (f"cutlass.{name}", "", "Any", "cutlass.Numeric"):
        assert compiled(compiler, annotation, scalar(kind)).log.strip() == name


@pytest.mark.parametrize(
    ("annotation", "head"),
    [
        ("'Float32'", HEAD),
        ("Float32", f"from __future__ import annotations\n{HEAD}"),
        ("Number", f"{HEAD}Number = Float32\n"),
        ("cutlass.GridConstant[Float32]", HEAD),
        ("cutlass.Float", HEAD),
        ("float", HEAD),
        ("int", HEAD),
    ],
)
def test_however_the_annotation_is_written(compiler, annotation, head):
    with pytest.raises(ProgramError, match="the program passes a number of type Int32: write x: Int32"):
        compiled(compiler, annotation, scalar("int32"), head)


def test_an_expression_has_the_type_that_its_cast_gives(compiler):
    with pytest.raises(ProgramError, match="passes a number of type Int64: write x: Int64"):
        compiled(compiler, "cutlass.Int32", lambda p: N + p.input("more", "int8", (N,)).shape[0])
    assert compiled(compiler, "cutlass.Int32", lambda _: N.cast("int32")).log.strip() == "Int32"


# Memory -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ELEMENTS)
def test_a_pointer_to_other_elements_than_its_annotation_is_refused(compiler, kind):
    name = SPELLINGS[kind]
    other = "Int32" if name == "Float32" else "Float32"
    with pytest.raises(ProgramError, match=f"passes a pointer to {name}: write {name} there"):
        compiled(compiler, f"cutlass.Pointer[cutlass.{other}, G]", tensor(kind))
    compiled(compiler, f"cutlass.Pointer[cutlass.{name}, G]", tensor(kind))


@pytest.mark.parametrize("kind", ELEMENTS)
def test_a_tensor_of_other_elements_than_its_annotation_is_refused(compiler, kind):
    name = SPELLINGS[kind]
    other = "Int32" if name == "Float32" else "Float32"
    with pytest.raises(ProgramError, match=f"passes a view of {name}: write {name} there"):
        compiled(compiler, f"cute.Tensor[cutlass.{other}, (64,), (1,), G]", view(kind))
    assert compiled(compiler, f"cute.Tensor[cutlass.{name}, (64,), (1,), G]", view(kind)).log.strip() == name


def test_bytes_may_be_annotated_as_anything(compiler):
    for make in (tensor("uint8"), lambda p: p.pointer("address", alignment=16)):
        assert compiled(compiler, "cutlass.Pointer[Float32, G]", make).log.strip() == "Float32"


@pytest.mark.parametrize("annotation", ["cute.Tensor", "cutlass.Array", "cute.Tensor[Float32, (64,), (1,)]"])
def test_a_tensor_that_is_passed_without_its_view_says_so(compiler, annotation):
    with pytest.raises(ProgramError, match=r"a pointer to Float32: pass x\.view\(\) in the launch's args"):
        compiled(compiler, annotation, tensor("float32"))


@pytest.mark.parametrize("annotation", ["cute.Pointer", "cutlass.Pointer", "cutlass.Pointer[Float32, G]"])
def test_a_view_where_a_pointer_is_annotated_says_so(compiler, annotation):
    with pytest.raises(ProgramError, match=r"a view of Float32: pass x without \.view\(\)"):
        compiled(compiler, annotation, view("float32"))


@pytest.mark.parametrize(
    ("annotation", "make", "said"),
    [
        ("Float32", tensor("float32"), "a pointer to Float32: write x: cute.Pointer"),
        ("Float32", view("float32"), "a view of Float32: write x: cute.Tensor"),
        ("cute.Pointer", scalar("int64"), "a number of type Int64: write x: Int64"),
        ("cute.Tensor", scalar("int64"), "a number of type Int64: write x: Int64"),
        ("cutlass.Pointer[Float32, G]", scalar("int64"), "a number of type Int64: write x: Int64"),
    ],
)
def test_numbers_and_memory_are_not_mixed_up(compiler, annotation, make, said):
    with pytest.raises(ProgramError) as caught:
        compiled(compiler, annotation, make)
    assert said in str(caught.value)
