from __future__ import annotations

import pytest

from trunnion.codegen.writer import SourceWriter


def test_lines_and_blocks() -> None:
    out = SourceWriter()
    out.line("a")
    with out.block("if x:"):
        out.lines("b", "", "c")
        with out.block("(", ")"):
            out.line("d")
    out.line("e")
    assert out.text() == "a\nif x:\n    b\n\n    c\n    (\n        d\n    )\ne\n"


def test_another_indent() -> None:
    out = SourceWriter("\t")
    with out.block("{", "}"):
        out.line("a")
    assert out.text() == "{\n\ta\n}\n"


@pytest.mark.parametrize(
    "text", ["a\nb", "a\n", "\n", "\r", "a\r\n", "\x0b", "\x0c", "\x1c", "\x85", "\u2028", "a\u2029"]
)
def test_a_line_break_was_not_escaped(text: str) -> None:
    with pytest.raises(ValueError, match="line break"):
        SourceWriter().line(text)


def test_a_block_ends_even_if_its_body_fails() -> None:
    out = SourceWriter()
    with pytest.raises(KeyError), out.block("if x:"):
        raise KeyError
    out.line("a")
    assert out.text().endswith("\na\n")
