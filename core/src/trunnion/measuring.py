"""`measured`: ask a device compiler where a struct's fields lie, by a probe that it compiles with the same code."""

from __future__ import annotations

import re
import struct as packing
from dataclasses import dataclass, replace
from itertools import groupby
from typing import TYPE_CHECKING, Final

from trunnion.arguments import expect, expect_text
from trunnion.attempts import probe
from trunnion.checked_compiler import load_compiler
from trunnion.compiler_options import options_of
from trunnion.contract.compiler import CompileRequest
from trunnion.contract.spec import Target
from trunnion.errors import (
    CompileError,
    CorruptArtifactError,
    DeviceRequirementError,
    ProgramError,
    UnsupportedFeatureError,
    shorten,
)
from trunnion.image.elf import read_elf
from trunnion.messages import suggestion
from trunnion.model.code import DeviceCode
from trunnion.model.fields import place
from trunnion.model.member_kind import MemberKind, passed_by, unlike
from trunnion.model.plan import KernelParameter, KernelSignature
from trunnion.model.struct import Array, Struct, layout_of
from trunnion.registry import Registry, default_registry

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any

    from trunnion.contract.compiler import DeviceCompiler, DeviceImage
    from trunnion.contract.spec import CompilerSpec
    from trunnion.model.launch import Argument

__all__ = ["measured"]

_KERNEL: Final = "trunnion_measuring_kernel"
_NUMBERS: Final = "trunnion_measured_numbers"
_TYPE: Final = "trunnion_measured_type"
_TYPE_FILE: Final = "trunnion_measured_type"
_MEMBERS_FILE: Final = "trunnion_measured_members"
_LANGUAGE: Final = "cuda"
_IMAGE: Final = "cubin"
_WORD: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_ERROR: Final = re.compile(
    r"^(.*)\((\d+)\): (?:catastrophic )?error(?: #[\w-]+)?: (.*(?:\n {4,}[^\s^].*)*)", re.MULTILINE
)
"""The first error of a log: the file, the line, and the sentence, which may go on in lines that are indented."""
_PROBE: Final = """
#line 1 "trunnion_measuring"
#ifdef __CUDACC_RTC__
#define TRUNNION_OFFSET(member) __INTADDR__(&((trunnion_measured_type*)0)->member)
#else
#define TRUNNION_OFFSET(member) __builtin_offsetof(trunnion_measured_type, member)
#endif
#line 1 "{type_file}"
using trunnion_measured_type = {type};
#line 1 "trunnion_measuring"
template <class T, bool = __is_enum(T)> struct trunnion_kind {{ enum : unsigned long long {{ is = 0 }}; }};
template <class T> struct trunnion_kind<T, true> : trunnion_kind<__underlying_type(T)> {{}};
template <class T> struct trunnion_kind<T&, false> : trunnion_kind<T> {{}};
template <class T> struct trunnion_kind<const T, false> : trunnion_kind<T> {{}};
template <class T> struct trunnion_kind<volatile T, false> : trunnion_kind<T> {{}};
template <class T> struct trunnion_kind<const volatile T, false> : trunnion_kind<T> {{}};
{kinds}
template <class T> struct trunnion_empty {{ enum : unsigned long long {{ is = __is_empty(T) }}; }};
template <class T> struct trunnion_empty<T&> : trunnion_empty<T> {{}};
extern "C" __device__ __constant__ unsigned long long {numbers}[] = {{
#line 1 "{members_file}"
{values}
#line 1 "trunnion_measuring"
}};
extern "C" __global__ void {kernel}(unsigned long long* out) {{ *out = {numbers}[*out]; }}
"""
"""The kernel reads the numbers at a place that no compiler can know, so that it keeps them all. Kinds have no
``<type_traits>``, which not every machine has headers for.

By ``#line`` an error names what was asked for when it came up: the type, or a member by its place among the paths.

NVRTC has neither ``offsetof`` nor its builtin; ``__INTADDR__`` is what its front end's own ``<stddef.h>`` makes of it.
"""


_KINDS: Final = (
    (MemberKind.SIGNED, ("char", "signed char", "short", "int", "long", "long long")),
    (
        MemberKind.UNSIGNED,
        ("unsigned char", "unsigned short", "unsigned int", "unsigned long", "unsigned long long"),
    ),
    (MemberKind.UNSIGNED, ("bool", "wchar_t", "char16_t", "char32_t")),
    (MemberKind.FLOATING, ("float", "double")),
)


