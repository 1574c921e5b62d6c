"""Every mention of a header is seen, and what has no name is told apart from what only speaks of including."""

from __future__ import annotations

import pytest

from trunnion.toolchain.directives import mentions, quoted_names


@pytest.mark.parametrize(
    "text",
    [
        "#include H",
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
