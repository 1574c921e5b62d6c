"""Whatever way a text spells it, that the assembler is to read a file is seen."""

from __future__ import annotations

import time

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
        "char c = u8'a'; asm(\".incbin x\"); char d = 'b';",
        'asm volatile".incbin x";',
        'int lone = \'; asm(".incbin x");',
        'R"a(a text that does not end)"',  # of which nobody can tell
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


@pytest.mark.parametrize(
    "text",
    [
        b'R"(' * 40_000,
        b'R"abcdefghijklmnop( )abcdefghijklmno' * 40_000,
        b'"' + b'\\"' * 40_000,
        b"'" + b"\\'" * 40_000 + b"\\",
        b"a" * 40_000 + b'"',
        b'"' + b"\\N{" * 40_000 + b'"',
    ],
    ids=["raw", "delimited", "plain", "character", "name", "named"],
)
def test_a_text_made_for_it_takes_no_quadratic_time(text: bytes) -> None:
    """Each took half a minute and more, or an hour; a tenth of a second is much."""
    before = time.process_time()
    may_read_files(text)
    assert time.process_time() - before < 3.0