def measured(  # noqa: PLR0913 - what compiles the program's code, as `trunnion.compile` takes it
    value: Struct,
    name: str,
    code: DeviceCode,
    *,
    target: str | Target | None = None,
    compiler: str | None = None,
    options: Mapping[str, Mapping[str, Any]] | None = None,
    registry: Registry | None = None,
    complete: bool = False,
) -> Struct:
    """Return a struct with the layout that a C++ type has for a device compiler. Needs no device if a target is named.

    A probe is compiled with the same code and options; ``sizeof``, ``alignof`` and ``offsetof`` of the type, and of
    what is within it, are read from the image. So templates, base classes and members between the fields have
    their effect. Members that the struct does not name are 0, unless `complete` has them refused.

    Parameters
    ----------
    value
        The struct; its fields bear the names of the type's members.
    name
        The type, as the code spells it at its end: ``"ns::Params<3>"``.
    code
        The program's device code.
    target
        What the program is compiled for; None: what the code names, else the first device.
    compiler
        The device compiler's name; None: the usable one with the highest rank for the code's language.
    options
        Options of the device compiler, ``{plugin: {option: value}}``, as `compile` takes them.
    registry
        The plugins to choose from; None: those that are installed.
    complete
        Refuse bytes that are no field's and no padding: a member that nobody names. One that lies where C would leave
        padding anyhow, such as a ``char`` before a pointer, cannot be told from it.

    Raises
    ------
    ProgramError
        If the compiler knows no such type, or a field's name is no member's, or one's of which it tells no place
        (a private one, a bit-field), or a member has another size than what is passed there, is of another kind (a
        number for a pointer, a float for an integer), or is not aligned to what that asks for; the field is named. Or
        if members are missing that `complete` asks for, or there are options for anybody else.
    CompileError
        If the compiler refuses the code.
    UnsupportedFeatureError
        If no installed compiler makes a cubin of the code.
    DeviceRequirementError
        If no target is named and there is no device.
    """
    expect(value, Struct, "value", "a Struct: what struct(...) returns")
    expect(code, DeviceCode, "code", "a DeviceCode")
    expect(complete, bool, "complete", "a bool")
    plugins = default_registry() if registry is None else expect(registry, Registry, "registry", "a Registry")
    places = tuple(_places(value, ""))
    spec = _compiler(plugins, compiler, code)
    device = load_compiler(spec)
    request = CompileRequest(
        code=(_probe(code, expect_text(name, "name", "a C++ type"), places),),
        kernels=(KernelSignature(_KERNEL, (KernelParameter(8, 8, "a pointer to uint64 (8 bytes)"),)),),
        target=_target(target, code, device),
        options=options_of(options, spec.name),
        accepts=(_IMAGE,),
    )
    with place(shorten(name)):
        try:
            image = device.compile(request)
        except CompileError as error:
            _refuse_by_field(error, name, code, [path for path, _ in groupby(path for _, path in places)])
            raise
        numbers = dict(zip(places, _read(image, len(places)), strict=True))
        return _measured(value, "", _Numbers(numbers, complete))


def _places(value: Argument | Array, path: str) -> Iterator[tuple[str, str]]:
    """Yield what is asked, each by an operator and the path of a member; empty: of the type itself."""
    yield "sizeof", path
    if isinstance(value, (Struct, Array)):
        yield "alignof", path
    else:
        yield "kind", path
    if isinstance(value, Struct) and not value.fields:
        yield "empty", path  # its size does not tell: without members it is 1, as with a char
    if path:
        yield "offsetof", path
        yield "aligned", path
    for inner, one in _members(value, path):
        yield from _places(one, inner)


def _members(value: Argument | Array, path: str) -> list[tuple[str, Argument | Array]]:
    if isinstance(value, Array):
        return [(f"{path}[{index}]", one) for index, one in enumerate(value.values)]
    if not isinstance(value, Struct):
        return []
    for name, _ in value.fields:
        if not _WORD.fullmatch(name):
            raise ProgramError("expected the name of a C++ member", field=f"struct.field {shorten(name)}")
    return [(f"{path}.{name}" if path else name, one) for name, one in value.fields]


