"""What a compiler made, before anybody keeps or loads it: it may report success and have written half of it.

Nothing of it is run: a user's own C++ in it would run where it is loaded.
"""

from __future__ import annotations

import functools
import platform
from types import MappingProxyType
from typing import TYPE_CHECKING

from trunnion.errors import CorruptArtifactError
from trunnion.image.host_object import read_host_object
from trunnion.image.shared_object import elf_machine, shared_object_functions

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["check_library", "check_object"]

_MACHINES: Mapping[str, int] = MappingProxyType({"x86_64": 62, "amd64": 62, "aarch64": 183, "arm64": 183})
"""``e_machine`` of this machine, as `platform.machine` calls it; one that is not here is not compared."""

_OURS = "_ZN8trunnion"
_OBJECT, _LIBRARY = "runtime.o", "launcher.so"


def check_object(data: bytes) -> None:
    """Refuse an object of which no launcher can be linked.

    Raises
    ------
    CorruptArtifactError
        If it is not whole, for another machine, or defines nothing of ours.
    """
    found = read_host_object(data)
    _check_machine(_OBJECT, data)
    if not any(name.startswith(_OURS) for name in found.definitions):
        raise CorruptArtifactError(_OBJECT, "defines nothing of what launchers call")


def check_library(data: bytes) -> None:
    """Refuse a launcher that cannot be loaded.

    Raises
    ------
    CorruptArtifactError
        If it is not whole, for another machine, or exports no function.
    """
    functions = shared_object_functions(_LIBRARY, data)
    _check_machine(_LIBRARY, data)
    if not functions:
        raise CorruptArtifactError(_LIBRARY, "exports no function of a launcher")


def _check_machine(name: str, data: bytes) -> None:
    here, found = _machine(), elf_machine(data)
    if here and found != here:
        raise CorruptArtifactError(name, f"is for ELF machine {found}, where this one is {here}")


@functools.cache
def _machine() -> int:
    """Return ``e_machine`` of this machine; 0 if it is not known."""
    return _MACHINES.get(platform.machine().lower(), 0)
