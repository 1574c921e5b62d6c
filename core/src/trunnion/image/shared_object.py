"""A shared library before it is loaded: whether it is whole, and which TVM-FFI functions it exports.

The dynamic loader maps what a file's headers say and ends the process (SIGBUS) where the file is shorter, so a
truncated one is found out here. Layouts: "ELF-64 Object File Format" (System V ABI).
"""

from __future__ import annotations

import mmap
import struct
from typing import TYPE_CHECKING, Final

from trunnion.errors import ArtifactError, CorruptArtifactError, shorten
from trunnion.image.elf import read_strings

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    Bytes = bytes | mmap.mmap

__all__ = [
    "PREFIX",
    "defined_versions",
    "elf_machine",
    "exported_functions",
    "is_shared_object",
    "needed_versions",
    "shared_object_functions",
]

PREFIX: Final = "__tvm_ffi_"
"""What TVM-FFI puts before a function's name to make it a symbol."""

_MAGIC: Final = b"\x7fELF\x02\x01"  # 64 bits, little-endian
_SHARED: Final = 3  # ET_DYN
_TYPE: Final = slice(16, 18)
_MACHINE: Final = slice(18, 20)
_HEADER: Final = struct.Struct("<16sHHIQQQIHHHHHH")
_SEGMENT: Final = struct.Struct("<IIQQQQQQ")
_SECTION: Final = struct.Struct("<IIQQQQIIQQ")
_SYMBOL: Final = struct.Struct("<IBBHQQ")
_LOAD: Final = 1  # PT_LOAD
_DYNSYM: Final = 11  # SHT_DYNSYM
_FUNCTION: Final = 2  # STT_FUNC
_VERDEF: Final = 0x6FFFFFFD  # SHT_GNU_verdef
_VERNEED: Final = 0x6FFFFFFE  # SHT_GNU_verneed
# Of each such section its entries, and what hangs on an entry. The last two members of an entry lead to what hangs on
# it first, and to the next entry; those of what hangs on it are a name, and what leads to the next.
_VERSIONED: Final = {
    _VERDEF: (struct.Struct("<HHHHIII"), struct.Struct("<II")),  # Elf64_Verdef, Elf64_Verdaux
    _VERNEED: (struct.Struct("<HHIII"), struct.Struct("<IHHII")),  # Elf64_Verneed, Elf64_Vernaux
}
# How many times a file's bytes the sections of one kind may take, with their strings, which hardly overlap: many
# headers over one place would cost quadratic time.
_OVERLAP: Final = 4
_RESERVED: Final = ("_library_", "_metadata_", "_doc_")  # what TVM-FFI itself puts behind its prefix


def exported_functions(path: Path) -> tuple[str, ...]:
    """Return the TVM-FFI functions that a shared library exports, sorted; empty if its sections do not tell.

    Raises
    ------
    ArtifactError
        If there is no file that can be read.
    CorruptArtifactError
        If it is no shared library for 64 bits, or is shorter than its headers say.
    """
    try:
        with path.open("rb") as file:
            if not file.seek(0, 2):
                raise CorruptArtifactError(str(path), "is empty, expected a shared library")
            with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
                return _Library(str(path), data).functions()
    except OSError as error:
        raise ArtifactError(f"cannot read {shorten(str(path))}: {error.strerror}") from error


def shared_object_functions(name: str, data: bytes) -> tuple[str, ...]:
    """Return what `exported_functions` does, of a library that lies in memory.

    Parameters
    ----------
    name
        What errors call it.
    data
        Its bytes.

    Raises
    ------
    CorruptArtifactError
        If it is no shared library for 64 bits, or is shorter than its headers say.
    """
    return _Library(name, data).functions()


def needed_versions(name: str, data: bytes) -> tuple[str, ...]:
    """Return the symbol versions that a shared library asks of others, such as ``"GLIBC_2.34"``, sorted.

    Parameters
    ----------
    name
        What errors call it.
    data
        Its bytes.

    Raises
    ------
    CorruptArtifactError
        If it is no shared library for 64 bits, or is shorter than its headers say.
    """
    return _Library(name, data).versions(_VERNEED)


def defined_versions(name: str, data: bytes) -> tuple[str, ...]:
    """Return the symbol versions that a shared library offers, such as ``"GLIBCXX_3.4.30"``, sorted.

    Its own name is among them. Parameters and errors are those of `needed_versions`.
    """
    return _Library(name, data).versions(_VERDEF)


