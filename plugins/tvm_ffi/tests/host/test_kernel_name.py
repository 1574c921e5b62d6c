"""Kernel names are C++ name expressions, and nothing else reaches the compiler."""

from __future__ import annotations

import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from trunnion.errors import ProgramError
from trunnion.testing.strategies.names import names
from trunnion_tvm_ffi.compiler.kernel_name import kernel_expression

GOOD = {
    "scale": "scale",
    "_x9": "_x9",
    " scale ": "scale",
    "ns::scale<float>": "ns::scale<float>",
    "::scale": "::scale",
    "f<>": "f<>",
    "f < int , 3 >": "f<int,3>",
    "f<unsigned  long const *, -3, 0x1Fu, 4ull>": "f<unsigned long const*,-3,0x1Fu,4ull>",
    "f< ::ns::T>": "f< ::ns::T>",
    "f<::ns::T>": "f< ::ns::T>",
    "f<g<h<int>>, &other, &ns::more<1>>": "f<g<h<int>>,&other,&ns::more<1>>",
    "S<int>::run<true>": "S<int>::run<true>",
    "f<T &&, const U&>": "f<T&&,const U&>",
    "f<a_ _b>": "f<a_ _b>",
}

HOSTILE = (
    "",
    " ",
    "a b",
    "a;",
    "a; int x",
    "f()",
    "f<(1)>",
    "f<1 2>",
    "f<a,>",
    "f<,a>",
    "f<",
    "f<a",
    "f>",
    "f<a>>",
    "a::",
    "a<b>c",
    "-a",
    "*a",
    "&a",
    "f<-x>",
    "f<--1>",
    "f<'a'>",
    'f<"a">',
    "f/**/",
    "f//",
    "f<a*b>",
    "f<a&b>",
    "f<1.5>",
    "f<3x>",
    "12",
    "a\nb",
    "a\n#include <x>",
    "a\t",
    "a\r",
    "a\0",
    "a\\",
    "f#",
    "f%:",
    "f<:",
    "f??<",
    "f[0]",
    "{f}",
    "~f",
    "f=0",
    "f|g",
    "operator()",
    "operator+",
    "naïve",
    "f<ｉnt>",  # noqa: RUF001 - a letter that looks like another
    "٣",
    "f<٣>",
    "x" * 2001,
    "f<" * 33 + "a" + ">" * 33,
)


@pytest.mark.parametrize(("given", "wanted"), GOOD.items())
def test_names_have_one_spelling(given: str, wanted: str) -> None:
    assert kernel_expression(given, "k") == wanted
    assert kernel_expression(wanted, "k") == wanted


@pytest.mark.parametrize("name", HOSTILE)
def test_what_could_be_other_code_is_refused(name: str) -> None:
    with pytest.raises(ProgramError) as caught:
        kernel_expression(name, "kernels[3].name")
    assert caught.value.field == "kernels[3].name"
    assert "such as 'scale'" in caught.value.message


@given(st.one_of(names(), st.text(alphabet="ab_1 :<>,*&-\n\"'();#/\\")))
@example("f<::a>")
def test_whatever_is_accepted_is_made_of_harmless_tokens(name: str) -> None:
    try:
        found = kernel_expression(name, "k")
    except ProgramError:
        return
    assert re.fullmatch(r"[A-Za-z0-9_:<>,*& -]+", found)
    assert found.count("<") == found.count(">")
    assert "<:" not in found
    assert kernel_expression(found, "k") == found