def _probe(code: DeviceCode, name: str, places: tuple[tuple[str, str], ...]) -> DeviceCode:
    """Return the code with the probe behind it."""
    values = ",\n".join(
        ", ".join(_question(operator, path) for operator, path in asked)
        for _, asked in groupby(places, key=lambda one: one[1])
    )
    text = _PROBE.format(
        type=name, numbers=_NUMBERS, values=values, kernel=_KERNEL, kinds=_kinds(),
        type_file=_TYPE_FILE, members_file=_MEMBERS_FILE,
    )  # fmt: skip
    return replace(code, source=str(code.source) + text)


def _refuse_by_field(error: CompileError, name: str, code: DeviceCode, paths: list[str]) -> None:
    """Refuse the type or the member that the compiler stopped at, unless the fault is the code's own."""
    found = _ERROR.search(error.log)
    file, line = (found[1].rpartition("/")[2], int(found[2])) if found else ("", 0)
    if found is None or file not in {_TYPE_FILE, _MEMBERS_FILE} or not 1 <= line <= len(paths):
        return
    sentence = "; ".join(part.strip() for part in found[3].splitlines())
    path = paths[line - 1] if file == _MEMBERS_FILE else ""
    array, _, index = path.rpartition("[")
    if path.endswith("]"):
        raise ProgramError(
            f"got an array, where the member is none ([{index}: {sentence}); pass one value, for a pointer a tensor or "
            "an address, for a class struct(('x', ...), ('y', ...)) with the names of its members",
            field=f"field {shorten(array)}",
        ) from None
    texts = (str(code.source), *(str(text) for _, text in code.includes))
    words = {word for text in texts for word in _WORD.findall(text)}
    lost = [word for word in _WORD.findall(path.rpartition(".")[2] or name) if word not in words]
    known = words - {word for one in paths for word in _WORD.findall(one)}
    advice = next(filter(None, (suggestion(word, sorted(known)) for word in lost)), "")
    if "bit field" in sentence:
        advice = (
            "; a bit-field has no place of its own: build the type without measured(), by offsets={...}, with an "
            "integer of all the bits that lie together"
        )
    elif not advice and path:
        advice = "; name a public member that has an address, or say offsets={...}"
    raise ProgramError(f"{sentence}{advice}", field=f"field {shorten(path)}" if path else "") from None


def _question(operator: str, path: str) -> str:
    if operator == "offsetof":
        return f"TRUNNION_OFFSET({path})"
    member = f"(({_TYPE}*)nullptr)->{path}"
    if operator == "kind":
        return f"trunnion_kind<decltype({member})>::is"
    if operator == "empty":
        return f"trunnion_empty<{f'decltype({member})' if path else _TYPE}>::is"
    if operator == "aligned":
        return f"__alignof__({member})"
    if operator == "sizeof":
        return f"sizeof({member if path else _TYPE})"
    return f"alignof({f'decltype({member})' if path else _TYPE})"


def _kinds() -> str:
    """Return the lines that tell the kinds of the language's own types."""
    types = [(one, "class T", MemberKind.POINTER) for one in ("T*", "T* __restrict__")]
    types += [(one, "", kind) for kind, names in _KINDS for one in names]
    return "\n".join(
        f"template <{given}> struct trunnion_kind<{one}, false> {{ enum : unsigned long long {{ is = {kind:d} }}; }};"
        for one, given, kind in types
    )


def _compiler(plugins: Registry, name: str | None, code: DeviceCode) -> CompilerSpec:
    """Return who compiles the probe."""
    if code.language != _LANGUAGE:
        raise UnsupportedFeatureError(
            "measured",
            [f"code in {code.language}"],
            f"types are declared in {_LANGUAGE}; else say offsets={{...}}",
        )
    named = plugins.compilers() if name is None else (plugins.compiler(name),)
    fitting = [
        spec
        for spec in named
        if code.language in spec.languages and _IMAGE in spec.produces and not spec.runs_source
    ]
    if not fitting:
        raise UnsupportedFeatureError(
            "no installed device compiler" if name is None else name,
            [f"a cubin of {code.language}, to measure a struct"],
            "say the offsets: struct(..., offsets={...})",
        )
    usable = [spec for spec in fitting if not probe(spec).problem(frozenset(spec.targets))]
    return min(usable or fitting, key=lambda spec: (-spec.auto_rank, spec.name))