def is_shared_object(data: bytes) -> bool:
    """Whether bytes begin as a shared library for 64 bits; they may be broken all the same."""
    kind = int.from_bytes(data[_TYPE], "little")
    return data.startswith(_MAGIC) and kind == _SHARED


def elf_machine(data: bytes) -> int:
    """Return ``e_machine`` of an ELF file that was read before: what it is for."""
    return int.from_bytes(data[_MACHINE], "little")


class _Library:
    """The bytes of a shared library."""

    def __init__(self, name: str, data: Bytes) -> None:
        self.name, self.data = name, data
        if self.data[: len(_MAGIC)] != _MAGIC:
            raise CorruptArtifactError(
                name, f"starts with {bytes(data[:8]).hex(' ')}, expected a shared library"
            )
        header = self._unpack(_HEADER, 0, "the ELF header")
        if header[1] != _SHARED:
            raise CorruptArtifactError(
                name, f"is ELF of type {header[1]}, expected a shared library ({_SHARED})"
            )
        self.segments = self._table(_SEGMENT, header[5], header[10], "program header")
        self.sections = self._table(_SECTION, header[6], header[12], "section header")
        for kind, _, offset, _, _, size, *_ in self.segments:
            if kind == _LOAD and offset + size > len(data):
                raise CorruptArtifactError(
                    name, f"has {len(data)} bytes and needs {offset + size}: it is truncated"
                )

    def functions(self) -> tuple[str, ...]:
        """Return the names of the defined dynamic symbols that TVM-FFI would find."""
        found: set[str] = set()
        for table, strings in self._named_tables(_DYNSYM):
            symbols = self._contents(table)
            whole = len(symbols) // _SYMBOL.size * _SYMBOL.size
            offsets = {
                name
                for name, info, _, section, _, _ in _SYMBOL.iter_unpack(symbols[:whole])
                if section and info & 0xF == _FUNCTION and strings.startswith(PREFIX.encode(), name)
            }
            found.update(read_strings(strings, sorted(offsets), "function", self.name, "replace"))
        names = (text.removeprefix(PREFIX) for text in found)
        return tuple(sorted(name for name in names if not name.startswith(_RESERVED)))

    def versions(self, kind: int) -> tuple[str, ...]:
        """Return the names of the versions in sections of a kind (Linux Standard Base, symbol versioning)."""
        found: set[str] = set()
        for table, strings in self._named_tables(kind):
            found.update(
                read_strings(strings, sorted(self._version_names(table)), "version", self.name, "replace")
            )
        return tuple(sorted(found))

    def _named_tables(self, kind: int) -> Iterator[tuple[tuple[int, ...], bytes]]:
        """Yield each section of a kind, with the strings that it names."""
        left = _OVERLAP * len(self.data)
        for table in self.sections:
            if table[1] == kind and table[6] < len(self.sections):
                strings = self._contents(self.sections[table[6]])
                left -= table[5] + len(strings)
                if left < 0:
                    raise CorruptArtifactError(
                        self.name, f"its sections of kind {kind:#x} overlap more than {_OVERLAP} times"
                    )
                yield table, strings

    def _version_names(self, table: tuple[int, ...]) -> set[int]:
        """Return where the names of versions lie; each offset leads on, so that it ends."""
        entry, hanging = _VERSIONED[table[1]]
        place, end = table[4], table[4] + table[5]
        most = table[5] // min(entry.size, hanging.size)
        found, seen = set(), 0
        while place < end:
            *_, first, following = self._unpack(entry, place, "a version")
            aux = place + first
            while aux < end and seen <= most:
                *_, name, further = self._unpack(hanging, aux, "a version")
                found.add(name)
                aux, seen = aux + further if further else end, seen + 1
            place, seen = place + following if following else end, seen + 1
            if seen > most:
                raise CorruptArtifactError(self.name, f"its versions overlap: more than {most} of them")
        return found

    def _unpack(self, layout: struct.Struct, offset: int, what: str) -> tuple[int, ...]:
        if offset + layout.size > len(self.data):
            raise CorruptArtifactError(
                self.name, f"has {len(self.data)} bytes, too few for {what}: it is truncated"
            )
        return layout.unpack_from(self.data, offset)

    def _table(self, layout: struct.Struct, offset: int, count: int, what: str) -> list[tuple[int, ...]]:
        return [
            self._unpack(layout, offset + index * layout.size, f"{what} {index}") for index in range(count)
        ]

    def _contents(self, section: tuple[int, ...]) -> bytes:
        return bytes(self.data[section[4] : section[4] + section[5]])
