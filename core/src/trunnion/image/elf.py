"""A bounds-checked reader for the container of a cubin or of a host object: a little-endian ELF64 file.

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
    "CUBIN",
    "EHDR",
    "EM_CUDA",
    "ET_EXEC",
    "ET_REL",
    "HOST_OBJECT",
    "PHDR",
    "SHDR",
    "SHT_NOBITS",
    "SYM",
    "Elf",
    "ElfForm",
    "Section",
    "Symbol",
    "read_elf",
    "read_strings",
    "unpack_at",
]

EM_CUDA: Final = 190
"""``e_machine`` of NVIDIA CUDA device code."""
ET_REL: Final = 1
"""``e_type`` of a relocatable file, which must be linked before it can be loaded."""
ET_EXEC: Final = 2
"""``e_type`` of a linked file, which the driver can load."""
PT_NULL: Final = 0
SHT_NULL: Final = 0
SHT_SYMTAB: Final = 2
SHT_STRTAB: Final = 3
SHT_NOBITS: Final = 8
"""``sh_type`` of a section that takes no room in the file."""

EHDR: Final = struct.Struct("<16sHHIQQQIHHHHHH")
"""``Elf64_Ehdr``: ident, type, machine, version, entry, phoff, shoff, flags, sizes, counts, name section."""
PHDR: Final = struct.Struct("<IIQQQQQQ")
"""``Elf64_Phdr``: type, flags, offset, addresses, bytes in the file, bytes in memory, alignment."""
SHDR: Final = struct.Struct("<IIQQQQIIQQ")
"""``Elf64_Shdr``: name, type, flags, address, offset, size, link, info, alignment, entry size."""
SYM: Final = struct.Struct("<IBBHQQ")
"""``Elf64_Sym``: name, info, other, section, value, size."""

_MAGIC: Final = b"\x7fELF"
_CLASS64_LITTLE: Final = b"\x02\x01"

# Strings may share their tails, so names can add up to more than their table. Real tables share little;
# without a limit, a small file whose names all overlap would cost quadratic time and memory.
_SHARING: Final = 64

_TEXT_PREFIX: Final = 4096


@dataclass(frozen=True, slots=True, kw_only=True)
class ElfForm:
    """What an ELF file must be, to be what the caller expects."""

    what: str
    """What messages call it."""

    machines: tuple[tuple[str, int], ...]
    """The machines that it may be for: a name for messages, and ``e_machine``."""

    kinds: frozenset[int]
    """The allowed ``e_type``."""

    mistaken: tuple[tuple[bytes, str], ...] = ()
    """What people hand in by mistake: its first bytes, and what to say of it."""


CUBIN: Final = ElfForm(
    what="cubin",
    machines=(("CUDA", EM_CUDA),),
    kinds=frozenset({ET_REL, ET_EXEC}),
    mistaken=(
        (b"\x50\xed\x55\xba", "a fatbin, not a cubin (device code may be a fatbin: DeviceCode.from_file)"),
        (b"\xb1\x43\x62\x46", "a fatbin wrapper, not a cubin (extract the cubin of one architecture)"),
        (
            b"\xed\x43\x4e\x7f",
            "LTO-IR or OptiX-IR, not a cubin (device code may be LTO-IR: language 'ltoir')",
        ),
        (b"BC\xc0\xde", "LLVM bitcode, not a cubin"),
        (b"!<arch>\n", "an archive, not a cubin"),
    ),
)
"""A cubin, linked or not."""

HOST_OBJECT: Final = ElfForm(
    what="host object",
    machines=(("x86-64", 62), ("AArch64", 183), ("RISC-V", 243)),
    kinds=frozenset({ET_REL}),
    mistaken=((b"BC\xc0\xde", "LLVM bitcode, not an object"), (b"!<arch>\n", "an archive, not an object")),
)
"""What a host's compiler makes of one source file, before it is linked."""


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

    value: int
    """``st_value``; in a relocatable file, bytes from the start of the section."""

    size: int
    """``st_size``, in bytes."""


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

    what: str = CUBIN.what
    """What messages call the file."""

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
            raise CorruptArtifactError(self.what, f"{len(tables)} symbol tables, where there must be one")
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
                self.what, f"the symbol table has {len(contents)} bytes, no multiple of {SYM.size}"
            )
        return tuple(
            Symbol(
                index=index,
                name=name,
                kind=info & 0xF,
                binding=info >> 4,
                other=other,
                section=section,
                value=value,
                size=size,
            )
            for index, (name, info, other, section, value, size) in enumerate(SYM.iter_unpack(contents))
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
                self.what, f"the symbol table's names are in section {strings.index}, not a string table"
            )
        return read_strings(
            bytes(self.contents(strings)), [symbol.name for symbol in symbols], "symbol", self.what
        )


def unpack_at(
    layout: struct.Struct, data: bytes | memoryview, offset: int, what: str, container: str = CUBIN.what
) -> tuple[int, ...]:
    """Unpack ``layout`` at ``offset``, if it lies inside ``data``.

    Raises
    ------
    CorruptArtifactError
        If it does not; the message calls it ``what``, in a ``container``.
    """
    if not 0 <= offset <= len(data) - layout.size:
        raise CorruptArtifactError(container, f"{what} needs {layout.size} bytes at {offset}, of {len(data)}")
    return layout.unpack_from(data, offset)


