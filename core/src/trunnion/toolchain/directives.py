"""Which headers a text names: every spelling of ``#include`` and ``#embed`` that C++ allows, and a little more.

Nothing is preprocessed: ``#if`` and comments around a directive do not count, so a name too many is found now and
then, which costs a look at a file. A name too few would let a cache give out a stale image.
"""

from __future__ import annotations

import re
from typing import NamedTuple

__all__ = ["Mention", "mentions", "quoted_names"]

_BLANKS = rb"(?:[ \t\v\f\r]|/\*.*?\*/)*"
_NAME = rb'"([^"\n]+)"|<([^>\n]+)>'
_OPERAND = rb"(?![A-Za-z0-9_])" + _BLANKS + rb"(\(?)" + _BLANKS + rb"(?:" + _NAME + rb"|([^\n]*))"
_INCLUDE = re.compile(rb"include(_next)?" + _OPERAND, re.DOTALL)
_EMBED = re.compile(rb"embed()" + _OPERAND, re.DOTALL)
# CUDA's headers ask through macros of their own whether there is a header: _CCCL_HAS_INCLUDE(<cuda_fp16.h>).
_WRAPPED_QUESTION = re.compile(rb"HAS_INCLUDE\w*[ \t]*\([ \t]*(?:" + _NAME + rb")")
_QUESTION = b"__has_"
_NO_QUESTION = re.compile(rb"(?:def|defined)[ \t(]*__has_|(?:#|%:)[ \t]*(?:else|endif)\b")
_BLANK = re.compile(rb"[ \t\v\f\r]*")
_MACRO = re.compile(rb"[A-Za-z_$\\(\x80-\xff]")  # what a name begins with; comments go on in other ways
_DEFINED = re.compile(rb"define[ \t]+\w+[^\n]*?(?:" + _NAME + rb")")
_TRIGRAPHS = (
    (b"??=", b"#"),
    (b"??/", b"\\"),
    (b"??'", b"^"),
    (b"??(", b"["),
    (b"??)", b"]"),
    (b"??!", b"|"),
    (b"??<", b"{"),
    (b"??>", b"}"),
    (b"??-", b"~"),
)


class Mention(NamedTuple):
    """One header that a text names."""

    name: str
    """As it is written; empty for what a macro stands for."""

    quoted: bool
    """Whether it is in quotes, so that it is looked for beside the file that names it too."""

    every: bool
    """Whether the file that is wanted may be one further down the search path (``#include_next``)."""


def mentions(text: bytes, *, usual: bool = False) -> list[Mention]:
    """Return what a text includes or embeds, or asks for by ``__has_include`` or ``__has_embed``, in order.

    Parameters
    ----------
    text
        The text.
    usual
        Whether it is known that no line end and no trigraph stands within an include, as in CUDA's own headers:
        of the megabytes that these are, to look for such takes half of the time.
    """
    if usual:
        return _mentions(text)
    plain = _spliced(text)
    found = _mentions(plain)
    if b"?" in plain and b"??" in plain:
        # Whether there are trigraphs depends on the language standard, so the text is read both ways.
        for trigraph, sign in _TRIGRAPHS:
            plain = plain.replace(trigraph, sign)
        found += _mentions(_spliced(plain))
    return found


def quoted_names(text: bytes) -> list[Mention]:
    """Return the headers that the macros of a text could stand for."""
    return [
        Mention(_text(match[1] or match[2]), match[1] is not None, every=False)
        for match in _DEFINED.finditer(_spliced(text))
    ]


def _spliced(text: bytes) -> bytes:
    # Looking for one byte first takes a tenth of the time; CUDA's headers are megabytes.
    if b"\r" in text:
        text = text.replace(b"\\\r\n", b"")
    return text.replace(b"\\\n", b"") if b"\\" in text else text


def _mentions(text: bytes) -> list[Mention]:
    found = []
    matches = [*_INCLUDE.finditer(text), *(_EMBED.finditer(text) if b"embed" in text else ())]
    for match in matches:
        further, parenthesis, quoted, angled, rest = match.groups()
        line = text[text.rfind(b"\n", 0, match.start()) + 1 : match.start()]
        question = line.endswith(_QUESTION)
        if not question and not line.rstrip(b" \t\v\f\r").endswith((b"#", b"%:", b"*/")):
            continue
        name = quoted or angled or b""
        if name or _stands_for_a_name(line, parenthesis + rest, question=question):
            found.append(Mention(_text(name), quoted is not None, bool(further)))
    if b"HAS_INCLUDE" in text:
        found += [
            Mention(_text(match[1] or match[2]), match[1] is not None, every=False)
            for match in _WRAPPED_QUESTION.finditer(text)
        ]
    return found


def _stands_for_a_name(line: bytes, operand: bytes, *, question: bool) -> bool:
    """Whether a macro names the header; else a comment or a text only speaks of including."""
    if question:
        asks = operand.startswith(b"(") or b"define" in line
        return asks and not _NO_QUESTION.search(line)
    before = line.rstrip(b" \t\v\f\r").removesuffix(b"#").removesuffix(b"%:")
    return (
        _MACRO.match(operand.strip()) is not None
        and _BLANK.fullmatch(before.rpartition(b"*/")[2]) is not None
    )


def _text(name: bytes) -> str:
    return name.decode("utf-8", "replace")
