"""`KernelProgram`: all that an author says, as one frozen value."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from trunnion.errors import ProgramError, shorten
from trunnion.model.expr_tree import symbols_of
from trunnion.model.fields import describe, instance, instances, members, place, text
from trunnion.model.launch import KernelLaunch
from trunnion.model.params import Param, ScalarParam, Signature, TensorParam
from trunnion.model.tensormap import TiledTensorMap

if TYPE_CHECKING:
    import os
    from collections.abc import Iterator

    from trunnion.model.expr import Expr, Symbol
    from trunnion.model.launch import Argument
    from trunnion.model.plan import LaunchPlan

__all__ = ["DeviceCode", "KernelProgram"]

_LANGUAGE_OF_SUFFIX = {".cu": "cuda", ".cuh": "cuda", ".ptx": "ptx", ".cubin": "cubin"}
_BINARY = frozenset({"cubin"})
_TARGET = re.compile(r"[A-Za-z0-9_.+:-]*")
_NOT_TEXT = re.compile("[\0\ud800-\udfff]")  # a compiler takes NUL-terminated UTF-8


@dataclass(frozen=True, slots=True)
class DeviceCode:
    """Source text, or a finished image, in one language."""

    language: str
    """What it is written in, as device compilers name it: ``"cuda"`` for CUDA C++."""

    source: str | bytes
    """The text; bytes if the language is a binary one."""

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
            for name, least in (("language", 1), ("name", 1), ("target", 0)):
                object.__setattr__(self, name, text(getattr(self, name), name, least=least))
            if not _TARGET.fullmatch(self.target):
                raise ProgramError(
                    f"got {shorten(self.target)}, expected a target such as 'sm_90a'", field="target"
                )
            words = members(self.options, "options")
            object.__setattr__(
                self, "options", tuple(text(word, f"options[{i}]") for i, word in enumerate(words))
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
                    pairs.append((text(key, field), None if absent else text(value, field, least=0)))
                case other:
                    raise ProgramError(f"got {len(other)} members, expected a pair", field=field)
        return tuple(pairs)

    def _check_source(self) -> None:
        kind = bytes if self.language in _BINARY else str
        if not isinstance(self.source, kind):
            raise ProgramError(
                f"got {describe(self.source)} for language {shorten(self.language)}, expected {kind.__name__}",
                field="source",
            )
        if isinstance(self.source, bytes):
            return
        object.__setattr__(self, "source", text(self.source, "source", least=0))
        broken = _NOT_TEXT.search(self.source)
        if broken:
            raise ProgramError(
                f"got the character {broken.group()!a} at {broken.start()}, which no source can hold",
                field="source",
            )

    @classmethod
    def from_file(cls, path: str | os.PathLike[str], language: str = "", **fields: object) -> DeviceCode:
        """Read a file; the language follows from the suffix unless it is given.

        Raises
        ------
        ProgramError
            If the suffix is not known and no language is given, or the file cannot be read.
        """
        try:
            file = Path(path)
        except TypeError as error:
            raise ProgramError(f"got {describe(path)}, expected a path", field="code") from error
        found = language or _LANGUAGE_OF_SUFFIX.get(file.suffix, "")
        if not found:
            known = ", ".join(_LANGUAGE_OF_SUFFIX)
            raise ProgramError(
                f"got suffix {file.suffix!r}, expected one of {known} or language=", field="code"
            )
        try:
            source = file.read_bytes() if found in _BINARY else file.read_text(encoding="utf-8")
        except (OSError, ValueError) as error:  # ValueError: no UTF-8, or a NUL in the path
            raise ProgramError(f"cannot read {shorten(str(path))}: {error}", field="code") from error
        unknown = sorted(fields.keys() - {"includes", "options", "defines", "target"})
        if unknown:
            raise ProgramError(f"got unknown fields {', '.join(unknown)}", field="code")
        return cls(found, source, name=file.name, **fields)  # type: ignore[arg-type]  # checked by the constructor


@dataclass(frozen=True, slots=True)
class KernelProgram:
    """A signature, the device code, and the launches in their order.

    Everything that a launch refers to is an object of this program: a parameter, a map over one, an expression over
    the signature's symbols. Nothing is matched by its text.
    """

    name: str
    """What people call it."""

    signature: Signature
    """What a call takes and gives back."""

    code: tuple[DeviceCode, ...]
    """The device code; several parts are linked."""

    launches: tuple[KernelLaunch, ...]
    """The launches, in stream order."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "name", text(self.name, "name"))
        instance(self.signature, Signature, "signature")
        code: object = self.code
        if isinstance(code, DeviceCode):
            code = (code,)
        object.__setattr__(self, "code", instances(code, DeviceCode, "code"))
        object.__setattr__(self, "launches", instances(self.launches, KernelLaunch, "launches"))
        for name in ("code", "launches"):
            if not getattr(self, name):
                raise ProgramError("got none, expected at least one", field=name)
        known = set(self.signature.symbols())
        params: set[Param] = {*self.signature.params, *self.signature.outputs}
        for index, launch in enumerate(self.launches):
            with place(f"launches[{index}]"):
                _check_references(launch, params, known)

    def plan(self) -> LaunchPlan:
        """Return the launch plan: ordered host steps over slots.

        Raises
        ------
        ProgramError
            If the program cannot be launched at all, for example because nothing gives a symbol its value.
        """
        from trunnion.model.planning import plan_program  # noqa: PLC0415 - planning reads this module

        return plan_program(self)

    def to_json(self) -> str:
        """Return the program as JSON text; `from_json` gives back an equal program."""
        from trunnion.model.serial import dump_program  # noqa: PLC0415 - serial reads this module

        return dump_program(self)

    @classmethod
    def from_json(cls, text: str) -> KernelProgram:
        """Read what `to_json` wrote.

        Raises
        ------
        ProgramError
            If the text is not such a program: malformed, an unknown field, another schema version.
        """
        from trunnion.model.serial import load_program  # noqa: PLC0415 - serial reads this module

        return load_program(text)


def _expressions(argument: Argument) -> Iterator[Expr]:
    match argument:
        case TiledTensorMap():
            yield argument.element_offset
            yield from (*argument.extents, *argument.layout())
        case TensorParam() | ScalarParam():
            return
        case _:
            yield argument


def _check_references(launch: KernelLaunch, params: set[Param], known: set[Symbol]) -> None:
    places = [(f"grid[{i}]", e) for i, e in enumerate(launch.grid)]
    places += [(f"block[{i}]", e) for i, e in enumerate(launch.block)]
    places += [(f"cluster[{i}]", e) for i, e in enumerate(launch.cluster or ())]
    places.append(("dynamic_smem_bytes", launch.dynamic_smem_bytes))
    for index, argument in enumerate(launch.args):
        field = f"args[{index}]"
        param = argument.tensor if isinstance(argument, TiledTensorMap) else argument
        if isinstance(param, (TensorParam, ScalarParam)) and param not in params:
            raise ProgramError(
                f"{shorten(param.name)} is not a parameter of this program's signature", field=field
            )
        places += [(field, expr) for expr in _expressions(argument)]
    for field, expr in places:
        with place(field):
            for symbol in symbols_of(expr):
                if symbol not in known:
                    raise ProgramError(f"symbol {shorten(symbol.name)} does not stand in the signature")
