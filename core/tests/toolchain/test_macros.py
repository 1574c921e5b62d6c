"""Macros of a part, as a compiler is told them."""

from __future__ import annotations

import pytest

from trunnion.errors import ProgramError
from trunnion.model.code import DeviceCode
from trunnion.toolchain.macros import macro_definitions


def macros(*defines: tuple[str, str | None]) -> tuple[str, ...]:
    return tuple(macro_definitions(DeviceCode("c++", "", defines=defines), "code"))


def test_a_macro_is_its_name_and_its_value_if_it_has_one() -> None:
    given = ("A", None), ("B", "2"), ("F(x)", "x + 1"), ("A", "1"), ("C", "")
    assert macros(*given) == ("A", "B=2", "F(x)=x + 1", "A=1", "C=")


@pytest.mark.parametrize("name", ["A B", "1", "A\n", "\u00e4"])
def test_a_name_that_is_none_is_refused(name: str) -> None:
    with pytest.raises(ProgramError, match="expected a C identifier") as caught:
        macros((name, None))
    assert caught.value.field == "code.defines[0]"


@pytest.mark.parametrize("value", ["x\ny", "x\n", "\n", "x\r", "x\u2028y", "x\u2028"], ids=ascii)
def test_a_value_is_one_line(value: str) -> None:
    with pytest.raises(ProgramError, match="for macro A, expected one line") as caught:
        macros(("B", "1"), ("A", value))
    assert caught.value.field == "code.defines[1]"


def test_a_macro_has_one_value() -> None:
    with pytest.raises(ProgramError, match="macro A again, with another value") as caught:
        macros(("A", "1"), ("A", "2"))
    assert caught.value.field == "code.defines[1]"
    with pytest.raises(ProgramError, match="macro A again"):
        macros(("A(x)", "1"), ("A", "1"))
