"""`DeviceCode`: what a device compiler is given."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, Protocol

from trunnion.errors import ProgramError, shorten
from trunnion.messages import describe, is_of_library, suggestion
from trunnion.model.fields import members, place, refuse_unknown, text
from trunnion.plain import ForeignError, asked, is_a, path_text
from trunnion.plain import text as text_of

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Mapping, Sequence

__all__ = [
    "BINARY_LANGUAGES",
    "LANGUAGE_ALIASES",
    "DeviceCode",
    "ObjectCode",
    "code_parts",
    "device_code",
    "language_name",
    "part_position",
]

_LANGUAGE_OF_SUFFIX = {
    ".cu": "cuda",
    ".cuh": "cuda",
    ".ptx": "ptx",
    ".cubin": "cubin",
    ".fatbin": "fatbin",
    ".ltoir": "ltoir",
    ".cc": "c++",
    ".cpp": "c++",
    ".cxx": "c++",
}
LANGUAGE_ALIASES: Mapping[str, str] = MappingProxyType(
    {"cu": "cuda", "cuda c++": "cuda", "nvcc": "cuda", "cpp": "c++", "cxx": "c++", "c": "c++", "cc": "c++"}
)
"""What people call some languages: for messages."""

BINARY_LANGUAGES: Final = frozenset({"cubin", "fatbin", "ltoir"})
"""Those that are bytes: a cubin, a fatbin of several images, and the LTO-IR of CUDA's compilers."""

_TEXT = frozenset({"cuda", "ptx", "c++"})
_OBJECT_CODE = BINARY_LANGUAGES | {"ptx"}  # of cuda.core's, what can be launched once it is linked
_KERNELS: Final = ("cuda.core.Kernel", "cuda.core.experimental.Kernel")
_LANGUAGE = re.compile(r"[a-z][a-z0-9_.+#-]*")
_TARGET = re.compile(r"[A-Za-z0-9_.+:-]*")
_NOT_TEXT = re.compile("[\0\ud800-\udfff]")  # a compiler takes NUL-terminated UTF-8


def language_name(value: object, field: str) -> str:
    """Return the name of a language: any word that a device compiler may read, in one spelling.

    Raises
    ------
    ProgramError
        If it is no such word.
    """
    name = text(value, field)
    if not _LANGUAGE.fullmatch(name):
        meant = suggestion(name, (*_LANGUAGE_OF_SUFFIX.values(), *BINARY_LANGUAGES), LANGUAGE_ALIASES)
        expected = "a word in lower case, without white space, such as 'cuda' or 'c++'"
        raise ProgramError(f"got {shorten(name)}, expected {expected}{meant}", field=field)
    return name


def _compilable(value: object, field: str, least: int = 1) -> str:
    """Return a text that a compiler can be given.

    Raises
    ------
    ProgramError
        If it is no text, or holds a character that no compiler takes.
    """
    found = text(value, field, least=least)
    broken = _NOT_TEXT.search(found)
    if broken:
        raise ProgramError(
            f"got the character {shorten(broken.group())} at {broken.start()}, which no source, header, macro or "
            "option can hold",
            field=field,
        )
    return found


@dataclass(frozen=True, slots=True)
class DeviceCode:
    """Source text, or a finished image, in one language."""

    language: str
    """What it is written in, as device compilers name it: ``"cuda"`` for CUDA C++, ``"c++"`` for the CPU's C++."""

    source: str | bytes
    """The text, of PTX its UTF-8 too, which may end in NUL; bytes if the language is a binary one: ``"cubin"``,
    ``"fatbin"``, ``"ltoir"``, or one that a plugin reads so (`CompilerSpec.binary_languages`)."""

    name: str = "kernel.cu"
    """The file name that messages show; never opened."""

    includes: tuple[tuple[str, str], ...] = ()
    """Headers in memory: the name in ``#include``, and the text."""

    options: tuple[str, ...] = ()
    """Options for the compiler, one word each."""

    defines: tuple[tuple[str, str | None], ...] = ()
    """Macros: name, and value or None."""

    target: str = ""
    """What to compile for unless the caller names another, for example ``"sm_90a"``; empty: the caller's device."""

    def __post_init__(self) -> None:
        with place("code"):
            object.__setattr__(self, "language", language_name(self.language, "language"))
            for name, least in (("name", 1), ("target", 0)):
                object.__setattr__(self, name, text(getattr(self, name), name, least=least))
            if not _TARGET.fullmatch(self.target):
                raise ProgramError(
                    f"got {shorten(self.target)}, expected a target such as 'sm_90a'", field="target"
                )
            words = members(self.options, "options")
            object.__setattr__(
                self, "options", tuple(_compilable(word, f"options[{i}]") for i, word in enumerate(words))
            )
            for name in ("includes", "defines"):
                object.__setattr__(self, name, self._pairs(name))
            self._check_source()

    def _pairs(self, name: str) -> tuple[tuple[str, str | None], ...]:
        """Return headers or macros as pairs; only a macro may have None for its value."""
        pairs: list[tuple[str, str | None]] = []
        for index, pair in enumerate(members(getattr(self, name), name)):
            field = f"{name}[{index}]"
            match members(pair, field):
                case (key, value):
                    absent = value is None and name == "defines"
                    given = None if absent else _compilable(value, field, least=0)
                    pairs.append((_compilable(key, field), given))
                case other:
                    raise ProgramError(f"got {len(other)} members, expected a pair", field=field)
        return tuple(pairs)

    def _check_source(self) -> None:
        if self.language == "ptx" and is_a(
            self.source, (bytes, str)
        ):  # as program.image("ptx") returns it, too
            object.__setattr__(self, "source", _image(self.source, "ptx", "source"))
        text_only, bytes_only = self.language in _TEXT, self.language in BINARY_LANGUAGES
        kinds = (str,) * (not bytes_only) + (bytes,) * (not text_only)  # of another, its compiler decides
        if not is_a(self.source, kinds):
            expected = " or ".join(kind.__name__ for kind in kinds)
            raise ProgramError(
                f"got {describe(self.source)} for language {shorten(self.language)}, expected {expected}",
                field="source",
            )
        if is_a(self.source, bytes):
            object.__setattr__(self, "source", bytes.__bytes__(self.source))
            return
        object.__setattr__(self, "source", _compilable(self.source, "source", least=0))

    @classmethod
    def from_file(cls, path: str | os.PathLike[str], language: str = "", **fields: object) -> DeviceCode:
        """Read a file; the language follows from the suffix unless it is given.

        A mark of UTF-8 at the beginning of a text is no part of it.

        Raises
        ------
        ProgramError
            If the suffix is not known and no language is given, or the file cannot be read.
        """
        known_path = path_text(path)
        if known_path is None:
            raise ProgramError(f"got {describe(path)}, expected a path", field="code")
        file = Path(known_path)
        found = text(language, "language", least=0) or _LANGUAGE_OF_SUFFIX.get(file.suffix, "")
        if not found:
            known = ", ".join(_LANGUAGE_OF_SUFFIX)
            raise ProgramError(
                f"got suffix {shorten(file.suffix)}, expected one of {known} or language=", field="code"
            )
        try:
            source = file.read_bytes() if found in BINARY_LANGUAGES else file.read_text(encoding="utf-8-sig")
        except (OSError, ValueError) as error:  # ValueError: no UTF-8, or a NUL in the path
            raise ProgramError(f"cannot read {shorten(str(file))}: {error}", field="code") from error
        refuse_unknown(fields, ("includes", "options", "defines", "target"), "code")
        return cls(found, source, name=file.name, **fields)  # type: ignore[arg-type]  # checked by the constructor


