"""What a cubin says about its kernels: exact names, parameter tables and launch bounds.

Pure Python over the bytes, with no driver: the same answer on a machine without a GPU. Malformed input of any
kind ends in a :class:`~trunnion.errors.CorruptArtifactError`, before a driver that takes no length would read
past its end.
"""

from __future__ import annotations

import re
import struct
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from trunnion.errors import CorruptArtifactError, shorten
from trunnion.image.elf import ET_REL, SHT_NOBITS, Elf, Section, Symbol, read_elf
from trunnion.image.nvinfo import Attribute, Key, decode_dims, decode_parameter, decode_word, read_attributes

if TYPE_CHECKING:
    from collections.abc import Mapping

    from trunnion.contract.compiler import ImageParameter

__all__ = ["CubinInfo", "KernelInfo", "VariableInfo", "read_cubin", "symbol_index"]

SHT_CUDA_INFO: Final = 0x70000000
"""``sh_type`` of ``.nv.info`` and ``.nv.info.<kernel>``."""
STT_OBJECT: Final = 1
"""``st_info`` type of a variable in a linked file."""
STT_CUDA_OBJECT: Final = 13
"""``st_info`` type of a variable in a relocatable file, or that other files may refer to."""
STO_CUDA_MANAGED: Final = 0x4
"""``st_other`` flag of a ``__managed__`` variable (tried: CUDA 13.0)."""
STT_FUNC: Final = 2
"""``st_info`` type of a function."""
STB_GLOBAL: Final = 1
"""``st_info`` binding of a name that only one file of a link may define; a weak one may stand in several."""
SHN_LORESERVE: Final = 0xFF00
"""The first ``st_shndx`` that is no section."""
STO_CUDA_ENTRY: Final = 0x10
"""``st_other`` flag of a kernel, as opposed to a device function."""
TOOLKIT_NOTE: Final = ".note.nv.tkinfo"
"""The section that names the tool that wrote the file, and the options that it was given."""
NOTE: Final = struct.Struct("<III12s")
"""A note's name size, payload size and kind, and NVIDIA's name."""
TOOLKIT: Final = struct.Struct("<6I")
"""The toolkit note: its version, then where in the text that follows object, tool, tool version, branch and
options start."""

RESERVED_SHARED: Final = 1024
"""Bytes at the start of a block's shared memory that sections count and kernels do not own, from sm_90 on."""
RESERVES_SHARED: Final = 90
"""The first architecture whose sections count them (tried: sm_80 to sm_100a, CUDA 13.0)."""
USER_CONSTANTS: Final = ".nv.constant3"
"""The section of what the source declares ``__constant__``, which all kernels share: ``CONSTANT[3]`` under "Common" of
``cuobjdump --dump-resource-usage`` ("CUDA Binary Utilities"; tried: sm_80 to sm_120, CUDA 13.0)."""

GLOBALS: Final = (".nv.global", ".nv.global.init")
"""The sections of what the source declares ``__device__``: with no initial value, and with one (tried: CUDA 13.0)."""

