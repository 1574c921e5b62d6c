"""Every mention of a header is seen, and what has no name is told apart from what only speaks of including."""

from __future__ import annotations

import time

import pytest

from trunnion.toolchain.directives import may_lead_out, may_paste, may_quote, mentions, quoted_names


@pytest.mark.parametrize(
    "text",
    [
        "#include H",
        "#import H",
        "#/**/include H",
        "%:include H",
        "??=include H",
        "/* a\n */ #include H",
        "#if __has_include(H)",
        "#define HAS(x) __has_include(x)",
        "#define HAS __has_include",
    ],
)
def test_what_a_macro_makes_up_has_no_name(text: str) -> None:
    assert "" in [mention.name for mention in mentions(text.encode())]


@pytest.mark.parametrize(
    "text",
    [
        "int x; // not #include at all",
        "#ifdef __has_include\n#endif",
        "#if defined(__has_include)",
        "include the house",
        "import the house",
        "int import = 1;",
        "int include = 1;",
        "#includes <a.h>",
        "#endif // __has_include",
        "/* without the\n   __has_include argument. */",
        "/* since\n   #include's own text */",
        "# else /* no __has_include */",
    ],
)
def test_what_only_speaks_of_including(text: str) -> None:
    assert mentions(text.encode()) == []


def test_questions_are_mentions() -> None:
    found = mentions(b'#if __has_include("a.h") || __has_include_next ( <b.h> ) || MY_HAS_INCLUDE(<c.h>)\n')
    assert [(mention.name, mention.quoted, mention.every) for mention in found] == [
        ("a.h", True, False),
        ("b.h", False, True),
        ("c.h", False, False),
    ]


def test_what_is_imported_is_a_mention() -> None:
    found = mentions(b'#import "a.h"\n# /* once */ import <b/c.h>\n')
    assert [(mention.name, mention.quoted) for mention in found] == [("a.h", True), ("b/c.h", False)]


def test_a_resource_is_a_mention() -> None:
    found = mentions(b'#embed "a.bin" limit(3)\n#if __has_embed(<b.bin>)\n#embed RESOURCE\n')
    assert [(mention.name, mention.quoted) for mention in found] == [
        ("a.bin", True),
        ("b.bin", False),
        ("", False),
    ]


def test_what_macros_spell_out() -> None:
    found = quoted_names(b'#define A "/x/a.h"\n# define B(x) <b.h>\n#define C 1\n')
    assert [mention.name for mention in found] == ["/x/a.h", "b.h"]


@pytest.mark.parametrize(
    "text",
    [
        '#define A(x, y) pick("b.h", x, "a.h")',
        '#include PICK("b.h", "a.h")',
        '#define Q \'"\' "a.h"',
        '#import M("a.h")',
    ],
)
def test_each_name_that_a_macro_has_or_is_given_is_seen(text: str) -> None:
    assert "a.h" in {mention.name for mention in quoted_names(text.encode())}


@pytest.mark.parametrize(
    ("text", "quotes", "leads_out"),
    [
        ("#define S(x) #x", True, False),
        ("#define S(x) %:x", True, False),
        ("#define CAT(a, b) a##b\n#define F(...) f(__VA_ARGS__, 1 / 2) // see above", False, False),
        ('#define A "../a.h"\n#include "/x/b.h"\n#include <../c.h>', False, False),
        ("#define P ../a.h", False, True),
        ("#define UP ..", False, True),
        ("#define P <../NAME>", False, True),
        ("#include S(/x/a.h)", False, True),
        ("#include S(\\\n../a.h)", False, True),
    ],
)
def test_what_macros_could_make_of_names_in_no_quotes(text: str, quotes: bool, leads_out: bool) -> None:
    assert (may_quote(text.encode()), may_lead_out(text.encode())) == (quotes, leads_out)


@pytest.mark.parametrize(
    "text",
    [
        "#if CAT(__has_,include)(<a.h>)",
        "#if CAT(__ha\\\ns,_include)(<a.h>)",
        "#define ASK __has_inc##lude_next",
        "#define ASK(x) _##x\n#if ASK(_has_include)(<a.h>)",
        "#if CAT(__,has_embed)(<a.bin>)",
        "#if CAT(__has_include,_next)(<a.h>)",
    ],
)
def test_a_word_that_asks_may_be_pasted_of_its_pieces(text: str) -> None:
    plain = text.encode()
    assert may_paste(plain) or mentions(plain), "one of them sees it"


@pytest.mark.parametrize(
    "text",
    [
        "#define CAT(a, b) a##b\n#if CAT(a, b)\n",
        "#if __has_include(<a.h>)\n#if __has_builtin(x) || __has_cpp_attribute(x) || __has_embed(<b>)\n",
        "int __hash, my_include, has_embedding, tvm_include_path;",
        '#include <pybind_include/a.h>\n#if __has_include_next("a.h")\n',
    ],
)
def test_what_is_no_piece_of_such_a_word(text: str) -> None:
    assert not may_paste(text.encode())


@pytest.mark.parametrize(
    "text",
    [
        "#if defined(__has_include) && __has_include(NAME)",
        "/* see #else */ #if __has_include(NAME)",
        " #endif */ #if __has_include(NAME)",
    ],
)
def test_a_question_behind_what_is_none(text: str) -> None:
    assert [mention.name for mention in mentions(text.encode())] == [""]


@pytest.mark.parametrize(
    "remark",
    [
        "// see /usr/include/*.h for the rest",
        "// #include/*.h is what they all have",
        "// they import/*.h, and embed /*.bin",
        'const char* pattern = "include/*.h";',
        "/* all of include/*.h */",
    ],
)
def test_a_remark_takes_no_include_away(remark: str) -> None:
    text = f'{remark}\n#include "a.h"\n#import "b.h"\n#embed "c.bin"\n/* the kernel */\n'
    assert {"a.h", "b.h", "c.bin"} <= {mention.name for mention in mentions(text.encode())}


@pytest.mark.parametrize("operand", [f"/*{' ' * 300}*/ H", "/**/ /**/ /**/ H", f'/*{"*" * 300}*/ "a.h"'])
def test_what_is_too_far_away_to_be_read_has_no_name(operand: str) -> None:
    assert [mention.name for mention in mentions(f"#include {operand}\n".encode())] == [""]


@pytest.mark.parametrize("before", ["int x; " * 1000, "/**/ " * 1000])
def test_a_line_that_is_too_long_to_be_read_may_say_anything(before: str) -> None:
    assert [mention.name for mention in mentions(f"{before}#include H\n".encode())] == [""]
    assert [mention.name for mention in mentions(f"/**/#{' ' * 5000}include <a.h>\n".encode())] == ["a.h"]


@pytest.mark.parametrize(
    "word",
    [
        "include ", "include/*", "#include/*\n", "# include M ", "#include <", "__has_include M ", "HAS_INCLUDE",
        "HAS_INCLUDE(<", "embed/*", "import ", "define x ", "#define A <",
    ],
)  # fmt: skip
def test_a_text_made_for_it_takes_no_quadratic_time(word: str) -> None:
    def seconds(count: int) -> float:
        text = word.encode() * count
        start = time.thread_time()
        mentions(text)
        quoted_names(text)
        may_quote(text)
        may_lead_out(text)
        return time.thread_time() - start

    few = min(seconds(500) for _ in range(3))
    assert seconds(8000) < 64 * few + 1, "16 times as much, of which quadratic time would make 256"
