"""Which headers a text names: every spelling of ``#include``, ``#import`` and ``#embed``, and a little more.

Nothing is preprocessed: ``#if`` and comments around a directive do not count, so a name too many is found now and
then, which costs a look at a file. A name too few would let a cache give out a stale image.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["Mention", "may_lead_out", "may_paste", "may_quote", "mentions", "quoted_names"]

_MOST_NAME = 4096  # bytes: no system opens a path that is longer
_MOST_LINE = 4096
_NAME = rb'"([^"\n]{1,%d})"|<([^>\n]{1,%d})>' % (_MOST_NAME, _MOST_NAME)
_BLANKS = rb"[ \t\v\f\r]*"
# All is bounded, and no match takes a text in which another could begin: nothing keeps a remark from speaking of
# include/*.h, and a text made for it must not take quadratic time.
_GAP = _BLANKS + rb"(?:/\*.{0,200}?\*/" + _BLANKS + rb"){0,2}"
_OPERAND = re.compile(_GAP + rb"(\(?)" + _GAP + rb"(?:" + _NAME + rb"|(?=(/\*|[^\n]?)))", re.DOTALL)
_INCLUDE = re.compile(rb"include(_next)?(?![A-Za-z0-9_])")
_EMBED = re.compile(rb"embed()(?![A-Za-z0-9_])")
_IMPORT = re.compile(rb"import()(?![A-Za-z0-9_])")
_RARE = ((b"embed", _EMBED), (b"import", _IMPORT))
# CUDA's headers ask through macros of their own whether there is a header: _CCCL_HAS_INCLUDE(<cuda_fp16.h>).
_WRAPPED_QUESTION = re.compile(rb"HAS_INCLUDE\w*(?:[ \t]*\([ \t]*(?:" + _NAME + rb"))?")
_QUESTION, _COMMENT = b"__has_", b"/*"
_IF_IT_IS_KNOWN = re.compile(rb"(?:def|defined)[ \t(]*__has_$")
_REMARK = re.compile(rb"[ \t]*(?:#|%:)[ \t]*(?:else|endif)\b(?!.*\*/)")  # behind which nothing counts
_BLANK = re.compile(rb"[ \t\v\f\r]*")
_MACRO = re.compile(rb"[A-Za-z_$\\(\x80-\xff]")  # what a name begins with; comments go on in other ways
# Where a macro is defined, or stands in an include's line: each name there, whatever signs of quotes stand before it.
_MADE = re.compile(rb"(?:define|include(?:_next)?|import|embed)(?![A-Za-z0-9_])(?![ \t]*[\"<])[^\n]*")
# In linear time: no name goes on beyond a sign that begins another.
_ANY_NAME = re.compile(rb'(?="([^"\n]{1,%d})"|<([^<>\n]{1,%d})>)' % (_MOST_NAME, _MOST_NAME))
_QUOTES = re.compile(rb"[^#](?:#|%:)(?![#:])[ \t]*[A-Za-z_]")
_QUOTED = re.compile(rb'"[^"\n]*"')
_OUT = re.compile(rb"(?<!\.)\.\.(?!\.)|(?:^|[\s(,<])/[A-Za-z_.]")
# What a word that asks could be pasted of by ``##``: at least one of these pieces is in the text, or in another one.
_WORDS = (b"__has_include_next", b"__has_embed")
_PIECE = re.compile(rb"__ha\w*|\w{0,5}_(?:include|embed)\w*")
_LONGER = re.compile(rb"__has_include[ \t]*(?:,|##|%:)")  # of which `__has_include_next` is pasted
_PIECES = frozenset(
    piece
    for word in (*_WORDS, b"__has_include")
    for piece in (
        *(word[:end] for end in range(len(b"__ha"), len(word))),
        *(word[start:] for start in range(1, len(b"__has_"))),
    )
) - {*_WORDS, b"__has_include"}  # fmt: skip
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
    """Return what a text includes, imports or embeds, or asks for by ``__has_include`` or ``__has_embed``.

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


