"""When something that was built can be used: conditions as data, and what is known of this machine.

A condition is a fact, a rule and a value, all of them text. Whoever reads one whose fact or rule is new cannot use what
stands under it, and says so; so later versions may add some.
"""

from __future__ import annotations

import platform
import re
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from trunnion.artifacts.artifact import IMAGE_PREFIX
from trunnion.artifacts.manifest import built_by
from trunnion.built_program import target_of
from trunnion.bundles.libstdcxx import installed_libstdcxx, newest_libstdcxx
from trunnion.contract.source import SourceWrapper
from trunnion.contract.spec import CONTRACT_VERSION
from trunnion.errors import CorruptArtifactError, TrunnionError, UnknownBackendError, shorten
from trunnion.image.cubin import read_cubin
from trunnion.image.ptx import least_cuda, read_ptx
from trunnion.image.shared_object import elf_machine, is_shared_object, needed_versions
from trunnion.image.target import can_assemble, can_run
from trunnion.selection import make_part
from trunnion.toolchain.device import Absence, arch_of, find_device
from trunnion.toolchain.driver import installed_driver
from trunnion.toolchain.processor import LEVELS, lacking_features, level_features
from trunnion.turns import kept_property
from trunnion.version_numbers import version_numbers

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from trunnion.artifacts.artifact import Artifact
    from trunnion.registry import Registry

__all__ = ["Condition", "Machine", "conditions_of"]

_ARCH: Final = re.compile(r"sm_[1-9][0-9]{1,3}[af]?")
_NUMBERS: Final = re.compile(r"[0-9]{1,6}(?:\.[0-9]{1,6}){0,3}")
_GLIBC: Final = re.compile(rf"GLIBC_({_NUMBERS.pattern})")
_MACHINES: Final = {62: "x86_64", 183: "aarch64"}  # e_machine, and what uname calls it


@dataclass(frozen=True, slots=True)
class Condition:
    """One thing that must hold."""

    fact: str
    """What it is about: ``"device"``, ``"driver"``, ``"host.machine"``, ``"host.level"``, ``"host.libc"``,
    ``"host.libstdcxx"`` or ``"backend"``."""

    rule: str
    """How the fact is compared with the value: ``"runs"``, ``"assembles"``, ``"is"``, ``"at least"``, ``"writes"``."""

    value: str
    """What it is compared with: ``"sm_90a"``, ``"x86_64"``, ``"x86-64-v3"``, ``"2.34"``; of a backend its
    name, and the versions that built something."""

    @property
    def known(self) -> bool:
        """Whether this version knows its fact and rule; a later one may."""
        return (self.fact, self.rule) in _RULES

    def lack(self, machine: Machine) -> str:
        """Return what a machine lacks of it, in words; empty if it holds.

        Parameters
        ----------
        machine
            The machine.
        """
        rule = _RULES.get((self.fact, self.rule))
        if rule is None:
            return f"this trunnion does not know the condition {shorten(f'{self.fact} {self.rule}')}"
        return rule(machine, self.value)


class Machine:
    """What is known of this machine, found out when it is first asked for.

    Parameters
    ----------
    device
        The ordinal of the device that programs are for.
    registry
        The plugins.
    """

    def __init__(self, device: int, registry: Registry) -> None:
        self.device, self.registry = device, registry

    @kept_property
    def capability(self) -> tuple[int, int] | Absence:
        """The device's compute capability, or why there is no such device."""
        return find_device(self.device)

    @property
    def arch(self) -> str:
        """The device's real architecture, such as ``"sm_90a"``; empty if there is none."""
        return "" if isinstance(self.capability, Absence) else arch_of(self.capability)

    @kept_property
    def driver(self) -> tuple[int, int] | None:
        """The newest CUDA version that the driver understands; None if there is no working one."""
        return installed_driver().cuda

    @kept_property
    def processor(self) -> str:
        """The processor, such as ``"x86_64"``."""
        return platform.machine()

    @kept_property
    def libc(self) -> tuple[str, str]:
        """The C library and its version, such as ``("glibc", "2.36")``."""
        return platform.libc_ver()

    @kept_property
    def libstdcxx(self) -> str:
        """The newest version of symbols in the C++ standard library, such as ``"3.4.30"``; empty if there is none."""
        return installed_libstdcxx()


def _of_device(machine: Machine, arch: str, fits: Callable[[str, tuple[int, int]], bool]) -> str:
    if isinstance(machine.capability, Absence):
        gone = machine.capability
        why = f"there is no device {machine.device}" if gone is Absence.DEVICE else gone.value
        return f"it is for {shorten(arch)}, and {why}"
    if not _ARCH.fullmatch(arch):
        return f"this trunnion does not know the architecture {shorten(arch)}"
    here = f"device {machine.device} is {machine.arch}"
    return "" if fits(arch, machine.capability) else f"it is for {arch}, and {here}"


def _runs(machine: Machine, arch: str) -> str:
    return _of_device(machine, arch, can_run)


def _assembles(machine: Machine, arch: str) -> str:
    return _of_device(machine, arch, can_assemble)


