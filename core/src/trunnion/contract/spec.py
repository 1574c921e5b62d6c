"""What a plugin says of itself: `BackendSpec`, `CompilerSpec`, and the `Target` that both speak of."""

from __future__ import annotations

import importlib
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeVar

from trunnion.errors import ProgramError, shorten
from trunnion.messages import describe, suggestion
from trunnion.model.capability import Capability
from trunnion.model.code import BINARY_LANGUAGES, language_name
from trunnion.model.fields import flag, integer, members
from trunnion.model.fields import text as plain_text
from trunnion.plain import is_a

if TYPE_CHECKING:
    from collections.abc import Callable

    from trunnion.contract.adapter import KernelAdapter
    from trunnion.contract.compiler import DeviceCompiler
    from trunnion.contract.diagnosis import Diagnosis
    from trunnion.contract.source import SourceWrapper

__all__ = [
    "CONTRACT_VERSION",
    "Availability",
    "BackendSpec",
    "Capability",
    "CompilerSpec",
    "Target",
    "called",
    "target_words",
]

_T = TypeVar("_T")

CONTRACT_VERSION = 3
"""The contract's major version. A plugin states, as a literal, the one that it was written for."""

_NEAR_TARGET = re.compile(r"(?:cuda:)?(?:(sm|compute)[-_ ]?)?([1-9]\d{1,2})([af]?)", re.ASCII | re.IGNORECASE)
_TARGET_ALIASES = {"host": "cpu", "native": "cpu", "x86_64": "cpu", "aarch64": "cpu", "gpu": "cuda:sm_90a"}
_ARCHITECTURES = ("sm_", "compute_")
"""How CUDA's architectures begin, and no kind of device: its text would be read as one of these."""

_NAME = re.compile(r"[a-z][a-z0-9_]{0,63}")
_PLACE = re.compile(r"[^\W\d]\w*(?:\.[^\W\d]\w*)*:[^\W\d]\w*")
_ARCH = re.compile(r"[A-Za-z0-9_.+-]{0,64}")
_ANY = "auto"  # what callers write where any plugin will do
_NOT_SAID = "it says that it cannot be used, and not why"


def target_words(given: str) -> str:
    """Return what a message expects in place of a target's text, with what was probably meant.

    Parameters
    ----------
    given
        What a caller wrote.
    """
    found = _NEAR_TARGET.fullmatch(given)
    aliases = dict(_TARGET_ALIASES)
    if found is not None:
        aliases[given] = f"{found[1] or 'sm'}_{found[2]}{found[3]}".lower()
    meant = suggestion(given, ("cpu", "sm_90a"), aliases)
    return f"a target such as 'sm_90a', 'compute_90', 'cuda:sm_90a' or 'cpu'{meant}"


