"""A bounds-checked reader for the container of a cubin: a little-endian ELF64 file.

Nothing here trusts a number that comes from the file: each offset and count is compared with the bytes that
are there before it is used, and every failure is a :class:`~trunnion.errors.CorruptArtifactError`. The
layouts are those of "ELF-64 Object File Format" (System V ABI).
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from trunnion.errors import CorruptArtifactError

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = [
    "EHDR",
    "EM_CUDA",
    "ET_EXEC",
    "ET_REL",
    "SHDR",
    "SHT_NOBITS",
    "SYM",
    "Elf",
    "Section",
    "Symbol",
    "read_elf",
    "unpack_at",
]

EM_CUDA: Final = 190
"""``e_machine`` of NVIDIA CUDA device code."""
ET_REL: Final = 1
"""``e_type`` of a relocatable file, which must be linked before it can be loaded."""
ET_EXEC: Final = 2
"""``e_type`` of a linked file, which the driver can load."""
SHT_NULL: Final = 0
SHT_SYMTAB: Final = 2
SHT_STRTAB: Final = 3
SHT_NOBITS: Final = 8
"""``sh_type`` of a section that takes no room in the file."""

EHDR: Final = struct.Struct("<16sHHIQQQIHHHHHH")
"""``Elf64_Ehdr``: ident, type, machine, version, entry, phoff, shoff, flags, sizes, counts, name section."""
SHDR: Final = struct.Struct("<IIQQQQIIQQ")
"""``Elf64_Shdr``: name, type, flags, address, offset, size, link, info, alignment, entry size."""
SYM: Final = struct.Struct("<IBBHQQ")
"""``Elf64_Sym``: name, info, other, section, value, size."""

_MAGIC: Final = b"\x7fELF"
_CLASS64_LITTLE: Final = b"\x02\x01"
_WHAT: Final = "cubin"

# Strings may share their tails, so names can add up to more than their table. Real tables share little;
# without a limit, a small file whose names all overlap would cost quadratic time and memory.
_SHARING: Final = 64

# What people hand in by mistake, by its first bytes.
_OTHER_FORMATS: Final = (
    (b"\x50\xed\x55\xba", "a fatbin, not a cubin (extract the cubin of one architecture)"),
    (b"\xb1\x43\x62\x46", "a fatbin wrapper, not a cubin (extract the cubin of one architecture)"),
    (b"\xed\x43\x4e\x7f", "LTO-IR or OptiX-IR, not a cubin (link it with nvJitLink first)"),
    (b"BC\xc0\xde", "LLVM bitcode, not a cubin"),
    (b"!<arch>\n", "an archive, not a cubin"),
)
_TEXT_PREFIX: Final = 4096


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """One section header, with its name."""

    index: int
    """The position in the section header table."""

    name: str
    """The name."""

    kind: int
    """``sh_type``."""

    flags: int
    """``sh_flags``."""

    offset: int
    """Bytes from the start of the file."""

    size: int
    """Bytes; of a ``SHT_NOBITS`` section, bytes in memory."""

    link: int
    """``sh_link``: the index of a section that this one needs."""

    info: int
    """``sh_info``: what it means depends on the kind."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Symbol:
    """One symbol table entry; its name is read by :meth:`Elf.symbol_names`, for the few that need it."""

    index: int
    """The position in the symbol table."""

    name: int
    """Bytes from the start of the string table."""

    kind: int
    """The low four bits of ``st_info``."""

    binding: int
    """The high four bits of ``st_info``."""

    other: int
    """``st_other``."""

    section: int
    """``st_shndx``: the index of the section that the symbol lives in."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Elf:
    """A checked ELF64 file: every section lies inside the bytes, every link names a section."""

    data: bytes
    """The whole file."""

    kind: int
    """``e_type``."""

    abi_version: int
    """``e_ident[EI_ABIVERSION]``; for CUDA 7 or 8, which say where ``flags`` keeps the architecture."""

    flags: int
    """``e_flags``."""

    sections: tuple[Section, ...]
    """Every section, by index."""

    def contents(self, section: Section) -> memoryview:
        """Return the bytes of ``section``: none for a section that takes no room in the file."""
        if section.kind in {SHT_NULL, SHT_NOBITS}:
            return memoryview(b"")
        return memoryview(self.data)[section.offset : section.offset + section.size]

    def symbol_table(self) -> Section:
        """Return the one symbol table.

        Raises
        ------
        CorruptArtifactError
            If there is none or more than one.
        """
        tables = [section for section in self.sections if section.kind == SHT_SYMTAB]
        if len(tables) != 1:
            raise CorruptArtifactError(_WHAT, f"{len(tables)} symbol tables, where there must be one")
        return tables[0]

    def symbols(self) -> tuple[Symbol, ...]:
        """Return the symbol table's entries, by index.

        Raises
        ------
        CorruptArtifactError
            If there is no symbol table, or its size is no multiple of an entry.
        """
        contents = self.contents(self.symbol_table())
        if len(contents) % SYM.size:
            raise CorruptArtifactError(
                _WHAT, f"the symbol table has {len(contents)} bytes, no multiple of {SYM.size}"
            )
        return tuple(
            Symbol(index=index, name=name, kind=info & 0xF, binding=info >> 4, other=other, section=section)
            for index, (name, info, other, section, _, _) in enumerate(SYM.iter_unpack(contents))
        )

    def symbol_names(self, symbols: Iterable[Symbol]) -> tuple[str, ...]:
        """Return the exact name of each symbol.

        Raises
        ------
        CorruptArtifactError
            If a name does not lie in the string table, is not UTF-8, or the table is no string table.
        """
        strings = self.sections[self.symbol_table().link]
        if strings.kind != SHT_STRTAB:
            raise CorruptArtifactError(
                _WHAT, f"the symbol table's names are in section {strings.index}, not a string table"
            )
        return _read_strings(bytes(self.contents(strings)), [symbol.name for symbol in symbols], "symbol")


def unpack_at(layout: struct.Struct, data: bytes | memoryview, offset: int, what: str) -> tuple[int, ...]:
    """Unpack ``layout`` at ``offset``, if it lies inside ``data``.

    Raises
    ------
    CorruptArtifactError
        If it does not; the message calls it ``what``.
    """
    if not 0 <= offset <= len(data) - layout.size:
        raise CorruptArtifactError(_WHAT, f"{what} needs {layout.size} bytes at {offset}, of {len(data)}")
    return layout.unpack_from(data, offset)


def read_elf(data: bytes) -> Elf:
    """Read the headers of a CUDA ELF file and check every bound.

    Parameters
    ----------
    data
        The whole file.

    Raises
    ------
    CorruptArtifactError
        If the bytes are no little-endian ELF64 file for CUDA, or a header points outside of them.
    """
    _check_format(data)
    header = unpack_at(EHDR, data, 0, "the ELF header")
    kind, machine, sections_at, flags = (header[index] for index in (1, 2, 6, 7))
    entry_size, count, names_index = header[11:]
    # e_version is not checked: the older ABI keeps the toolkit's version there (128 for CUDA 12.8).
    if machine != EM_CUDA:
        raise CorruptArtifactError(_WHAT, f"an ELF file for machine {machine}, where CUDA is {EM_CUDA}")
    if kind not in {ET_REL, ET_EXEC}:
        raise CorruptArtifactError(_WHAT, f"ELF type {kind}, where {ET_REL} and {ET_EXEC} are allowed")
    if entry_size != SHDR.size or count == 0:
        raise CorruptArtifactError(
            _WHAT, f"{count} section headers of {entry_size} bytes, where {SHDR.size} bytes are allowed"
        )
    if sections_at + count * SHDR.size > len(data):
        raise CorruptArtifactError(
            _WHAT, f"{count} section headers at {sections_at} do not fit in {len(data)} bytes"
        )
    table = memoryview(data)[sections_at : sections_at + count * SHDR.size]
    return Elf(
        data=data,
        kind=kind,
        abi_version=data[8],
        flags=flags,
        sections=_read_sections(data, tuple(SHDR.iter_unpack(table)), names_index),
    )


def _check_format(data: bytes) -> None:
    if not data:
        raise CorruptArtifactError(_WHAT, "empty")
    for magic, description in _OTHER_FORMATS:
        if data.startswith(magic):
            raise CorruptArtifactError(_WHAT, description)
    if not data.startswith(_MAGIC):
        start = data[:_TEXT_PREFIX]
        if b".version" in start and b".target" in start:
            raise CorruptArtifactError(_WHAT, "PTX text, not a cubin (assemble it for an sm_XX target first)")
        raise CorruptArtifactError(_WHAT, f"not an ELF file: it starts with {data[:8].hex(' ')}")
    if data[4:6] != _CLASS64_LITTLE:
        raise CorruptArtifactError(
            _WHAT, f"ELF class and byte order are {data[4:6].hex(' ')}, where 02 01 is allowed"
        )


def _read_sections(
    data: bytes, headers: tuple[tuple[int, ...], ...], names_index: int
) -> tuple[Section, ...]:
    """Check each header against the file, then read all names."""
    for index, (_, kind, _, _, offset, size, link, *_) in enumerate(headers):
        if kind not in {SHT_NULL, SHT_NOBITS} and offset + size > len(data):
            raise CorruptArtifactError(_WHAT, f"section {index} has {size} bytes at {offset}, of {len(data)}")
        if link >= len(headers):
            raise CorruptArtifactError(_WHAT, f"section {index} links to section {link}, of {len(headers)}")
    if names_index >= len(headers) or headers[names_index][1] != SHT_STRTAB:
        raise CorruptArtifactError(
            _WHAT, f"the section names are in section {names_index}, not a string table"
        )
    offset, size = headers[names_index][4:6]
    names = _read_strings(data[offset : offset + size], [header[0] for header in headers], "section")
    return tuple(
        Section(index=index, name=name, kind=kind, flags=flags, offset=at, size=length, link=link, info=info)
        for index, (name, (_, kind, flags, _, at, length, link, info, _, _)) in enumerate(
            zip(names, headers, strict=True)
        )
    )


def _read_strings(table: bytes, offsets: list[int], what: str) -> tuple[str, ...]:
    """Return the zero-terminated UTF-8 string at each offset of a string table."""
    budget = _SHARING * len(table)
    strings = []
    for index, offset in enumerate(offsets):
        end = table.find(b"\0", offset) if offset < len(table) else -1
        if end < 0:
            raise CorruptArtifactError(
                _WHAT, f"the name of {what} {index} at {offset} does not end within {len(table)} bytes"
            )
        budget -= end - offset
        if budget < 0:
            raise CorruptArtifactError(_WHAT, f"the {what} names overlap more than {_SHARING} times")
        try:
            strings.append(table[offset:end].decode())
        except UnicodeDecodeError as error:
            raise CorruptArtifactError(
                _WHAT, f"the name of {what} {index} is not UTF-8 ({error.reason})"
            ) from error
    return tuple(strings)
