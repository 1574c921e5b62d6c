"""`KernelProgram`: all that an author says, as one frozen value."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from trunnion.errors import ProgramError, shorten
from trunnion.model.expr import Expr, Symbol, walk
from trunnion.model.launch import KernelLaunch
from trunnion.model.params import Param, ScalarParam, Signature, TensorParam
from trunnion.model.tensormap import TiledTensorMap

if TYPE_CHECKING:
    import os
    from collections.abc import Iterator

    from trunnion.model.launch import Argument
    from trunnion.model.plan import LaunchPlan

__all__ = ["DeviceCode", "KernelProgram"]

_LANGUAGE_OF_SUFFIX = {".cu": "cuda", ".cuh": "cuda", ".ptx": "ptx", ".cubin": "cubin"}
_BINARY = frozenset({"cubin"})


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
        if not self.language:
            raise ProgramError("got an empty text, expected a language such as 'cuda'", field="code.language")
        for name in ("includes", "options", "defines"):
            object.__setattr__(self, name, tuple(getattr(self, name)))
        for name in ("includes", "defines"):
            object.__setattr__(self, name, tuple((key, value) for key, value in getattr(self, name)))
        if isinstance(self.source, str) == (self.language in _BINARY):
            raise ProgramError(
                f"got {type(self.source).__name__} for language {self.language!r}", field="code.source"
            )

    @classmethod
    def from_file(cls, path: str | os.PathLike[str], language: str = "", **fields: object) -> DeviceCode:
        """Read a file; the language follows from the suffix unless it is given.

        Raises
        ------
        ProgramError
            If the suffix is not known and no language is given, or the file cannot be read.
        """
        file = Path(path)
        found = language or _LANGUAGE_OF_SUFFIX.get(file.suffix, "")
        if not found:
            known = ", ".join(_LANGUAGE_OF_SUFFIX)
            raise ProgramError(
                f"got suffix {file.suffix!r}, expected one of {known} or language=", field="code"
            )
        try:
            source = file.read_bytes() if found in _BINARY else file.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise ProgramError(f"cannot read {shorten(str(path))}: {error}", field="code") from error
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
        if isinstance(self.code, DeviceCode):
            object.__setattr__(self, "code", (self.code,))
        for name in ("code", "launches"):
            object.__setattr__(self, name, tuple(getattr(self, name)))
        if not isinstance(self.name, str) or not self.name:
            raise ProgramError(f"got {self.name!r}, expected a text of at least one character", field="name")
        if not self.launches:
            raise ProgramError("got no launch, expected at least one", field="launches")
        known = set(self.signature.symbols())
        members: set[Param] = {*self.signature.params, *self.signature.outputs}
        for index, launch in enumerate(self.launches):
            try:
                _check_references(launch, members, known)
            except ProgramError as error:
                raise error.within(f"launches[{index}]") from None

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


def _check_references(launch: KernelLaunch, members: set[Param], known: set[Symbol]) -> None:
    places = [(f"grid[{i}]", e) for i, e in enumerate(launch.grid)]
    places += [(f"block[{i}]", e) for i, e in enumerate(launch.block)]
    places += [(f"cluster[{i}]", e) for i, e in enumerate(launch.cluster or ())]
    places.append(("dynamic_smem_bytes", launch.dynamic_smem_bytes))
    for index, argument in enumerate(launch.args):
        field = f"args[{index}]"
        param = argument.tensor if isinstance(argument, TiledTensorMap) else argument
        if isinstance(param, (TensorParam, ScalarParam)) and param not in members:
            raise ProgramError(
                f"{shorten(param.name)} is not a parameter of this program's signature", field=field
            )
        places += [(field, expr) for expr in _expressions(argument)]
    for field, expr in places:
        for node in walk(expr):
            if isinstance(node, Symbol) and node not in known:
                raise ProgramError(
                    f"symbol {shorten(node.name)} does not stand in the signature", field=field
                )