def _driver_at_least(machine: Machine, version: str) -> str:
    if not _NUMBERS.fullmatch(version):
        return f"this trunnion does not know the version {shorten(version)}"
    here = machine.driver
    if here and here >= version_numbers(version):
        return ""
    found = f"this one is of CUDA {here[0]}.{here[1]}" if here else "there is none"
    return f"its PTX needs a driver of CUDA {version}, {found}"


def _is_processor(machine: Machine, wanted: str) -> str:
    return "" if machine.processor == wanted else f"it is for {shorten(wanted)}, this is {machine.processor}"


def _level_at_least(_machine: Machine, level: str) -> str:
    if level not in LEVELS:
        return f"this trunnion does not know the level {shorten(level)}"
    lacking = lacking_features(level)
    return f"it is for {level}, this processor lacks {', '.join(lacking)}" if lacking else ""


def _libc_at_least(machine: Machine, version: str) -> str:
    name, here = machine.libc
    if not _NUMBERS.fullmatch(version):
        return f"this trunnion does not know the version {shorten(version)}"
    if name == "glibc" and version_numbers(here) >= version_numbers(version):
        return ""
    return f"it needs glibc {shorten(version)}, this is {name or 'another C library'} {here}".rstrip()


def _libstdcxx_at_least(machine: Machine, version: str) -> str:
    if not _NUMBERS.fullmatch(version):
        return f"this trunnion does not know the version {shorten(version)}"
    here = machine.libstdcxx
    if here and version_numbers(here) >= version_numbers(version):
        return ""
    found = f"this one has {here}" if here else "there is none"
    return f"it needs a libstdc++ with GLIBCXX_{version}, {found}"


def _writes(machine: Machine, built: str) -> str:
    """Whether the backend is here, and is of the version that built something."""
    backend, _, emitter = built.partition(" ")
    try:
        spec = machine.registry.backend(backend)
        here = make_part(spec, spec.load_wrapper, SourceWrapper, spec).version
    except UnknownBackendError:
        return f"it needs the backend {shorten(backend)}, which is not installed"
    except TrunnionError as error:
        return f"it needs the backend {shorten(backend)}: {error}"
    here = built_by(here, CONTRACT_VERSION)
    return "" if here == emitter else f"it was built by {shorten(emitter)}, this is {here}"


_RULES: Final[Mapping[tuple[str, str], Callable[[Machine, str], str]]] = MappingProxyType(
    {
        ("device", "runs"): _runs,
        ("device", "assembles"): _assembles,
        ("driver", "at least"): _driver_at_least,
        ("host.machine", "is"): _is_processor,
        ("host.level", "at least"): _level_at_least,
        ("host.libc", "at least"): _libc_at_least,
        ("host.libstdcxx", "at least"): _libstdcxx_at_least,
        ("backend", "writes"): _writes,
    }
)


def conditions_of(artifact: Artifact) -> tuple[Condition, ...]:
    """Return what must hold where an artifact is to be loaded and launched.

    Parameters
    ----------
    artifact
        The artifact.

    Raises
    ------
    CorruptArtifactError
        If its image cannot be read.
    """
    manifest = artifact.manifest
    written = built_by(manifest.emitter, manifest.contract_version)
    return (
        Condition("backend", "writes", f"{manifest.backend} {written}"),
        *_device_conditions(artifact),
        *_host_conditions(artifact),
    )


def _device_conditions(artifact: Artifact) -> Iterator[Condition]:
    images = artifact.images
    if "cubin" in images:
        yield Condition("device", "runs", read_cubin(images["cubin"]).arch)
    elif "ptx" in images:
        info = read_ptx(images["ptx"])
        yield Condition("device", "assembles", info.target)
        least = least_cuda(info.version)
        if least:  # a version that is newer than this table may be read by drivers that it does not know
            yield Condition("driver", "at least", f"{least[0]}.{least[1]}")
    elif artifact.manifest.target.startswith("cuda"):
        raise CorruptArtifactError(
            "manifest.json", "is of an artifact for CUDA that holds neither cubin nor PTX"
        )


def _host_conditions(artifact: Artifact) -> Iterator[Condition]:
    """Yield what the artifact's machine code asks of the host: there is none beside a launcher in Python."""
    target = target_of(artifact)
    if target.kind == "cpu" and level_features(target.arch):
        yield Condition("host.level", "at least", target.arch)
    machines: set[int] = set()
    needed: list[str] = []
    for name, data in artifact.files.items():
        if is_shared_object(data) and not name.startswith(IMAGE_PREFIX):
            machines.add(elf_machine(data))
            needed += needed_versions(name, data)
    for machine in sorted(machines):
        yield Condition("host.machine", "is", _MACHINES.get(machine, f"ELF machine {machine}"))
    libc = [one[1] for one in map(_GLIBC.fullmatch, needed) if one]
    if libc:
        yield Condition("host.libc", "at least", max(libc, key=version_numbers))
    libstdcxx = newest_libstdcxx(needed)
    if libstdcxx:
        yield Condition("host.libstdcxx", "at least", libstdcxx)
