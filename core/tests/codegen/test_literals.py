from __future__ import annotations

import ast
import enum

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trunnion.codegen.literals import python_string, python_tuple

ANY_TEXT = st.text(st.characters(exclude_categories=())) | st.sampled_from(
    ("'", '"', '"""', "\\", "\n", "\ud800", "\0", "{x}", "\u2028")
)


@given(ANY_TEXT)
def test_a_literal_reads_back(text: str) -> None:
    literal = python_string(text)
    assert ast.literal_eval(literal) == text
    assert literal.isascii()
    assert literal.isprintable()
    assert type(ast.parse(literal, mode="eval").body) is ast.Constant


class Word(enum.StrEnum):
    A = "a"


class Evil(str):
    __slots__ = ()

    def __repr__(self) -> str:
        return "__import__('os').abort()"

    __str__ = __repr__


@pytest.mark.parametrize("text", [Word.A, Evil("a")], ids=["StrEnum", "subclass"])
def test_a_subclass_has_no_say_in_its_literal(text: str) -> None:
    assert python_string(text) == "'a'"


@pytest.mark.parametrize(("items", "display"), [((), "()"), (("a",), "(a,)"), (["a", "b"], "(a, b)")])
def test_tuples(items: list[str], display: str) -> None:
    assert python_tuple(items) == display