_LEGACY_ABI: Final = 7  # what CUDA 12 writes up to sm_90: the architecture is in the low byte of e_flags
_LEGACY_ACCELERATED: Final = 0x800
_ACCELERATED: Final = 0x8
_LEAST_ARCH: Final = 10
_RECORDED: Final = re.compile(r"(?:^|\s)-arch[ =](sm_([0-9]{2,3})[af]?)(?=\s|$)", re.ASCII)
_FUNCTION_FIGURE: Final = struct.Struct("<II")
_FIGURES: Final = MappingProxyType({Key.REGCOUNT: "a register count", Key.MIN_STACK_SIZE: "a stack size"})
_OVERLAP: Final = 4
"""How many times a file's bytes its variables may take, which hardly overlap: a small file is not to fill memory."""
_BANK: Final = struct.Struct("<IHH")


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelInfo:
    """One kernel of an image, as the image describes it.

    Raises
    ------
    CorruptArtifactError
        If the parameter ordinals are not 0, 1, 2, ..., or parameters overlap.
    """

    name: str
    """The exact symbol name, mangled if the language mangles."""

    parameters: tuple[ImageParameter, ...] = ()
    """The parameters by ordinal; offsets and sizes in bytes."""

    parameter_base: int | None = None
    """Bytes from the start of constant bank 0 to the parameters, which differ by architecture; None without
    parameters. Alignment applies to ``parameter_base + offset``."""

    max_threads: tuple[int, int, int] | None = None
    """The largest block (x, y, z), in threads, from ``__launch_bounds__``."""

    required_threads: tuple[int, int, int] | None = None
    """The only block (x, y, z) allowed, in threads."""

    cluster: tuple[int, int, int] | None = None
    """The only cluster (x, y, z) allowed, in blocks, from ``__cluster_dims__``."""

    max_cluster_blocks: int | None = None
    """The most blocks that a cluster may have, from the third number of ``__launch_bounds__``."""

    needs_cluster: bool = False
    """Whether a launch has to give a cluster: ``.explicitcluster`` asks for one, and the kernel has none of its own."""

    grid_counts_clusters: bool = False
    """Whether a launch's grid counts clusters instead of blocks, from the second part of ``__block_size__``."""

    registers: int | None = None
    """Registers of one thread."""

    static_smem_bytes: int = 0
    """Static shared memory of one block, in bytes, without what the architecture reserves."""

    local_bytes: int | None = None
    """Local memory of one thread, in bytes: the stack of the kernel and of what it calls, where registers that are
    spilled lie too. What a recursive function takes does not count."""

    def __post_init__(self) -> None:
        end = 0
        for expected, parameter in enumerate(self.parameters):
            if parameter.ordinal != expected:
                problem = f"parameter {parameter.ordinal} where parameter {expected} should be"
                raise CorruptArtifactError(f"kernel {shorten(self.name)}", problem)
            if parameter.size < 1 or parameter.offset < end:
                got = f"{parameter.size} bytes at {parameter.offset}"
                problem = f"parameter {expected} has {got}, where the one before ends at {end}"
                raise CorruptArtifactError(f"kernel {shorten(self.name)}", problem)
            end = parameter.offset + parameter.size

    @property
    def parameter_bytes(self) -> int:
        """The bytes from the first parameter's start to the last one's end."""
        last = self.parameters[-1] if self.parameters else None
        return last.offset + last.size if last is not None else 0


@dataclass(frozen=True, slots=True, kw_only=True)
class VariableInfo:
    """One variable of an image, as the image describes it."""

    name: str
    """The exact symbol name, mangled if the language mangles."""

    nbytes: int | None
    """How many bytes; None: the image does not say."""

    constant: bool = False
    """Whether it is ``__constant__``."""

    managed: bool = False
    """Whether it is ``__managed__``: such a variable is not one of each device."""

    init: bytes = field(default=b"", repr=False)
    """What the image itself puts there; empty: zeros."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CubinInfo:
    """What a cubin says about itself."""

    arch: str
    """The architecture, for example ``"sm_90a"``. The letter comes from the options that the file's tool
    recorded, or from the file's flags; a tool that records neither leaves it out."""

    kernels: tuple[KernelInfo, ...]
    """Every kernel, in the order of the symbol table."""

    relocatable: bool = False
    """Whether the file must be linked before it can be loaded."""

    definitions: tuple[str, ...] = ()
    """What a relocatable file defines and no other file of its link may: functions and variables, in the order of
    the symbol table. Empty if the file is not relocatable."""

    constant_bytes: int = 0
    """What the source declares ``__constant__``, in bytes: of the whole file, not of one kernel."""

    variables: tuple[VariableInfo, ...] = ()
    """Every ``__device__``, ``__constant__`` and ``__managed__`` variable, in the order of the symbol table."""

    references: tuple[str, ...] = ()
    """What the file uses and does not define, but for weak names: in a linked file the driver's own functions, such as
    ``vprintf``."""

    def kernel(self, name: str) -> KernelInfo | None:
        """Return the kernel whose exact symbol name is ``name``; None if there is none."""
        return next((kernel for kernel in self.kernels if kernel.name == name), None)

    def variable(self, name: str) -> VariableInfo | None:
        """Return the variable whose exact symbol name is ``name``; None if there is none."""
        return next((variable for variable in self.variables if variable.name == name), None)