@dataclass(frozen=True, slots=True)
class Target:
    """What to compile for: a kind of device, and an architecture in that kind's own words."""

    kind: str
    """``"cuda"``, ``"cpu"``, …"""

    arch: str = ""
    """For CUDA a real architecture such as ``"sm_90a"``, or a virtual one such as ``"compute_90a"``; for the CPU a
    level such as ``"x86-64-v3"``, or empty: what every processor of this kind runs."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "kind", plain_text(self.kind, "target.kind"))
        object.__setattr__(self, "arch", plain_text(self.arch, "target.arch", least=0))
        if self.kind.startswith(_ARCHITECTURES):
            meant = f"Target('cuda', {shorten(self.kind)})"
            raise ProgramError(
                f"got the architecture {shorten(self.kind)} as a kind of device, expected {meant}",
                field="target",
            )
        if not _NAME.fullmatch(self.kind):
            raise ProgramError(
                f"got {shorten(self.kind)}, expected {target_words(self.kind)}",
                field="target",
            )
        if not _ARCH.fullmatch(self.arch):
            raise ProgramError(
                f"got architecture {shorten(self.arch)}, expected one such as 'sm_90a'", field="target"
            )

    @classmethod
    def parse(cls, text: str | Target) -> Target:
        """Read ``"cuda:sm_90a"``, ``"sm_90a"`` (short for the former) or ``"cpu"``.

        Raises
        ------
        ProgramError
            If the text is none of these.
        """
        if is_a(text, Target):
            return text
        kind, colon, arch = plain_text(text, "target").partition(":")
        if not colon and kind.startswith(_ARCHITECTURES):
            return cls("cuda", kind)
        return cls(kind, arch)

    def __str__(self) -> str:
        return f"{self.kind}:{self.arch}" if self.arch else self.kind


@dataclass(frozen=True, slots=True)
class Availability:
    """Whether a plugin could work on this machine, found out without touching a device.

    Raises
    ------
    ProgramError
        If a field is of another type: what a plugin says is read where others are chosen, too.
    """

    usable: bool
    """Whether everything that the plugin needs is installed."""

    detail: str
    """What was found (versions), or what is missing and how to install it."""

    unusable: Mapping[str, str] = field(default_factory=dict, hash=False)
    """If it is usable for some kinds of target alone, what is missing for each other kind and how to install it."""

    def __post_init__(self) -> None:
        flag(self.usable, "usable")
        object.__setattr__(self, "detail", plain_text(self.detail, "detail", least=0))
        given: object = self.unusable
        if not isinstance(given, Mapping):
            raise ProgramError(f"got {describe(given)}, expected a mapping", field="unusable")
        plain = {
            plain_text(kind, "unusable"): plain_text(why, "unusable", least=0) for kind, why in given.items()
        }
        object.__setattr__(self, "unusable", plain)

    def problem(self, kinds: Iterable[str]) -> str:
        """Return what is missing, and how to install it; empty if the plugin could work for one of those targets."""
        if not self.usable:
            return self.detail or _NOT_SAID
        asked = [*kinds]
        missing = [self.unusable[kind] or _NOT_SAID for kind in asked if kind in self.unusable]
        return "; ".join(dict.fromkeys(missing)) if len(missing) == len(asked) else ""


def _always_available() -> Availability:
    return Availability(usable=True, detail="needs nothing more")


@dataclass(frozen=True, slots=True, kw_only=True)
class BackendSpec:
    """One backend, as its plugin announces it. Nothing here may import a toolchain."""

    name: str
    """The backend's name; equal to the name of the entry point that announces it."""

    contract_version: int
    """The `CONTRACT_VERSION` that the plugin was written for: a literal, not the imported constant."""

    targets: Mapping[str, frozenset[Capability]]
    """For each kind of target that the backend launches on, what it can do there."""

    accepts: tuple[str, ...]
    """The kinds of device image that it can load (`DeviceImage.kind`), the preferred one first."""

    load_wrapper: Callable[[], type[SourceWrapper]] | str
    """Import and return the wrapper; needs no toolchain, so source can be made on any machine. Text names it where it
    lies: ``"module:Class"``."""

    load_adapter: Callable[[], type[KernelAdapter]] | str
    """Import and return the adapter; imported at first use, so that discovery never pays for a toolchain."""

    probe: Callable[[], Availability] = _always_available
    """Say whether the backend could work here. Never raises, never initialises a device."""

    diagnose: Callable[[], Diagnosis] | str | None = None
    """Say all that can be said of what the backend needs, for ``trunnion doctor``; None: what `probe` says.

    May take a second, and start processes; never raises, never initialises a device.
    """

    auto_rank: int = 0
    """Under ``backend="auto"`` the usable backend with the highest rank wins, then the first by name."""

    summary: str = ""
    """One line for ``trunnion backends``."""

    def __post_init__(self) -> None:
        _check_spec(self, ("accepts",))
        for loader in ("load_wrapper", "load_adapter"):
            object.__setattr__(self, loader, _loader(getattr(self, loader), loader))
        object.__setattr__(self, "targets", MappingProxyType(_targets(self.targets)))


