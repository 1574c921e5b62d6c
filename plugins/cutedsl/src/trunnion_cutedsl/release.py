"""Which CuTeDSL is installed, found out without importing it."""

from __future__ import annotations

import functools
import re
import sys
from typing import Final

from trunnion.contract.spec import Availability
from trunnion.errors import BackendUnavailableError
from trunnion.toolchain.search import installed_stamps
from trunnion_cutedsl.availability import DISTRIBUTION

__all__ = ["PACKAGE", "components", "installed_release", "probe_compiler", "require_release"]

PACKAGE: Final = "nvidia-cutlass-dsl"
"""The distribution of CuTeDSL."""

_LEAST: Final = (4, 7)
_BEYOND: Final = (5,)
_HOW: Final = "run: pip install 'trunnion-cutedsl[compiler]'"
_COMPONENTS: Final = (PACKAGE, f"{PACKAGE}-libs-base", f"{PACKAGE}-libs-cu12", f"{PACKAGE}-libs-cu13")


def installed_release() -> str | None:
    """Return the version that is installed; None if there is none."""
    return _version(PACKAGE)


def components() -> dict[str, str]:
    """Return the version of each of CuTeDSL's distributions that is installed, and of Python, whose syntax it reads."""
    found = {name: _version(name) for name in _COMPONENTS}
    python = f"{sys.version_info.major}.{sys.version_info.minor}"
    return {**{name: version for name, version in found.items() if version}, "python": python}


def probe_compiler() -> Availability:
    """Say whether CuTeDSL could be compiled here."""
    problem = _problem()
    detail = f"{PACKAGE} {installed_release()}" if problem is None else problem
    return Availability(usable=problem is None, detail=detail)


def require_release() -> str:
    """Return the version that is installed.

    Raises
    ------
    BackendUnavailableError
        If there is none, or another than this plugin is written for.
    """
    problem = _problem()
    if problem is not None:
        raise BackendUnavailableError("cutedsl", DISTRIBUTION, problem)
    return str(installed_release())


def _problem() -> str | None:
    found = installed_release()
    if found is None:
        return f"{PACKAGE} is not installed; {_HOW}"
    numbers = tuple(int(part) for part in re.findall(r"\d+", found)[:3])
    if numbers < _LEAST:
        return f"{PACKAGE} {found} is installed, which has no TensorMap; this takes 4.7 and later 4.x; {_HOW}"
    if numbers >= _BEYOND:
        return f"{PACKAGE} {found} is installed, which this does not know; it takes 4.7 and later 4.x; {_HOW}"
    return None


def _version(distribution: str) -> str | None:
    try:
        return _found(distribution, installed_stamps())
    except ImportError:  # PackageNotFoundError; asked again the next time, when it may be there
        return None


@functools.lru_cache(64)
def _found(distribution: str, _installed: object) -> str:
    """Return the version of a distribution; found once in a process, as long as nothing is installed."""
    from importlib import metadata  # noqa: PLC0415 - slow, and only who asks needs it

    return metadata.version(distribution)
