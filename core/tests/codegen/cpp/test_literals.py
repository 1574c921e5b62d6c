"""Text that a user chose, as it comes out of a C++ compiler."""

from __future__ import annotations

import struct
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trunnion.codegen.literals import cpp_name, cpp_string

ANY_TEXT = st.text(st.characters(exclude_categories=()))
HOSTILE = (
    "",
    *map(chr, range(0x180)),
    *('"', '"; abort(); "', 'R"(', "\\", "\\\n", "\\u0041", "\\N{DIGIT ONE}", "\r\n", "\x001", "\x7f8", "é9"),
    *(
        "??=",
        "??/",
        "??/\n",
        "???",
        "?" * 9,
        "%:%:",
        "<%",
        "//",
        "/* x",
        "*/",
        "#include <x>",
        "__LINE__",
        "%s%n",
    ),
    *(
        "\ud800",
        "\udfff0",
        "\ud83d\ude00",
        "\U0001f600",
        "\U0010ffff",
        "\u2028",
        "\u202e",
        "\ufeff",
        "a" * 70000,
    ),
)


@given(ANY_TEXT)
def test_a_literal_is_one_line_of_ascii(text: str) -> None:
    literal = cpp_string(text)
    assert literal.isascii()
    assert literal.isprintable()
    assert literal[0] == literal[-1] == '"'
    assert '"' not in literal[1:-1]
    assert "?" not in literal


class Evil(str):
    __slots__ = ()

    def __str__(self) -> str:
        return '"; abort(); "'

    encode = __iter__ = __repr__ = __format__ = __str__  # type: ignore[assignment]  # what a subclass can do


def test_a_subclass_has_no_say_in_its_literal() -> None:
    assert cpp_string(Evil("a")) == '"a"'
    assert cpp_name(Evil("a")) == '"a"_name'


# With the standard alone, trigraphs are replaced; the compilers' own dialects know more escapes.
@pytest.mark.parametrize("std", ["c++14", "gnu++17"])
def test_a_compiler_reads_the_same_bytes(native: Any, std: str) -> None:
    random = Random(20)  # noqa: S311 - not for secrets
    drawn = ["".join(chr(random.randrange(0x500)) for _ in range(random.randrange(40))) for _ in range(100)]
    drawn += ["".join(random.choices('?=/\\"\n01a', k=9)) for _ in range(100)]
    texts = [*HOSTILE, *drawn]
    run = native("literals", "".join(f"{cpp_name(text)},\n" for text in texts), std)
    rest = run(b"")
    for text in texts:
        (size,) = struct.unpack_from("<I", rest)
        assert rest[4 : 4 + size] == text.encode("utf-8", "surrogatepass")
        rest = rest[4 + size :]
    assert not rest
