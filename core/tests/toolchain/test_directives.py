"""Every mention of a header is seen, and what has no name is told apart from what only speaks of including."""

from __future__ import annotations

import pytest

from trunnion.toolchain.directives import may_paste, mentions, quoted_names


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