class ObjectCode(Protocol):
    """What ``cuda.core.ObjectCode`` has, and whatever else is one: a finished image, taken where `DeviceCode` is."""

    @property
    def code_type(self) -> str:
        """``"cubin"``, ``"fatbin"``, ``"ltoir"`` or ``"ptx"``."""

    @property
    def code(self) -> object:
        """The image, as bytes."""

    @property
    def name(self) -> str:
        """What messages call it; empty: nobody named it."""


def device_code(value: object, field: str) -> object:
    """Return the device code that an `ObjectCode` is; anything else as it is, and whoever calls this checks it.

    It is known by its ``code_type``, which is a text. Its kernels go by their exact names.

    Raises
    ------
    ProgramError
        If it is of another type, or does not hold its image as bytes: that of a file is a path. Or if it is a kernel of
        ``cuda.core``'s.
    """
    none = is_a(value, (DeviceCode, str, list, tuple, type))  # of which nothing is asked
    kind = None if none else text_of(_attribute(value, "code_type"))
    if kind is None:
        if is_of_library(value, *_KERNELS):
            problem = "got a cuda.core Kernel, which is loaded already and holds no image, expected the ObjectCode that"
            raise ProgramError(f"{problem} it came from", field=field)
        return value
    if kind not in _OBJECT_CODE:
        known = ", ".join(map(repr, sorted(_OBJECT_CODE)))
        problem = f"got object code of the type {shorten(kind)}, expected one of {known}"
        raise ProgramError(problem, field=field)
    data = _attribute(value, "code")
    if not is_a(data, bytes):
        problem = f"got {describe(data)}, expected the bytes of a {kind}; DeviceCode.from_file reads one"
        raise ProgramError(problem, field=f"{field}.code")
    name = text_of(_attribute(value, "name")) or f"object.{kind}"
    return DeviceCode(kind, _image(bytes.__bytes__(data), kind, f"{field}.code"), name=name)


def _attribute(value: object, name: str) -> object:
    """Return what a foreign object has of that name; None if it has nothing, or cannot say."""
    try:
        return asked(lambda: getattr(value, name, None))
    except ForeignError:
        return None


def _image(data: str | bytes, kind: str, field: str) -> str | bytes:
    """Return an image as a `DeviceCode` holds it: PTX is text, and the NULs at its end, which NVRTC writes, go."""
    if kind in BINARY_LANGUAGES:
        return data
    try:
        return (data if is_a(data, str) else bytes.__bytes__(data).decode("utf-8")).rstrip("\0")
    except UnicodeDecodeError as error:
        problem = f"is no UTF-8: {error.reason} at {error.start}"
        raise ProgramError(problem, field=field) from error


def code_parts(code: object) -> tuple[object, ...]:
    """Return the parts of a program's code, of which one may be given alone; whoever calls this checks each.

    Raises
    ------
    ProgramError
        If it is no sequence: a text, which does not say its language, is none. Or if one is an `ObjectCode` that
        cannot be taken.
    """
    alone = device_code(code, "code")
    if is_a(alone, DeviceCode):
        return (alone,)
    words = 'a DeviceCode, or a sequence of them: DeviceCode("cuda", source), or DeviceCode.from_file(path)'
    return tuple(device_code(one, f"code[{i}]") for i, one in enumerate(members(code, "code", words)))


def part_position(parts: Sequence[DeviceCode]) -> Callable[[DeviceCode], int]:
    """Return a function that says where a part stands among ``parts``, and -1 if it does not stand there.

    Most launches refer to the very object: their parts are not compared text by text.
    """
    known = {id(part): index for index, part in reversed([*enumerate(parts)])}

    def position(part: DeviceCode) -> int:
        found = known.get(id(part))
        if found is None:
            found = next((index for index, one in enumerate(parts) if one == part), -1)
        return found

    return position