def may_paste(text: bytes) -> bool:
    """Return whether a macro could make up ``__has_include`` or ``__has_embed`` of pieces in a text (``##``).

    Then nobody can tell which headers it asks for.
    """
    if b"__ha" not in text and b"_include" not in text and b"_embed" not in text:
        return False
    plain = _spliced(text)
    return _LONGER.search(plain) is not None or any(
        match[0] in _PIECES and not plain[match.start() - 1 : match.start()].isalnum()
        for match in _PIECE.finditer(plain)
    )


def quoted_names(text: bytes) -> list[Mention]:
    """Return the headers that the macros of a text could stand for, or be given to."""
    return [name for made in _MADE.findall(_spliced(text)) for name in _named(_ANY_NAME, made)]


def may_quote(text: bytes) -> bool:
    """Return whether a macro could put something into quotes (``#``): it may be a name that stands in none."""
    return any(map(_QUOTES.search, _MADE.findall(_spliced(text))))


def may_lead_out(text: bytes) -> bool:
    """Return whether a macro could make up the name of a header, of what is in no quotes, that leads out of a folder.

    Then nobody can tell where the header lies: ``#define NAME(x) #x`` makes one of ``NAME(../a.h)``.
    """
    return any(_OUT.search(_QUOTED.sub(b"", made)) for made in _MADE.findall(_spliced(text)))


def _spliced(text: bytes) -> bytes:
    # Looking for one byte first takes a tenth of the time; CUDA's headers are megabytes.
    if b"\r" in text:
        text = text.replace(b"\\\r\n", b"")
    return text.replace(b"\\\n", b"") if b"\\" in text else text


def _mentions(text: bytes) -> list[Mention]:
    # A pattern that begins with one word is found several times as fast as one that begins with either of two.
    patterns = [_INCLUDE, *(pattern for word, pattern in _RARE if word in text)]
    found = [mention for pattern in patterns for mention in _behind(text, pattern)]
    return found + _named(_WRAPPED_QUESTION, text) if b"HAS_INCLUDE" in text else found


def _behind(text: bytes, word: re.Pattern[bytes]) -> Iterator[Mention]:
    """Yield what stands behind a word wherever it is a directive, or ends a question."""
    start = last = 0
    for match in word.finditer(text):
        here = match.start()
        start = max(start, text.rfind(b"\n", last, here) + 1)
        last = match.end()
        whole = here - start <= _MOST_LINE
        line = text[start if whole else here - _MOST_LINE : here]
        bare = line.rstrip(b" \t\v\f\r")
        question = line.endswith(_QUESTION)
        if not question and not bare.endswith((b"#", b"%:", b"*/")) and (bare or whole):
            continue
        operand = _OPERAND.match(text, last)
        if operand is None:  # it takes an empty text, too
            continue
        parenthesis, quoted, angled, sign = operand.groups()
        name = quoted or angled or b""
        # Where a line is too long to look at all of it, nobody knows.
        if name or not whole or _stands_for_a_name(line, parenthesis or sign, question=question):
            yield Mention(_text(name), quoted is not None, bool(match[1]))


def _named(pattern: re.Pattern[bytes], text: bytes) -> list[Mention]:
    """Return the headers that the matches of a pattern name, if they name any."""
    matches = (match for match in pattern.finditer(text) if match[1] or match[2])
    return [Mention(_text(match[1] or match[2]), match[1] is not None, every=False) for match in matches]


def _stands_for_a_name(line: bytes, operand: bytes, *, question: bool) -> bool:
    """Whether a macro names the header; else a comment or a text only speaks of including.

    Parameters
    ----------
    line
        What stands before the word.
    operand
        The sign behind it; of a comment that is too long to look behind it, what begins that.
    question
        Whether the word ends one.
    """
    if question:
        asks = operand in (b"(", _COMMENT) or b"define" in line
        return asks and not _IF_IT_IS_KNOWN.search(line) and not _REMARK.match(line)
    before = line.rstrip(b" \t\v\f\r").removesuffix(b"#").removesuffix(b"%:")
    return (operand == _COMMENT or _MACRO.match(operand) is not None) and _BLANK.fullmatch(
        before.rpartition(b"*/")[2]
    ) is not None


def _text(name: bytes) -> str:
    return name.decode("utf-8", "replace")