def read_cubin(data: bytes) -> CubinInfo:
    """Read the kernels of a cubin.

    Parameters
    ----------
    data
        The whole file.

    Returns
    -------
    CubinInfo
        Its architecture and kernels.

    Raises
    ------
    CorruptArtifactError
        If the bytes are no cubin, or any part that is read here is truncated or contradicts another. The
        message says what was found and where.
    """
    elf = read_elf(data)
    _check_records(elf)
    symbols = elf.symbols()
    figures = _read_figures(elf, len(symbols))
    infos = _info_sections(elf)
    shared = _read_shared(elf)
    entries = [symbol for symbol in symbols if _is_kernel(symbol)]
    relocatable = elf.kind == ET_REL
    unknown = [symbol for symbol in symbols if symbol.binding == STB_GLOBAL and symbol.section == 0]
    names = elf.symbol_names(entries)
    if len(set(names)) != len(names):
        raise CorruptArtifactError("cubin", "two kernels have the same name")
    return CubinInfo(
        arch=_read_arch(elf),
        kernels=tuple(
            _read_kernel(
                elf,
                _kernel_section(elf, infos, symbol, name),
                KernelInfo(
                    name=name,
                    registers=figures[Key.REGCOUNT].get(symbol.index),
                    static_smem_bytes=shared.get(symbol.section, 0),
                    local_bytes=figures[Key.MIN_STACK_SIZE].get(symbol.index),
                ),
            )
            for symbol, name in zip(entries, names, strict=True)
        ),
        relocatable=relocatable,
        variables=_read_variables(elf, symbols),
        constant_bytes=sum(section.size for section in elf.sections if section.name == USER_CONSTANTS),
        definitions=elf.symbol_names(
            [symbol for symbol in symbols if relocatable and _is_definition(symbol)]
        ),
        references=tuple(name for name in elf.symbol_names(unknown) if not name.startswith(".")),
    )


def symbol_index(data: bytes, kernel: str) -> int | None:
    """Return where a cubin's symbol table has a kernel, counted from 0; None if it has none of that exact name.

    Parameters
    ----------
    data
        The whole file.
    kernel
        The exact symbol name.

    Raises
    ------
    CorruptArtifactError
        If the bytes are no cubin, or its symbol table cannot be read.
    """
    elf = read_elf(data)
    entries = [symbol for symbol in elf.symbols() if _is_kernel(symbol)]
    found = zip(entries, elf.symbol_names(entries), strict=True)
    return next((symbol.index for symbol, name in found if name == kernel), None)


def _is_kernel(symbol: Symbol) -> bool:
    # Section 0 means that the symbol is only declared here, which a relocatable file may do.
    return symbol.kind == STT_FUNC and bool(symbol.other & STO_CUDA_ENTRY) and symbol.section != 0


def _check_records(elf: Elf) -> None:
    """Refuse descriptions that overlap, as sections do not: many headers over one place would cost quadratic time."""
    nbytes = sum(section.size for section in elf.sections if section.kind == SHT_CUDA_INFO)
    if nbytes > len(elf.data):
        raise CorruptArtifactError("cubin", f"{nbytes} bytes of .nv.info sections, of {len(elf.data)}")


def _read_variables(elf: Elf, symbols: tuple[Symbol, ...]) -> tuple[VariableInfo, ...]:
    """Return the variables: objects in the sections where a source's variables lie."""
    places = {
        section.index: section for section in elf.sections if section.name in {USER_CONSTANTS, *GLOBALS}
    }
    found = [one for one in symbols if one.kind in {STT_OBJECT, STT_CUDA_OBJECT} and one.section in places]
    held = sum(min(one.size, len(elf.contents(places[one.section]))) for one in found)
    if held > _OVERLAP * len(elf.data):
        raise CorruptArtifactError("cubin", f"variables of {held} bytes in a file of {len(elf.data)}")
    return tuple(
        _read_variable(elf, places[symbol.section], symbol, name)
        for symbol, name in zip(found, elf.symbol_names(found), strict=True)
    )


