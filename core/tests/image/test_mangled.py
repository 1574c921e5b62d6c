"""The kinds that a kernel's mangled name tells: what is read is what compilers write, all else is no opinion."""

from __future__ import annotations

from typing import Any

import pytest

import trunnion
from trunnion import DeviceCode, ProgramBuilder, Symbol, const
from trunnion.contract.compiler import CompileRequest
from trunnion.contract.spec import Target
from trunnion.errors import ParameterMismatchError
from trunnion.image.mangled import parameter_kinds
from trunnion.model.member_kind import MemberKind
from trunnion.model.plan import KernelSignature
from trunnion.selection import load_part

OTHER, S, U, F, P = MemberKind
N = Symbol("n", max=1 << 30)


@pytest.mark.parametrize(
    ("declaration", "name", "kinds"),
    [
        ("void k(const float* x, float* y, int n, float a)", "k", (P, P, S, F)),
        ("void k(const float* x, const float* y, float* z, float* w)", "k", (P, P, P, P)),
        ("void k(const int* const* x, const int* const* y, const int* z, const int n)", "k", (P, P, P, S)),
        ("void k(volatile int* x, const volatile int* y, volatile int* z, double d)", "k", (P, P, P, F)),
        ("void k(unsigned a, long b, unsigned long long c, char d, bool e, short f)", "k", (U, S, U, S, U, S)),
        ("void k(float* __restrict__ x, const float* __restrict__ y, float z)", "k", (P, P, F)),
        ("void k(C c, C* p, C* q, const C* r, int n)", "k", (OTHER, P, P, P, S)),
        ("void k(E e, float f)", "k", (OTHER, F)),
        ("namespace a::b { __global__ void k(C c, a::D* d, a::D* e, int n) {} }", "a::b::k", (OTHER, P, P, S)),
        ("void k(a::D d, a::F f, const a::D* p, int n, float x)", "k", (OTHER, OTHER, P, S, F)),
        ("void k(a::D::I i, a::D d, a::D::I* p, float x)", "k", (OTHER, OTHER, P, F)),
        ("namespace a { __global__ void k(float* x, float* y, int n) {} }", "a::k", (P, P, S)),
        ("void k(float x, T<3> t, int n)", "k", (F,)),
        ("void k(int (*x)[3], int n)", "k", ()),
        ("template <class X> __global__ void k(X* x, float y) {}", "k<int>", ()),
    ],
)  # fmt: skip
def test_names_are_read_as_the_compiler_writes_them(declaration: str, name: str, kinds: Any) -> None:
    types = "struct C { int c; }; enum E : int { e }; template <int N> struct T { int t; };\n"
    types += "namespace a { struct D { int d; struct I { int i; }; }; struct F { float f; }; }\n"
    text = declaration if "__global__" in declaration else f"__global__ {declaration} {{}}"
    symbol = _symbol(types + text, name)
    assert symbol.startswith("_Z")
    assert parameter_kinds(symbol)[: len(kinds)] == kinds
    assert bool(parameter_kinds(symbol)) == bool(kinds)


def _symbol(source: str, name: str) -> str:
    request = CompileRequest(
        code=(DeviceCode("cuda", source),),
        kernels=(KernelSignature(name, ()),),
        target=Target.parse("sm_90a"),
        options={},
        accepts=("cubin",),
    )
    spec = trunnion.default_registry().compiler("nvrtc")
    return load_part(spec, spec.load_compiler)().compile(request).kernels[0].symbol


@pytest.mark.parametrize(
    "symbol",
    ["", "k", "_Z", "_Z1", "_Z9k", "_Z1kS_", "_Z1kPS0_", "_Z1kQ", "_ZN1k", "_ZL1ki", "_Z1kIfEvPT_", "_Z99ki", "_Z1kP"],
)  # fmt: skip
def test_of_what_is_not_read_nothing_is_said(symbol: str) -> None:
    assert parameter_kinds(symbol) == ()


SOURCE = (
    "__global__ void k(const float* x, float* y, int n, float a, unsigned long long u) { y[n] = a * x[u]; }"
)


def compiled(*args: Any) -> None:
    p = ProgramBuilder("h", DeviceCode("cuda", SOURCE, target="sm_90a"))
    x, y = p.input("x", "float32", (N,)), p.output("y", "float32", (N,))
    known = {"x": x, "y": y, "x.at": x.at(1)}
    p.launch(
        "k", args=tuple(known.get(one, one) if isinstance(one, str) else one for one in args), grid=1, block=1
    )
    trunnion.compile(p.build(), "nvrtc", cache=False)


@pytest.mark.parametrize(
    ("args", "ordinal", "said", "kind"),
    [
        (("x", "y", const(1.0, "float32"), const(1.0, "float32"), N), 2, "float32 (4 bytes)", "an integer"),
        (("x", "y", N.cast("int32"), N.cast("int32"), N), 3, "int32 (4 bytes)", "a floating-point number"),
        ((N, "y", N.cast("int32"), const(1.0, "float32"), N), 0, "int64 (8 bytes)", "a pointer"),
    ],
)
def test_an_argument_of_another_kind_is_refused(args: Any, ordinal: int, said: str, kind: str) -> None:
    with pytest.raises(ParameterMismatchError) as caught:
        compiled(*args)
    assert (caught.value.ordinal, caught.value.declared) == (ordinal, said)
    assert caught.value.actual == f"{kind}, by its mangled name"


def test_what_may_be_meant_is_compiled() -> None:
    compiled("x.at", "y", N.cast("uint32"), const(1.0, "float32"), "x")
    compiled(const(None), "y", N.cast("int32"), (trunnion.real(N) / 2).cast("float32"), N)