def read_elf(data: bytes, form: ElfForm = CUBIN) -> Elf:
    """Read the headers of an ELF file and check every bound.

    Parameters
    ----------
    data
        The whole file.
    form
        What it must be.

    Raises
    ------
    CorruptArtifactError
        If the bytes are no little-endian ELF64 file of that form, or a header points outside of them.
    """
    _check_format(data, form)
    header = unpack_at(EHDR, data, 0, "the ELF header", form.what)
    kind, machine, sections_at, flags = (header[index] for index in (1, 2, 6, 7))
    entry_size, count, names_index = header[11:]
    # e_version is not checked: the older ABI keeps the toolkit's version there (128 for CUDA 12.8).
    if machine not in dict(form.machines).values():
        known = " and ".join(f"{name} is {number}" for name, number in form.machines)
        raise CorruptArtifactError(form.what, f"an ELF file for machine {machine}, where {known}")
    if kind not in form.kinds:
        known = " and ".join(map(str, sorted(form.kinds)))
        verb = "is" if len(form.kinds) == 1 else "are"
        raise CorruptArtifactError(form.what, f"ELF type {kind}, where {known} {verb} allowed")
    if entry_size != SHDR.size or count == 0:
        raise CorruptArtifactError(
            form.what, f"{count} section headers of {entry_size} bytes, where {SHDR.size} bytes are allowed"
        )
    if sections_at + count * SHDR.size > len(data):
        raise CorruptArtifactError(
            form.what, f"{count} section headers at {sections_at} do not fit in {len(data)} bytes"
        )
    _check_segments(data, header, form.what)
    table = memoryview(data)[sections_at : sections_at + count * SHDR.size]
    return Elf(
        data=data,
        kind=kind,
        abi_version=data[8],
        flags=flags,
        sections=_read_sections(data, tuple(SHDR.iter_unpack(table)), names_index, form.what),
        what=form.what,
    )


def _check_format(data: bytes, form: ElfForm) -> None:
    if not data:
        raise CorruptArtifactError(form.what, "empty")
    for magic, description in form.mistaken:
        if data.startswith(magic):
            raise CorruptArtifactError(form.what, description)
    if not data.startswith(_MAGIC):
        start = data[:_TEXT_PREFIX]
        if b".version" in start and b".target" in start:
            raise CorruptArtifactError(
                form.what, f"PTX text, not a {form.what} (assemble it for an sm_XX target first)"
            )
        raise CorruptArtifactError(form.what, f"not an ELF file: it starts with {data[:8].hex(' ')}")
    if data[4:6] != _CLASS64_LITTLE:
        raise CorruptArtifactError(
            form.what, f"ELF class and byte order are {data[4:6].hex(' ')}, where 02 01 is allowed"
        )


def _check_segments(data: bytes, header: tuple[int, ...], what: str) -> None:
    """Check the program headers, which nobody here needs, but the driver reads."""
    table_at, (entry_size, count) = header[5], header[9:11]
    if count and entry_size != PHDR.size:
        raise CorruptArtifactError(
            what, f"{count} program headers of {entry_size} bytes, where {PHDR.size} bytes are allowed"
        )
    end = table_at + count * PHDR.size
    if count and end > len(data):
        raise CorruptArtifactError(
            what, f"{count} program headers at {table_at} do not fit in {len(data)} bytes"
        )
    for index, entry in enumerate(PHDR.iter_unpack(memoryview(data)[table_at:end] if count else b"")):
        kind, offset, size = entry[0], entry[2], entry[5]
        if kind != PT_NULL and offset + size > len(data):
            raise CorruptArtifactError(what, f"segment {index} has {size} bytes at {offset}, of {len(data)}")


def _read_sections(
    data: bytes, headers: tuple[tuple[int, ...], ...], names_index: int, what: str
) -> tuple[Section, ...]:
    """Check each header against the file, then read all names."""
    for index, (_, kind, _, _, offset, size, link, *_) in enumerate(headers):
        if kind not in {SHT_NULL, SHT_NOBITS} and offset + size > len(data):
            raise CorruptArtifactError(what, f"section {index} has {size} bytes at {offset}, of {len(data)}")
        if link >= len(headers):
            raise CorruptArtifactError(what, f"section {index} links to section {link}, of {len(headers)}")
    if names_index >= len(headers) or headers[names_index][1] != SHT_STRTAB:
        raise CorruptArtifactError(
            what, f"the section names are in section {names_index}, not a string table"
        )
    offset, size = headers[names_index][4:6]
    names = read_strings(data[offset : offset + size], [header[0] for header in headers], "section", what)
    return tuple(
        Section(index=index, name=name, kind=kind, flags=flags, offset=at, size=length, link=link, info=info)
        for index, (name, (_, kind, flags, _, at, length, link, info, _, _)) in enumerate(
            zip(names, headers, strict=True)
        )
    )


def read_strings(
    table: bytes, offsets: Iterable[int], entry: str, what: str, errors: str = "strict"
) -> tuple[str, ...]:
    """Return the zero-terminated UTF-8 string at each offset of a string table.

    Parameters
    ----------
    table
        The table.
    offsets
        Where the strings start, in bytes from the table's start.
    entry
        What messages call what has such a name.
    what
        What messages call the file.
    errors
        What becomes of a name that is not UTF-8, as of `bytes.decode`.

    Raises
    ------
    CorruptArtifactError
        If one does not end within the table, is not UTF-8, or all together are far longer than the table.
    """
    budget = _SHARING * len(table)
    strings = []
    for index, offset in enumerate(offsets):
        end = table.find(b"\0", offset) if offset < len(table) else -1
        if end < 0:
            raise CorruptArtifactError(
                what, f"the name of {entry} {index} at {offset} does not end within {len(table)} bytes"
            )
        budget -= end - offset
        if budget < 0:
            raise CorruptArtifactError(what, f"the {entry} names overlap more than {_SHARING} times")
        try:
            strings.append(table[offset:end].decode(errors=errors))
        except UnicodeDecodeError as error:
            raise CorruptArtifactError(
                what, f"the name of {entry} {index} is not UTF-8 ({error.reason})"
            ) from error
    return tuple(strings)