def _read_variable(elf: Elf, section: Section, symbol: Symbol, name: str) -> VariableInfo:
    if symbol.value + symbol.size > section.size:
        where = f"{symbol.size} bytes at {symbol.value} of section {shorten(section.name)}, of {section.size}"
        raise CorruptArtifactError(f"variable {shorten(name)}", where)
    return VariableInfo(
        name=name,
        nbytes=symbol.size,
        constant=section.name == USER_CONSTANTS,
        managed=bool(symbol.other & STO_CUDA_MANAGED),
        init=bytes(elf.contents(section)[symbol.value : symbol.value + symbol.size]),
    )


def _is_definition(symbol: Symbol) -> bool:
    # Variables have a type of NVIDIA's own. Common symbols, which may stand in several files, have no section.
    return symbol.binding == STB_GLOBAL and 0 < symbol.section < SHN_LORESERVE


def _info_sections(elf: Elf) -> Mapping[int, Section]:
    """Return each ``.nv.info.<kernel>`` section by the index of the code that it describes."""
    found: dict[int, Section] = {}
    for section in elf.sections:
        if section.kind == SHT_CUDA_INFO and section.name.startswith(".nv.info."):
            if section.info in found:
                raise CorruptArtifactError(
                    "cubin", f"two sections describe the code in section {section.info}"
                )
            found[section.info] = section
    return found


def _kernel_section(elf: Elf, infos: Mapping[int, Section], symbol: Symbol, name: str) -> Section:
    """Return the section that describes a kernel, once code, symbol and description agree on its name."""
    code = elf.sections[symbol.section].name if symbol.section < len(elf.sections) else "no section"
    info = infos.get(symbol.section)
    if code != f".text.{name}" or info is None or info.name != f".nv.info.{name}":
        described = shorten(info.name) if info is not None else "no section"
        raise CorruptArtifactError(
            f"kernel {shorten(name)}",
            f"its code is in section {symbol.section} ({shorten(code)}), described by {described}",
        )
    return info


def _read_figures(elf: Elf, symbol_count: int) -> Mapping[int, Mapping[int, int]]:
    """Return what the file-wide section counts of each function: by key, then by its symbol's index."""
    figures: dict[int, dict[int, int]] = {key: {} for key in _FIGURES}
    for section in elf.sections:
        if section.kind != SHT_CUDA_INFO or section.name != ".nv.info":
            continue
        for attribute in read_attributes(elf.contents(section), section.name):
            if attribute.key not in figures:
                continue
            what = _FIGURES[Key(attribute.key)]
            if len(attribute.payload) != _FUNCTION_FIGURE.size:
                raise CorruptArtifactError(
                    "cubin section .nv.info", f"{what} of {len(attribute.payload)} bytes"
                )
            symbol, count = _FUNCTION_FIGURE.unpack(attribute.payload)
            if symbol >= symbol_count:
                raise CorruptArtifactError(
                    "cubin section .nv.info", f"{what} of symbol {symbol}, of {symbol_count}"
                )
            figures[attribute.key][symbol] = count
    return figures


def _read_shared(elf: Elf) -> Mapping[int, int]:
    """Return the static shared memory of each kernel, in bytes, by the section of its code."""
    reserved = RESERVED_SHARED if _arch_number(elf) >= RESERVES_SHARED else 0
    return {
        section.info: max(0, section.size - reserved)
        for section in elf.sections
        if section.kind == SHT_NOBITS and section.name.startswith(".nv.shared.") and section.info
    }


