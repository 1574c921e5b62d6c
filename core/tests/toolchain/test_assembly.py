"""Whatever way a text spells it, that the assembler is to read a file is seen."""

from __future__ import annotations

import pytest

from trunnion.toolchain.assembly import may_read_files


@pytest.mark.parametrize(
    "text",
    [
        'asm(".incbin \\"x\\"");',
        'asm(".include \\"x\\"");',
        'asm(".inc" "bin \\"x\\"");',
        'asm("." /**/\n  "incbin x");'.replace("/**/", ""),
        'asm(".inc"\n#define BETWEEN 1\n"bin x");',
        'asm("\\x2eincbin x");',
        'asm("\\56\\151ncbin x");',
        'asm("\\u002eincbin x \\N{FULL STOP}");',
        'asm("\\N{FULL STOP}incbin x");',
        'asm("\\x{2e}incbin x");',
        'asm(R"(.incbin "x")");',
        'asm(u8".inc" u8R"a(bin )" x)a");',
        "int a = 1'000; asm(\"it's .incbin x\");",
        "char c = '\"'; asm(\".incbin x\"); char d = '\"';",
        '__attribute__((section(".text\\n.include \\"x\\"\\n"))) int f();',
        'asm(".macro m x\\n.\\\\x\\\\()bin \\"y\\"\\n.endm\\nm inc");',
        'asm(".irp x, incbin\\n.\\\\x \\"y\\"\\n.endr");',
        'asm(".INCBIN x");',
    ],
)
def test_a_spelling_is_seen(text: str) -> None:
    assert may_read_files(text.encode())


@pytest.mark.parametrize(
    "text",
    [
        "",
        "int x;",
        'const char* s = "incbin";',
        '#define UNUSED ".incbin"\nint x;',
        'f(".inc", "bin");',
        'int f() asm(".inc"); int g() asm("bin");',
        'printf("%d.%d included.\\n", 1, 2);',
        "int incbin = 1'000'000; char dot = '.';",
        'operator""_x;',
        '"never closed',
    ],
)
def test_what_reads_nothing(text: str) -> None:
    assert not may_read_files(text.encode())
