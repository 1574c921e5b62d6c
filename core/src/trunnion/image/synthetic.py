"""Write cubins that describe kernels without holding any: any launch signature, with no device compiler.

The file has the sections, flags and records that ptxas of CUDA 13 writes for the same kernels, as far as a
reader of signatures looks; the code sections hold zeros. It is for simulation and tests, and never for a
GPU.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from trunnion.errors import CorruptArtifactError, ProgramError, shorten
from trunnion.image.cubin import (
    GLOBALS,
    NOTE,
    RESERVED_SHARED,
    RESERVES_SHARED,
    SHT_CUDA_INFO,
    STO_CUDA_ENTRY,
    STT_FUNC,
    STT_OBJECT,
    TOOLKIT,
    TOOLKIT_NOTE,
    USER_CONSTANTS,
    KernelInfo,
    VariableInfo,
)
from trunnion.image.elf import EHDR, EM_CUDA, ET_EXEC, SHDR, SHT_NOBITS, SHT_STRTAB, SHT_SYMTAB, SYM
from trunnion.image.layout import BLACKWELL, arch_number, parameter_base
from trunnion.image.nvinfo import (
    NARROW_SIZE_LIMIT,
    WIDE_THRESHOLD,
    Attribute,
    Key,
    encode_attributes,
    encode_dims,
    encode_parameter,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from trunnion.contract.compiler import ImageParameter

__all__ = ["SyntheticKernel", "SyntheticVariable", "synthetic_cubin"]

_ABI: Final = 8
_CUDA_OSABI: Final = 0x41
_SHT_PROGBITS: Final = 1
_SHT_NOTE: Final = 7
_SHF_ALLOC_EXEC: Final = 0x6
_SHF_ALLOC_WRITE: Final = 0x3
_SHF_ALLOC: Final = 0x2
_VARIABLE_ALIGNMENT: Final = 256
_MOST_VARIABLE: Final = 1 << 24
_SHF_INFO_LINK: Final = 0x40
_NOTE_FLAGS: Final = 0x2000000
_NOTE_KIND: Final = 2000
_NOTE_VERSION: Final = 2
_GLOBAL: Final = 0x10
_CODE: Final = bytes(128)
_CODE_ALIGNMENT: Final = 128
_BARE_FORM: Final = 1
_HALF_FORM: Final = 3
_PAYLOAD_FORM: Final = 4
_U16: Final = 0xFFFF
_U32: Final = 0xFFFFFFFF
_FIRST_SECTIONS: Final = 6  # null, section names, symbol names, symbols, note, file-wide records
_SECTION_LIMIT: Final = 0xFF00  # from here on ELF numbers sections in another way
_SYMTAB: Final = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class SyntheticKernel:
    """One kernel that a synthetic image describes.

    Raises
    ------
    ProgramError
        If the format cannot hold it; the message names the field.
    """

    name: str
    """The exact symbol name: any text without a zero byte."""

    parameters: tuple[ImageParameter, ...] = ()
    """The parameters by ordinal; offsets and sizes in bytes.
    :func:`~trunnion.image.layout.pack_parameters` lays them out as device compilers do."""

    max_threads: tuple[int, int, int] | None = None
    """The largest block (x, y, z), in threads."""

    required_threads: tuple[int, int, int] | None = None
    """The only block (x, y, z) allowed, in threads."""

    cluster: tuple[int, int, int] | None = None
    """The only cluster (x, y, z) allowed, in blocks."""

    max_cluster_blocks: int | None = None
    """The most blocks that a cluster may have."""

    needs_cluster: bool = False
    """Whether a launch has to give a cluster, where the kernel has none of its own."""

    grid_counts_clusters: bool = False
    """Whether a launch's grid counts clusters instead of blocks."""

    registers: int | None = 32
    """Registers of one thread; None writes no count."""

    static_smem_bytes: int = 0
    """Static shared memory of one block, in bytes."""

    local_bytes: int | None = None
    """Local memory of one thread, in bytes; None writes none."""

    wide: bool | None = None
    """Whether parameter records are of the wide kind; None chooses by the bytes up to the last parameter's end,
    which is what ptxas chooses where no gaps are: else take it from
    :func:`~trunnion.image.layout.place_parameters`."""

    parameter_base: int | None = None
    """Bytes from the start of constant bank 0 to the parameters; None chooses as for ``wide``."""

    def __post_init__(self) -> None:
        _check_name(self.name)
        try:
            info = KernelInfo(name=self.name, parameters=self.parameters)
        except CorruptArtifactError as error:
            raise ProgramError(error.problem, field="parameters") from error
        if len(self.parameters) > _U16 or info.parameter_bytes > _U16:
            problem = (
                f"{len(self.parameters)} parameters of {info.parameter_bytes} bytes, where {_U16} are allowed"
            )
            raise ProgramError(problem, field="parameters")
        if self.wide is False and any(parameter.size > NARROW_SIZE_LIMIT for parameter in self.parameters):
            raise ProgramError(f"a narrow record holds at most {NARROW_SIZE_LIMIT} bytes", field="wide")
        if self.parameter_base is not None and not (self.parameters and 0 <= self.parameter_base <= _U16):
            problem = (
                f"{self.parameter_base} bytes, where 0 to {_U16} are allowed, and none without parameters"
            )
            raise ProgramError(problem, field="parameter_base")
        for field in ("max_threads", "required_threads", "cluster"):
            _check_counts(getattr(self, field), field)
        for field in ("max_cluster_blocks", "registers"):
            count = getattr(self, field)
            _check_counts(None if count is None else (count,), field)
        for field in ("static_smem_bytes", "local_bytes"):
            nbytes = getattr(self, field)
            if nbytes is not None and not 0 <= nbytes <= _U32:
                raise ProgramError(f"{nbytes}, where 0 to {_U32} are allowed", field=field)

    @property
    def is_wide(self) -> bool:
        """Whether the parameter records are of the wide kind."""
        return self._total > WIDE_THRESHOLD if self.wide is None else self.wide

    @property
    def _total(self) -> int:
        last = self.parameters[-1] if self.parameters else None
        return last.offset + last.size if last is not None else 0

    def info(self, arch: str = "sm_90a") -> KernelInfo:
        """Return what a reader finds when the image is made for ``arch``."""
        base = self.parameter_base
        if base is None and self.parameters:
            base = parameter_base(arch, self._total)
        return KernelInfo(
            name=self.name,
            parameters=self.parameters,
            parameter_base=base,
            max_threads=self.max_threads,
            required_threads=self.required_threads,
            cluster=self.cluster,
            max_cluster_blocks=self.max_cluster_blocks,
            needs_cluster=self.needs_cluster and self.cluster is None,
            grid_counts_clusters=self.grid_counts_clusters,
            registers=self.registers,
            static_smem_bytes=self.static_smem_bytes,
            local_bytes=self.local_bytes,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class SyntheticVariable:
    """One variable that a synthetic image describes.

    Raises
    ------
    ProgramError
        If the format cannot hold it; the message names the field.
    """

    name: str
    """The exact symbol name: any text without a zero byte."""

    nbytes: int
    """How many bytes."""

    constant: bool = False
    """Whether it is ``__constant__``."""

    init: bytes = b""
    """What the image puts there; empty: zeros."""

    def __post_init__(self) -> None:
        _check_name(self.name)
        if not 1 <= self.nbytes <= _MOST_VARIABLE:
            raise ProgramError(f"{self.nbytes}, where 1 to {_MOST_VARIABLE} are allowed", field="nbytes")
        if self.init and len(self.init) != self.nbytes:
            raise ProgramError(f"{len(self.init)} bytes, where {self.nbytes} are allowed", field="init")

    def info(self) -> VariableInfo:
        """Return what a reader finds."""
        init = self.init or (bytes(self.nbytes) if self.constant else b"")
        return VariableInfo(name=self.name, nbytes=self.nbytes, constant=self.constant, init=init)


def synthetic_cubin(
    kernels: Sequence[SyntheticKernel], arch: str = "sm_90a", variables: Sequence[SyntheticVariable] = ()
) -> bytes:
    """Return a cubin that describes ``kernels`` and ``variables``; equal arguments give equal bytes.

    Parameters
    ----------
    kernels
        The kernels, in the order of the symbol table; names must differ.
    arch
        For example ``"sm_90a"``.
    variables
        The variables, behind the kernels in the symbol table; names must differ.

    Raises
    ------
    ProgramError
        If two names are equal, there are too many kernels, or ``arch`` is no architecture.
    """
    names = [kernel.name for kernel in kernels]
    if len(set(names)) != len(names):
        raise ProgramError("two kernels have the same name", field="kernels")
    every = {*names, *(variable.name for variable in variables)}
    if len(every) != len(names) + len(variables):
        raise ProgramError("two variables, or a kernel and a variable, have the same name", field="variables")
    if _FIRST_SECTIONS + 3 * len(names) >= _SECTION_LIMIT:
        raise ProgramError(
            f"{len(names)} kernels, where fewer than {_SECTION_LIMIT // 3 - 2} are allowed", field="kernels"
        )
    sections = [
        _Section(".nv.info", SHT_CUDA_INFO, encode_attributes(_file_records(kernels)), link=_SYMTAB),
        *_info_sections(kernels, arch),
        *_code_sections(kernels),
        *_shared_sections(kernels, arch),
    ]
    places, own = _variable_sections(variables)
    first = (
        _FIRST_SECTIONS - 1 + len(sections)
    )  # of those of variables: the file-wide records are counted twice
    placed = [
        (variable, first + section, offset)
        for variable, (section, offset) in zip(variables, places, strict=True)
    ]
    return _assemble(arch, _symbols(kernels, placed), [_toolkit_note(arch), *sections, *own])


@dataclass(frozen=True, slots=True)
class _Section:
    """One section to be written."""

    name: str
    kind: int
    contents: bytes
    flags: int = 0
    link: int = 0
    info: int = 0
    alignment: int = 4
    entry_size: int = 0
    room: int = 0  # of a section without contents


def _check_name(name: str) -> None:
    if not name or "\0" in name:
        raise ProgramError(f"{shorten(name)} is empty or holds a zero byte", field="name")
    try:
        name.encode()
    except UnicodeEncodeError as error:
        raise ProgramError(f"{shorten(name)} is not UTF-8 ({error.reason})", field="name") from error


def _check_counts(counts: tuple[int, ...] | None, field: str) -> None:
    if counts is not None and not all(1 <= count <= _U32 for count in counts):
        raise ProgramError(f"{counts}, where counts from 1 to {_U32} are allowed", field=field)


def _toolkit_note(arch: str) -> _Section:
    """Return the note that names this writer and the architecture, as ptxas names itself and its options."""
    fields = ("", "trunnion", "synthetic", "no code", f"-arch {arch} ")
    text = b""
    starts = []
    for field in fields:
        starts.append(len(text))
        text += field.encode() + b"\0"
    payload = TOOLKIT.pack(_NOTE_VERSION, *starts) + text
    payload += bytes(-len(payload) % 4)
    head = NOTE.pack(12, len(payload), _NOTE_KIND, b"NVIDIA Corp\0")
    return _Section(TOOLKIT_NOTE, _SHT_NOTE, head + payload, flags=_NOTE_FLAGS)


def _file_records(kernels: Sequence[SyntheticKernel]) -> list[Attribute]:
    return [
        Attribute(_PAYLOAD_FORM, key, 0, struct.pack("<II", symbol, count))
        for symbol, kernel in enumerate(kernels, start=1)
        for key, count in ((Key.REGCOUNT, kernel.registers), (Key.MIN_STACK_SIZE, kernel.local_bytes))
        if count is not None
    ]


def _info_sections(kernels: Sequence[SyntheticKernel], arch: str) -> list[_Section]:
    code = _FIRST_SECTIONS + len(kernels)
    return [
        _Section(
            f".nv.info.{kernel.name}",
            SHT_CUDA_INFO,
            encode_attributes(_kernel_records(kernel, symbol, arch)),
            flags=_SHF_INFO_LINK,
            link=_SYMTAB,
            info=code + symbol - 1,
        )
        for symbol, kernel in enumerate(kernels, start=1)
    ]


def _kernel_records(kernel: SyntheticKernel, symbol: int, arch: str) -> list[Attribute]:
    info = kernel.info(arch)
    records = [encode_parameter(parameter, wide=kernel.is_wide) for parameter in reversed(kernel.parameters)]
    if kernel.needs_cluster or (kernel.cluster and not kernel.grid_counts_clusters):
        records.append(Attribute(_BARE_FORM, Key.EXPLICIT_CLUSTER, 0, b""))
    for key, dims in (
        (Key.CTA_PER_CLUSTER, kernel.cluster),
        (Key.MAX_THREADS, kernel.max_threads),
        (Key.REQNTID, kernel.required_threads),
    ):
        if dims is not None:
            records.append(encode_dims(key, dims))
    if kernel.max_cluster_blocks is not None:
        payload = struct.pack("<I", kernel.max_cluster_blocks)
        records.append(Attribute(_PAYLOAD_FORM, Key.MAX_CLUSTER_RANK, 0, payload))
    if kernel.grid_counts_clusters:
        records.append(Attribute(_BARE_FORM, Key.GRID_OF_CLUSTERS, 0, b""))
    if info.parameter_base is not None:
        records.append(Attribute(_HALF_FORM, Key.CBANK_PARAM_SIZE, info.parameter_bytes, b""))
        payload = struct.pack("<IHH", symbol, info.parameter_base, info.parameter_bytes)
        records.append(Attribute(_PAYLOAD_FORM, Key.PARAM_CBANK, 0, payload))
    return records


def _code_sections(kernels: Sequence[SyntheticKernel]) -> list[_Section]:
    return [
        _Section(
            f".text.{kernel.name}",
            _SHT_PROGBITS,
            _CODE,
            flags=_SHF_ALLOC_EXEC,
            link=_SYMTAB,
            info=symbol,
            alignment=_CODE_ALIGNMENT,
        )
        for symbol, kernel in enumerate(kernels, start=1)
    ]


def _shared_sections(kernels: Sequence[SyntheticKernel], arch: str) -> list[_Section]:
    reserved = RESERVED_SHARED if arch_number(arch) >= RESERVES_SHARED else 0
    return [
        _Section(
            f".nv.shared.{kernel.name}",
            SHT_NOBITS,
            b"",
            flags=_SHF_ALLOC_WRITE,
            info=_FIRST_SECTIONS + len(kernels) + index,
            alignment=16,
            room=kernel.static_smem_bytes + reserved,
        )
        for index, kernel in enumerate(kernels)
        if kernel.static_smem_bytes
    ]


def _variable_sections(
    variables: Sequence[SyntheticVariable],
) -> tuple[list[tuple[int, int]], list[_Section]]:
    """Return where each variable lies, by the place of its section and its offset there, and the sections."""
    contents: dict[str, bytearray] = {}
    places = []
    for variable in variables:
        name = USER_CONSTANTS if variable.constant else GLOBALS[1 if variable.init else 0]
        data = contents.setdefault(name, bytearray())
        data += bytes(-len(data) % _VARIABLE_ALIGNMENT)
        places.append((list(contents).index(name), len(data)))
        data += variable.init or bytes(variable.nbytes)
    sections = []
    for name, data in contents.items():
        fields = (SHT_NOBITS, b"") if name == GLOBALS[0] else (_SHT_PROGBITS, bytes(data))
        flags = _SHF_ALLOC if name == USER_CONSTANTS else _SHF_ALLOC_WRITE
        sections.append(_Section(name, *fields, flags=flags, alignment=_VARIABLE_ALIGNMENT, room=len(data)))
    return places, sections


def _symbols(
    kernels: Sequence[SyntheticKernel], variables: Sequence[tuple[SyntheticVariable, int, int]]
) -> tuple[_Section, _Section]:
    """Return the symbol names and the symbol table: a null symbol, then one for each kernel and each variable."""
    first_code = _FIRST_SECTIONS + len(kernels)
    names = bytearray(b"\0")
    table = bytearray(SYM.size)
    for index, kernel in enumerate(kernels):
        table += SYM.pack(len(names), _GLOBAL | STT_FUNC, STO_CUDA_ENTRY, first_code + index, 0, len(_CODE))
        names += kernel.name.encode() + b"\0"
    for variable, section, offset in variables:
        table += SYM.pack(len(names), _GLOBAL | STT_OBJECT, 0, section, offset, variable.nbytes)
        names += variable.name.encode() + b"\0"
    return (
        _Section(".strtab", SHT_STRTAB, bytes(names), alignment=1),
        _Section(".symtab", SHT_SYMTAB, bytes(table), link=2, info=1, alignment=8, entry_size=SYM.size),
    )


def _assemble(arch: str, symbols: tuple[_Section, _Section], others: list[_Section]) -> bytes:
    """Return the file: header, then each section's contents, then the section headers."""
    named = [*symbols, *others]
    names = bytearray(b"\0")
    starts = [0]
    for name in (".shstrtab", *(section.name for section in named)):
        starts.append(len(names))
        names += name.encode() + b"\0"
    sections = [_Section(".shstrtab", SHT_STRTAB, bytes(names), alignment=1), *named]
    body = bytearray(EHDR.size)
    headers = bytearray(SHDR.size)
    for start, section in zip(starts[1:], sections, strict=True):
        body += bytes(-len(body) % section.alignment)
        headers += SHDR.pack(
            start,
            section.kind,
            section.flags,
            0,
            len(body),
            len(section.contents) or section.room,
            section.link,
            section.info,
            section.alignment,
            section.entry_size,
        )
        body += section.contents
    body += bytes(-len(body) % 8)
    body[: EHDR.size] = _header(arch, len(body), len(sections) + 1)
    return bytes(body + headers)


def _header(arch: str, sections_at: int, count: int) -> bytes:
    ident = b"\x7fELF" + bytes((2, 1, 1, _CUDA_OSABI, _ABI)) + bytes(7)
    number = arch_number(arch)
    flags = 0x6000000 | number << 8 | (0x2 if number >= BLACKWELL else 0x4)
    return EHDR.pack(
        ident, ET_EXEC, EM_CUDA, 1, 0, 0, sections_at, flags, EHDR.size, 0, 0, SHDR.size, count, 1
    )
