"""Names that people could choose, the hostile ones above all."""

from __future__ import annotations

import builtins
import keyword
from types import MappingProxyType
from typing import TYPE_CHECKING

from hypothesis import strategies as st

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["HOSTILE", "names"]

_LAUNCHER_WORDS = (
    "stream", "out", "device", "args", "context", "launch", "make", "self", "cls", "struct", "ctypes", "Tensor",
    "t0", "s0", "d0_0", "p0", "m0", "map0", "kernel0", "main", "plan", "runtime", "driver", "KERNELS", "None",
)  # fmt: skip
_CPP_WORDS = (
    "int",
    "void",
    "operator",
    "template",
    "CUtensorMap",
    "blockIdx",
    "__global__",
    "alignas",
    "nullptr",
)
_QUOTES = (
    "'",
    '"',
    '"""',
    "'''",
    "\\",
    'a"b',
    "a'b",
    "\\'",
    '\\"',
    "{",
    "}",
    "{0}",
    "%s",
    "${x}",
    "`",
    "//",
    "/*",
    "*/",
)
_LINES = (
    "\n",
    "\r\n",
    "a\nb",
    "\t",
    "\x0b",
    "\x0c",
    "\x85",
    "\u2028",
    "\u2029",
    "x\\\ny",
    "#",
    "\nimport os\n",
)

HOSTILE: Mapping[str, st.SearchStrategy[str]] = MappingProxyType(
    {
        "python keyword": st.sampled_from(sorted([*keyword.kwlist, *keyword.softkwlist])),
        "python builtin": st.sampled_from([name for name in dir(builtins) if not name.startswith("_")]),
        "c++ word": st.sampled_from(_CPP_WORDS),
        "launcher word": st.sampled_from(_LAUNCHER_WORDS),
        "quotes and escapes": st.sampled_from(_QUOTES),
        "line breaks": st.sampled_from(_LINES),
        "unicode": st.sampled_from(("\u03b1", "ﬁ", "é", "e\u0301", "名前", "😀", "\u202e", "\ufeff", "\xa0")),
        "nul": st.sampled_from(("\0", "a\0b", "a\0")),
        "lone surrogate": st.sampled_from(("\ud800", "a\udfff", "\udc80b")),
        "long": st.builds(
            lambda letter, tail: letter * 10_000 + tail, st.sampled_from("aé'"), st.sampled_from("abc")
        ),
        "digits and spaces": st.sampled_from(("0", "1x", " ", "a b", "-1", "a-b", "a.b", "a[0]")),
    }
)
"""The classes of names that a launcher must survive, each with a strategy."""

_KINDS = (st.text("abcdefgxyz_", min_size=1, max_size=4), st.one_of(*HOSTILE.values()))
_NAMES = st.booleans().flatmap(_KINDS.__getitem__)  # made once: names are drawn by the dozen for each program


def names() -> st.SearchStrategy[str]:
    """Return a strategy of names: half of them plain, the others hostile, every class as likely as the next."""
    return _NAMES
