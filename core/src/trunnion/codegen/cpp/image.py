"""The assembler text that puts a device image, and the names of its kernels, into a launcher."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from trunnion.codegen.writer import SourceWriter
from trunnion.errors import ProgramError, shorten

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["ALIGNMENT", "emit_image", "encoded_name"]

ALIGNMENT = 64
"""What the image's address is a multiple of, in bytes: the driver asks for no more, and a cache line has as many."""

_PLAIN = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]*")
_PER_LINE = 24


def emit_image(symbols: Sequence[str], file: str | None) -> str:
    """Return text for the GNU assembler that includes an image as it is.

    It defines symbols that only the launcher sees: ``trunnion_image``, ``trunnion_image_end``,
    ``trunnion_image_bytes``, how many lie between them, and ``trunnion_kernel_names``, the exact names in their order,
    each with a zero byte behind it, and one zero byte more behind all. A name is spelled as numbers, so that none can
    be mistaken for anything else.

    Parameters
    ----------
    symbols
        The kernels' exact names.
    file
        The plain name of the image's file, which lies where the assembler runs; None: the launcher is handed image and
        names when it is loaded, so there are 0 bytes of the one and none of the others.

    Raises
    ------
    ProgramError
        If a name holds a zero byte, which would end it, or cannot be written as UTF-8; or is empty.
    """
    if file is not None and not _PLAIN.fullmatch(file):
        raise ProgramError(f"the file of an image has a plain name, got {shorten(file)}")
    writer = SourceWriter()
    writer.line('.section .rodata,"a",%progbits')
    _begin(writer, "trunnion_image", ALIGNMENT)
    if file is not None:
        writer.line(f'.incbin "{file}"')
    _begin(writer, "trunnion_image_end", 1)
    writer.line(".byte 0")
    _begin(writer, "trunnion_image_bytes", 8)
    writer.line(".quad trunnion_image_end - trunnion_image")
    _begin(writer, "trunnion_kernel_names", 1)
    for symbol in symbols:
        name = encoded_name(symbol)
        for start in range(0, len(name), _PER_LINE):
            writer.line(f".byte {','.join(map(str, name[start : start + _PER_LINE]))}")
    writer.line(".byte 0")
    writer.line('.section .note.GNU-stack,"",%progbits')
    return writer.text()


def _begin(writer: SourceWriter, symbol: str, alignment: int) -> None:
    writer.line(f".globl {symbol}")
    writer.line(f".hidden {symbol}")
    writer.line(f".type {symbol},%object")
    writer.line(f".balign {alignment}")
    writer.line(f"{symbol}:")


def encoded_name(symbol: str) -> bytes:
    """Return a kernel's exact name as a launcher reads it: UTF-8, with a zero byte behind it.

    Raises
    ------
    ProgramError
        If a name holds a zero byte, which would end it, or cannot be written as UTF-8; or is empty.
    """
    if not symbol or "\0" in symbol:
        raise ProgramError(
            f"a kernel's exact name is not empty and holds no zero byte, got {shorten(symbol)}"
        )
    try:
        return symbol.encode() + b"\0"
    except UnicodeEncodeError as error:
        raise ProgramError(f"a kernel's exact name is UTF-8, got {shorten(symbol)}") from error
