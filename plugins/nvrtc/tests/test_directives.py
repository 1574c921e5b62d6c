"""Every spelling of an include that NVRTC follows is seen."""

from __future__ import annotations

from pathlib import Path

import pytest

from trunnion.toolchain.directives import mentions
from trunnion_nvrtc.compiler.headers import toolkit_directories
from trunnion_nvrtc.compiler.program import Program

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


def test_cudas_own_headers_split_no_include() -> None:
    for directory in toolkit_directories():
        for path in Path(directory).rglob("*.h*"):
            if path.is_file():
                text = path.read_bytes()
                usual = {mention.name for mention in mentions(text, usual=True)}
                assert {mention.name for mention in mentions(text)} <= usual, path
