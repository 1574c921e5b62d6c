"""How torch's dispatcher spells a signature."""

from __future__ import annotations

import pytest
import torch

from trunnion.errors import ArgumentTypeError, ArgumentValueError
from trunnion.model.dtypes import dtype
from trunnion.model.expr import Symbol
from trunnion.model.params import PointerParam, ScalarParam, Signature, StructParam, TensorParam
from trunnion.operators.schema import OperatorName, OperatorSchema

N = Symbol("n")
X = TensorParam("x", dtype("float32"), (N,))


def tensor(name, **fields):
    return TensorParam(name, dtype("float32"), (N,), **fields)


def spelled(*params, outputs=(), **defaults):
    return OperatorSchema(Signature((X, *params), outputs), defaults)


@pytest.mark.parametrize(
    ("param", "written"),
    [
        (tensor("a"), "Tensor a"),
        (tensor("a", nullable=True), "Tensor? a"),
        (tensor("a", access="write"), "Tensor(a!) a"),
        (tensor("a", access="read_write", nullable=True), "Tensor(a!)? a"),
        (ScalarParam("a", dtype("int8")), "SymInt a"),
        (ScalarParam("a", dtype("uint64")), "SymInt a"),
        (ScalarParam("a", dtype("bool")), "bool a"),
        (ScalarParam("a", dtype("float16")), "float a"),
        (ScalarParam("a", dtype("float8_e5m2")), "float a"),
        (ScalarParam("a", dtype("complex64")), "complex a"),
        (PointerParam("a"), "int a"),
        (PointerParam("a", nullable=True), "int? a"),
        (StructParam("a", 16, 8), "int[] a"),
    ],
)
def test_a_parameter_has_the_type_that_it_is(param, written, lib):
    schema = spelled(param, outputs=(tensor("y"),))
    assert schema.functional() == f"(Tensor x, {written}) -> Tensor"
    torch.library.define("trunnion_tests::spelled", schema.functional(), lib=lib)
    torch.library.define("trunnion_tests::spelled.out", schema.out(), lib=lib)
    assert (
        str(torch.ops.trunnion_tests.spelled.default._schema)
        == f"trunnion_tests::spelled{schema.functional()}"
    )


def test_what_comes_back_is_a_tensor_for_each_output():
    assert spelled().functional() == "(Tensor x) -> ()"
    assert spelled(outputs=(tensor("y"),)).out() == "(Tensor x, *, Tensor(a!) out) -> ()"
    several = spelled(tensor("t", access="write"), outputs=(tensor("y"), tensor("z")))
    assert several.functional() == "(Tensor x, Tensor(a!) t) -> (Tensor, Tensor)"
    assert several.out() == "(Tensor x, Tensor(a!) t, *, Tensor(b!) y, Tensor(c!) z) -> ()"


@pytest.mark.parametrize(
    "name", ["in", "global", "self", "keyset", "mode", "out", "a b", "é", "_x", "1st", "NoneType"]
)
def test_a_name_that_no_argument_can_have_names_all_of_them_by_their_places(name, lib):
    schema = spelled(tensor(name, access="write"), outputs=(tensor("y"), tensor("z")))
    assert schema.names == ("arg0", "arg1")
    torch.library.define("trunnion_tests::named", schema.out(), lib=lib)


@pytest.mark.parametrize("name", ["out", "a b", "class"])
def test_outputs_with_such_a_name_are_counted(name):
    assert spelled(outputs=(tensor("y"), tensor(name))).out_names == ("out0", "out1")


@pytest.mark.parametrize(
    ("params", "names"),
    [
        (("out1",), ("out_0", "out_1")),
        (("out1", "out_0"), ("out__0", "out__1")),
        (("output", "inner"), ("out0", "out1")),
    ],
)
def test_no_output_is_counted_as_a_parameter_is_called(params, names, lib):
    schema = spelled(*map(tensor, params), outputs=(tensor("y"), tensor("out")))
    assert schema.out_names == names
    torch.library.define("trunnion_tests::counted", schema.out(), lib=lib)


def test_very_many_written_tensors_have_names_of_their_own(lib):
    schema = OperatorSchema(Signature(tuple(tensor(f"t{i}", access="write") for i in range(30))), {})
    torch.library.define("trunnion_tests::many", schema.functional(), lib=lib)
    sets = [one.alias_info.before_set for one in torch.ops.trunnion_tests.many.default._schema.arguments]
    assert len(set(map(frozenset, sets))) == 30


def test_defaults_are_those_of_the_last_parameters():
    params = (
        ScalarParam("k", dtype("float32")),
        tensor("bias", nullable=True),
        PointerParam("p", nullable=True),
    )
    schema = spelled(*params, outputs=(tensor("y"),), k=2, bias=None, p=None)
    assert schema.functional() == "(Tensor x, float k=2, Tensor? bias=None, int? p=None) -> Tensor"
    assert schema.completed(("x",)) == ("x", 2, None, None)
    assert schema.completed(("x", 3.0, "b", 7)) == ("x", 3.0, "b", 7)


@pytest.mark.parametrize(
    ("defaults", "error", "said"),
    [
        ({"q": 1}, ArgumentValueError, "'q', expected names of parameters"),
        ({"k": 1.0}, ArgumentValueError, "one of 'k' and none of a parameter behind it"),
        ({"x": None}, ArgumentTypeError, "NoneType for 'x', expected no default"),
        ({"k": float("inf")}, ArgumentTypeError, "for 'k', expected float or int"),
        ({"k": True}, ArgumentTypeError, "for 'k', expected float or int"),
        ({"n": 1.0}, ArgumentTypeError, "for 'n', expected int"),
        (
            {"n": 1 << 31},
            ArgumentValueError,
            "2147483648 for 'n', expected an integer, -2147483648 to 2147483647",
        ),
        ({"n": 10**5000}, ArgumentValueError, "for 'n', expected an integer"),
        ({"k": 10**400, "n": 1}, ArgumentValueError, "for 'k', expected a number that fits float32"),
        ({"k": 1e39, "n": 1}, ArgumentValueError, "'1e+39' for 'k', expected a number that fits float32"),
        ({"k": 5e-324, "n": 1}, ArgumentValueError, "'5e-324' for 'k', expected"),
    ],
)
def test_another_default_is_refused(defaults, error, said):
    params = ScalarParam("k", dtype("float32")), ScalarParam("n", dtype("int32"))
    with pytest.raises(error) as caught:
        spelled(*params, **defaults)
    assert caught.value.argument == "defaults"
    assert said in str(caught.value)


@pytest.mark.parametrize(
    "name",
    [
        "scale",
        "a::b::c",
        "a::",
        "::b",
        "a.b::c",
        "a::b.out",
        "aten::add",
        "a b::c",
        "a::class",
        "del::a",
        "a::None",
        "a::NoneType",
        "_::a",
    ],
)
def test_what_is_no_name_of_an_operator_is_refused(name):
    with pytest.raises(ArgumentValueError) as caught:
        OperatorName.of(name)
    assert caught.value.argument == "name"


def test_a_name_is_a_text():
    with pytest.raises(ArgumentTypeError):
        OperatorName.of(3)
    assert str(OperatorName.of("mine::scale").beside("backward")) == "mine::scale_backward"
