"""What an object file of the host's compiler says: what it defines, what it needs, and constants by name."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from trunnion.errors import CorruptArtifactError, shorten
from trunnion.image.elf import HOST_OBJECT, SHT_NOBITS, Elf, Symbol, read_elf, unpack_at

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

__all__ = ["HostObject", "read_host_object"]

_RELA: Final = struct.Struct("<QQq")  # Elf64_Rela: offset, symbol and type, addend
_SHT_RELA: Final = 4
_STB_LOCAL: Final = 0
_STB_WEAK: Final = 2
_SHN_UNDEF: Final = 0
_SHN_LORESERVE: Final = 0xFF00  # from here on the index is no section's


@dataclass(frozen=True, slots=True, kw_only=True)
class HostObject:
    """What an object file says."""

    definitions: tuple[str, ...]
    """The names that it defines for other files of its link, weak ones and hidden ones too, in the symbol table's
    order."""

    references: tuple[str, ...]
    """The names that it uses and does not define, but for weak ones, in the symbol table's order."""

    constants: Mapping[str, bytes]
    """The bytes of the constants that were asked for, as they lie in the file: before any relocation."""

    pointers: Mapping[str, str]
    """For each pointer that was asked for, the name that it is the address of; empty if other files do not know it."""


def read_host_object(data: bytes, constants: Iterable[str] = (), pointers: Iterable[str] = ()) -> HostObject:
    """Read an object file, relocatable ELF64, little-endian.

    Parameters
    ----------
    data
        The whole file.
    constants
        The names of data whose bytes are wanted.
    pointers
        The names of pointers that are addresses of something with a name, which is wanted.

    Raises
    ------
    CorruptArtifactError
        If the bytes are no such file, a constant is not in it, or a pointer is no such address.
    """
    elf = read_elf(data, HOST_OBJECT)
    shared = [symbol for symbol in elf.symbols() if symbol.binding != _STB_LOCAL]
    names = elf.symbol_names(shared)
    defined = {
        name: symbol for name, symbol in zip(names, shared, strict=True) if symbol.section != _SHN_UNDEF
    }
    references = [
        name
        for name, symbol in zip(names, shared, strict=True)
        if symbol.section == _SHN_UNDEF and symbol.binding != _STB_WEAK
    ]
    return HostObject(
        definitions=tuple(defined),
        references=tuple(references),
        constants={name: _constant(elf, name, defined.get(name)) for name in constants},
        pointers={name: _pointed(elf, name, defined.get(name)) for name in pointers},
    )


def _pointed(elf: Elf, name: str, pointer: Symbol | None) -> str:
    """Return the name that the linker is to put the address of into a pointer."""
    symbols = elf.symbols()
    if pointer is None:
        raise CorruptArtifactError(elf.what, f"no pointer {shorten(name)}")
    for section in elf.sections:
        if section.kind != _SHT_RELA or section.info != pointer.section:
            continue
        contents = elf.contents(section)
        for at in range(0, len(contents), _RELA.size):
            place, info, _ = unpack_at(_RELA, contents, at, "a relocation", elf.what)
            if place != pointer.value:
                continue
            if info >> 32 >= len(symbols):
                raise CorruptArtifactError(
                    elf.what, f"a relocation to symbol {info >> 32}, of {len(symbols)}"
                )
            target = symbols[info >> 32]
            return "" if target.binding == _STB_LOCAL else elf.symbol_names([target])[0]
    raise CorruptArtifactError(elf.what, f"{shorten(name)} is the address of nothing")


def _constant(elf: Elf, name: str, symbol: Symbol | None) -> bytes:
    if symbol is None:
        raise CorruptArtifactError(elf.what, f"no constant {shorten(name)}")
    if not 0 < symbol.section < min(_SHN_LORESERVE, len(elf.sections)):
        raise CorruptArtifactError(elf.what, f"constant {shorten(name)} is in section {symbol.section}")
    section = elf.sections[symbol.section]
    contents = elf.contents(section)
    if section.kind == SHT_NOBITS or symbol.value + symbol.size > len(contents):
        problem = f"constant {shorten(name)} has {symbol.size} bytes at {symbol.value}, of {len(contents)}"
        raise CorruptArtifactError(elf.what, problem)
    return bytes(contents[symbol.value : symbol.value + symbol.size])
