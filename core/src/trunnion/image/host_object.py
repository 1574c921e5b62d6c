"""What an object file of the host's compiler says: what it defines, what it needs, and constants by name."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from trunnion.errors import CorruptArtifactError, shorten
from trunnion.image.elf import HOST_OBJECT, SHT_NOBITS, Elf, Symbol, read_elf

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

__all__ = ["HostObject", "read_host_object"]

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


def read_host_object(data: bytes, constants: Iterable[str] = ()) -> HostObject:
    """Read an object file, relocatable ELF64, little-endian.

    Parameters
    ----------
    data
        The whole file.
    constants
        The names of data whose bytes are wanted.

    Raises
    ------
    CorruptArtifactError
        If the bytes are no such file, or a constant is not in it.
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
    )


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
