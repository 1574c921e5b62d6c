"""Whether a preprocessed text may make the assembler read a file, of which no preprocessor knows.

What an assembler is given comes of the text's string literals, in ``asm`` and in names of sections. So all of them are
read as the compiler reads them: joined where they stand together, with their escapes resolved.
"""

from __future__ import annotations

import re

__all__ = ["may_read_files"]

# Whatever begins one of these ends it, at the end of its line if need be: of a text made for it, in which nothing ends,
# each sign would be the beginning of another search for the end. Of a gap, which may be a whole text, each holds only
# so much at a time, and none is searched for a shorter one: that takes memory.
_PREFIX = rb"(?:u8|[uUL])?"
_NAME = rb"(?!" + _PREFIX + rb"(?:R?\"|'))[A-Za-z_$]\w*"
_NUMBER = rb"\d(?:'?[\w.])*"
_GAP = rb"(?P<gap>(?>(?:[^\w\"'\n$]+|" + _NAME + rb"|" + _NUMBER + rb"|\n(?![ \t]*#)){1,1000}))"
_PLAIN = rb"(?P<plain>" + _PREFIX + rb"\"[^\"\\\n]*(?>(?:\\.[^\"\\\n]*)*)(?:\"|\\?$))"
_RAW = _PREFIX + rb"R\"(?P<end>[^()\\\s\"]{0,16})\("  # what it begins is as long as it likes
_CHARACTER = rb"(?P<character>" + _PREFIX + rb"'[^'\\\n]*(?>(?:\\.[^'\\\n]*)*)(?:'|(?P<open>\\?$)))"
_DIRECTIVE = rb"^[ \t]*#[^\n]*"  # what a macro stands for is read where it is used
_TOKENS = re.compile(b"|".join((_DIRECTIVE, _GAP, _RAW, _PLAIN, _CHARACTER)), re.MULTILINE | re.DOTALL)
_ESCAPES = re.compile(
    rb"\\(?:x\{?([0-9A-Fa-f]+)\}?|[uU]\{?([0-9A-Fa-f]+)\}?|o\{([0-7]+)\}|([0-7]{1,3})|N\{([^}]{0,100})\}|(.))",
    re.DOTALL,
)
_SIGNS = {b"n": b"\n", b"t": b"\t", b"v": b"\v", b"f": b"\f", b"r": b"\r"}
_ASCII = 0x80
# A directive that reads, or one by which the assembler makes up the names of directives.
_READS = re.compile(rb"\.\s*(?:incbin|include|macro|irpc?|altmacro)\b", re.IGNORECASE)


def may_read_files(text: bytes) -> bool:
    """Return whether the assembler may be told to read a file; True also where nobody can tell.

    Parameters
    ----------
    text
        What the preprocessor leaves of a text.
    """
    joined: list[bytes] = []
    place = 0
    while match := _TOKENS.search(text, place):
        place = match.end()
        if match["plain"] is not None:
            joined.append(_resolved(match["plain"]))
        elif match["end"] is not None:
            end = b')%s"' % match["end"]
            close = text.find(end, place)
            if close < 0:  # no compiler takes it
                return True
            joined.append(text[place:close])
            place = close + len(end)
        elif match["character"] is not None or (match["gap"] or b"").strip():
            if match["open"] is not None or _READS.search(b"".join(joined)):
                return True
            joined.clear()
    return _READS.search(b"".join(joined)) is not None


def _resolved(literal: bytes) -> bytes:
    """Return what a string literal stands for, as far as it is ASCII."""
    contents = literal[literal.index(b'"') + 1 : -1]
    return _ESCAPES.sub(_sign, contents) if b"\\" in contents else contents


def _sign(escape: re.Match[bytes]) -> bytes:
    hexadecimal, universal, braced, octal, name, sign = escape.groups()
    if name is not None:
        return b"." if name == b"FULL STOP" else b"?"
    if sign is not None:
        return _SIGNS.get(sign, sign)
    number = int(braced or octal, 8) if braced or octal else int(hexadecimal or universal, 16)
    return bytes([number]) if number < _ASCII else b"?"
