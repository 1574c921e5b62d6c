"""Every spelling of an include that NVRTC follows is seen."""

from __future__ import annotations

from pathlib import Path

import pytest

from trunnion_nvrtc.directives import mentions, quoted_names
from trunnion_nvrtc.headers import toolkit_directories
from trunnion_nvrtc.program import Program

SPELLINGS = [
    '#include "v.h"',
    "#include <v.h>",
    "  #  include\t<v.h>",
    '#include /* a */ "v.h"',
    '#include/**/"v.h"',
    '/* a */ # /* b\n */ include "v.h"',
    '#/**/include "v.h"',
    '#incl\\\nude "v.h"',
    '#include \\\n"v.h"',
    '#include "v\\\n.h"',
    '#incl\\\r\nude "v.h"',
    '%:include "v.h"',
    '%\\\n:include "v.h"',
    '??=include "v.h"',
    '#incl??/\nude "v.h"',
    '#\vinclude "v.h"',
    '#include\f"v.h"',
    '#\rinclude "v.h"',
]


@pytest.mark.parametrize("text", SPELLINGS)
def test_a_spelling_is_seen_and_nvrtc_takes_it(text: str) -> None:
    assert "v.h" in [mention.name for mention in mentions(text.encode())]
    source = f'{text}\n__device__ int n = VALUE;\nextern "C" __global__ void k(int* x) {{ x[0] = n; }}'
    with Program(source, "k.cu", [("v.h", "#define VALUE 1\n")]) as program:
        assert program.run(["--gpu-architecture=sm_90a", "--std=c++14"]).succeeded


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


def test_what_macros_spell_out() -> None:
    found = quoted_names(b'#define A "/x/a.h"\n# define B(x) <b.h>\n#define C 1\n')
    assert [mention.name for mention in found] == ["/x/a.h", "b.h"]


def test_cudas_own_headers_split_no_include() -> None:
    for directory in toolkit_directories():
        for path in Path(directory).rglob("*.h*"):
            if path.is_file():
                text = path.read_bytes()
                usual = {mention.name for mention in mentions(text, usual=True)}
                assert {mention.name for mention in mentions(text)} <= usual, path