def _read_kernel(elf: Elf, section: Section, known: KernelInfo) -> KernelInfo:
    """Add one kernel's own records; keys that are not listed here do not concern a launch."""
    attributes = read_attributes(elf.contents(section), section.name)
    parameters = [
        decode_parameter(attribute, section.name)
        for attribute in attributes
        if attribute.key in {Key.KPARAM_INFO, Key.KPARAM_INFO_WIDE}
    ]
    single = _single_records(attributes, section.name)
    cluster_rank = single.get(Key.MAX_CLUSTER_RANK)
    dims = {
        key: decode_dims(single[key], section.name)
        for key in (Key.MAX_THREADS, Key.REQNTID, Key.CTA_PER_CLUSTER)
        if key in single
    }
    kernel = replace(
        known,
        parameters=tuple(sorted(parameters, key=lambda parameter: parameter.ordinal)),
        parameter_base=_read_parameter_base(single.get(Key.PARAM_CBANK), section.name),
        max_threads=dims.get(Key.MAX_THREADS),
        required_threads=dims.get(Key.REQNTID),
        cluster=dims.get(Key.CTA_PER_CLUSTER),
        max_cluster_blocks=None if cluster_rank is None else decode_word(cluster_rank, section.name),
        needs_cluster=Key.EXPLICIT_CLUSTER in single and Key.CTA_PER_CLUSTER not in single,
        grid_counts_clusters=Key.GRID_OF_CLUSTERS in single,
    )
    size = single.get(Key.CBANK_PARAM_SIZE)
    total = size.value if size is not None else 0
    if kernel.parameter_bytes != total:
        problem = f"its parameters end at {kernel.parameter_bytes}, but their total is {total}"
        raise CorruptArtifactError(f"kernel {shorten(known.name)}", problem)
    return kernel


def _single_records(attributes: tuple[Attribute, ...], section: str) -> Mapping[int, Attribute]:
    """Return the records that a kernel may have once, by key."""
    once = {
        Key.MAX_THREADS,
        Key.PARAM_CBANK,
        Key.REQNTID,
        Key.CBANK_PARAM_SIZE,
        Key.CTA_PER_CLUSTER,
        Key.EXPLICIT_CLUSTER,
        Key.MAX_CLUSTER_RANK,
        Key.GRID_OF_CLUSTERS,
    }
    single: dict[int, Attribute] = {}
    for attribute in attributes:
        if attribute.key not in once:
            continue
        if attribute.key in single:
            raise CorruptArtifactError(
                f"cubin section {shorten(section)}", f"two records {attribute.key:#04x}"
            )
        single[attribute.key] = attribute
    return single


def _read_parameter_base(attribute: Attribute | None, section: str) -> int | None:
    if attribute is None:
        return None
    if len(attribute.payload) != _BANK.size:
        raise CorruptArtifactError(
            f"cubin section {shorten(section)}", f"a parameter bank record of {len(attribute.payload)} bytes"
        )
    _, base, _ = _BANK.unpack(attribute.payload)
    return int(base)


def _arch_number(elf: Elf) -> int:
    return elf.flags & 0xFF if elf.abi_version <= _LEGACY_ABI else elf.flags >> 8 & 0xFF


def _read_arch(elf: Elf) -> str:
    """Return ``sm_<number>`` from the file's flags, with the letter that its tool recorded."""
    legacy = elf.abi_version <= _LEGACY_ABI
    number = _arch_number(elf)
    if number < _LEAST_ARCH:
        raise CorruptArtifactError(
            "cubin", f"its flags are of architecture {number}, where {_LEAST_ARCH} is the least"
        )
    accelerated = bool(elf.flags & (_LEGACY_ACCELERATED if legacy else _ACCELERATED))
    # ptxas 12.8 sets the flag and ptxas 13.0 does not (tried), so the recorded options come first.
    recorded = _RECORDED.search(_toolkit_options(elf))
    if recorded is not None and int(recorded[2]) == number:
        return recorded[1]
    return f"sm_{number}{'a' if accelerated else ''}"


def _toolkit_options(elf: Elf) -> str:
    """Return the command line that the tool recorded; empty without such a note, or with another layout."""
    for section in elf.sections:
        contents = elf.contents(section)
        if section.name != TOOLKIT_NOTE or len(contents) < NOTE.size + TOOLKIT.size:
            continue
        start = TOOLKIT.unpack_from(contents, NOTE.size)[-1]
        text = bytes(contents[NOTE.size + TOOLKIT.size :])
        return text[start:].split(b"\0", 1)[0].decode(errors="replace")
    return ""