def _target(given: str | Target | None, code: DeviceCode, device: DeviceCompiler) -> Target:
    said = given or code.target
    found = Target.parse(said) if said else device.default_target()
    if found is None:
        raise DeviceRequirementError(
            "a target", "none, and no device to take it from", "name one, such as target='sm_90a'"
        )
    return found


def _read(image: DeviceImage, count: int) -> tuple[int, ...]:
    """Return the numbers that stand in an image.

    Raises
    ------
    CorruptArtifactError
        If they do not.
    """
    elf = read_elf(image.data)
    symbols = elf.symbols()
    for symbol, name in zip(symbols, elf.symbol_names(symbols), strict=True):
        if name == _NUMBERS and 0 < symbol.section < len(elf.sections):
            data = elf.contents(elf.sections[symbol.section])[symbol.value : symbol.value + 8 * count]
            if len(data) == 8 * count:
                return packing.unpack(f"<{count}Q", data)
    raise CorruptArtifactError("cubin", f"it has no {count} numbers called {_NUMBERS}")


@dataclass(frozen=True, slots=True)
class _Numbers:
    """What the compiler said."""

    known: Mapping[tuple[str, str], int]
    """By what was asked of whom."""

    complete: bool
    """Whether every member has to be named."""

    def __getitem__(self, asked: tuple[str, str]) -> int:
        return self.known[asked]


def _measured(value: Struct, path: str, numbers: _Numbers) -> Struct:
    """Return a struct as the compiler lays it out."""
    start = numbers["offsetof", path] if path else 0
    fields, offsets = [], []
    for (name, _), (inner, one) in zip(value.fields, _members(value, path), strict=True):
        fields.append((name, _measured_value(one, inner, numbers)))
        offsets.append(numbers["offsetof", inner] - start)
    if numbers.complete and (fields or not numbers["empty", path]):
        _refuse_holes(value, path, numbers)
    return Struct(tuple(fields), tuple(offsets), numbers["sizeof", path], numbers["alignof", path])


def _refuse_holes(value: Struct, path: str, numbers: _Numbers) -> None:
    """Refuse bytes of a type that no field covers, and that C would not leave free before what comes next anyhow."""
    start = numbers["offsetof", path] if path else 0
    stops = sorted(
        (numbers["offsetof", inner] - start, numbers["aligned", inner], numbers["sizeof", inner], inner)
        for inner, _ in _members(value, path)
    )
    end, behind = 0, "at its start"
    for at, alignment, size, inner in (*stops, (numbers["sizeof", path], numbers["alignof", path], 0, "")):
        if at > -(-end // alignment) * alignment:
            raise ProgramError(
                f"got no field for bytes {end} to {at - 1} of {numbers['sizeof', path]}, {behind}, expected all but "
                "padding to be covered; name the members there, or leave out complete=True: then they are 0",
                field=f"field {shorten(path)}" if path else "",
            )
        end, behind = at + size, f"behind {shorten(inner)}"


def _measured_value(value: Argument | Array, path: str, numbers: _Numbers) -> Argument | Array:
    """Return a field as the compiler lays it out, if it has the size and the kind of what is passed."""
    found: Argument | Array = value
    if isinstance(value, Struct):
        found = _measured(value, path, numbers)
    elif isinstance(value, Array):
        found = Array(tuple(_measured_value(one, inner, numbers) for inner, one in _members(value, path)))
    size, passed = numbers["sizeof", path], layout_of(found).nbytes
    if size != passed:
        raise ProgramError(f"got {passed} bytes, where the member has {size}", field=f"field {shorten(path)}")
    if found is value:
        _expect_kind(value, path, MemberKind(numbers["kind", path]))
    return found


def _expect_kind(value: Argument | Array, path: str, member: MemberKind) -> None:
    given = unlike(passed_by(value), member)
    if given is not None:
        raise ProgramError(
            f"got {given}, where the member is {member.text}; pass such a one, or say offsets={{...}} if its bytes "
            "are meant as they are",
            field=f"field {shorten(path)}",
        )