@dataclass(frozen=True, slots=True, kw_only=True)
class CompilerSpec:
    """One device compiler, as its plugin announces it. Nothing here may import a toolchain."""

    name: str
    """The compiler's name; equal to the name of the entry point that announces it."""

    contract_version: int
    """The `CONTRACT_VERSION` that the plugin was written for: a literal, not the imported constant."""

    languages: tuple[str, ...]
    """The source languages that it compiles (`DeviceCode.language`)."""

    targets: tuple[str, ...]
    """The kinds of target that it compiles for."""

    produces: tuple[str, ...]
    """The kinds of device image that it makes, the preferred one first."""

    load_compiler: Callable[[], type[DeviceCompiler]] | str
    """Import and return the compiler; imported at first use. Text names it where it lies, as in `BackendSpec`."""

    probe: Callable[[], Availability] = _always_available
    """Say whether the compiler could work here. Never raises, never initialises a device."""

    diagnose: Callable[[], Diagnosis] | str | None = None
    """Say all that can be said of what the compiler needs; as in `BackendSpec`."""

    runs_source: bool = False
    """Whether the source is a program that runs here, as the user, when it is compiled: then the caller must say that
    it is trusted (``trust=True``)."""

    binary_languages: tuple[str, ...] = ()
    """Which of `languages` are bytes, beside ``"cubin"``, ``"fatbin"`` and ``"ltoir"``; code in any other is text."""

    examples: tuple[str, ...] = ()
    """Modules with an ``EXAMPLE`` each (`trunnion.examples.Example`) in its languages, for ``trunnion demo``. The last
    part of a module's name is that of its example."""

    auto_rank: int = 0
    """Among usable compilers that fit, the one with the highest rank wins, then the first by name."""

    summary: str = field(default="")
    """One line for ``trunnion backends``."""

    def __post_init__(self) -> None:
        _check_spec(self, ("languages", "binary_languages", "targets", "produces", "examples"))
        unknown = sorted(set(self.binary_languages) - set(self.languages))
        if unknown:
            problem = f"got {', '.join(map(shorten, unknown))}, expected some of {', '.join(self.languages)}"
            raise ProgramError(problem, field="binary_languages")
        object.__setattr__(self, "load_compiler", _loader(self.load_compiler, "load_compiler"))

    def is_binary(self, language: str) -> bool:
        """Whether code in a language is bytes for this compiler."""
        return language in BINARY_LANGUAGES or language in self.binary_languages


def called(given: Callable[[], _T] | str) -> Callable[[], _T]:
    """Return a function of a spec's: what was given as text is one since the spec was made."""
    if isinstance(given, str):
        raise TypeError(f"{given} stands in no spec")
    return given


@dataclass(frozen=True, slots=True)
class _Imported:
    """What lies in a module, imported when it is called."""

    module: str
    name: str
    calls: bool  # whether it is a function to call, rather than what is wanted

    def __call__(self) -> Any:
        found = getattr(importlib.import_module(self.module), self.name)
        return found() if self.calls else found


def _loader(given: object, field_name: str, *, calls: bool = False) -> object:
    """Return a function of a spec's: itself, or what calls the one that a text names."""
    if not is_a(given, str):
        return given
    place = plain_text(given, field_name)
    if not _PLACE.fullmatch(place):
        raise ProgramError(f"got {shorten(place)}, expected 'module:Class', or a function", field=field_name)
    module, _, name = place.partition(":")
    return _Imported(module, name, calls)


def _check_spec(spec: BackendSpec | CompilerSpec, words: tuple[str, ...]) -> None:
    name = plain_text(spec.name, "name")
    if not _NAME.fullmatch(name):
        raise ProgramError(
            f"got plugin name {shorten(name)}, expected lower-case letters, digits and underscores",
            field="name",
        )
    if name == _ANY:
        raise ProgramError(
            f"got plugin name {shorten(name)}, expected another: nobody could ask for that one, it means any",
            field="name",
        )
    object.__setattr__(spec, "diagnose", _loader(spec.diagnose, "diagnose", calls=True))
    integer(spec.contract_version, "contract_version")
    integer(spec.auto_rank, "auto_rank")
    for field_name in words:
        given = members(getattr(spec, field_name), field_name)
        check = language_name if field_name in ("languages", "binary_languages") else plain_text
        plain = tuple(check(word, f"{field_name}[{i}]") for i, word in enumerate(given))
        object.__setattr__(spec, field_name, plain)


def _targets(given: object) -> dict[str, frozenset[Capability]]:
    if not isinstance(given, Mapping):
        raise ProgramError(f"got {describe(given)}, expected a mapping", field="targets")
    targets = {}
    for kind, capabilities in given.items():
        if not _NAME.fullmatch(plain_text(kind, "targets")):
            raise ProgramError(f"got kind {shorten(kind)}, expected a word such as 'cuda'", field="targets")
        if isinstance(capabilities, str) or not isinstance(capabilities, Iterable):
            raise ProgramError(
                f"got {describe(capabilities)}, expected a set of capabilities", field=f"targets.{kind}"
            )
        known = frozenset(capabilities)
        unknown = sorted(describe(one) for one in known if not isinstance(one, Capability))
        if unknown:
            raise ProgramError(
                f"got {', '.join(unknown)}, expected members of Capability",
                field=f"targets.{kind}",
            )
        targets[kind] = known
    return targets
