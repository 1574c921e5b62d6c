"""What is installed, found out without importing it, loading it or touching a device."""

from __future__ import annotations

import re

from trunnion.contract.spec import Availability

__all__ = ["LEAST_TVM_FFI", "probe_backend"]

LEAST_TVM_FFI = (0, 1, 11)
"""The first release of apache-tvm-ffi that this plugin is tested with."""


def probe_backend() -> Availability:
    """Say whether launchers could be built and loaded here."""
    least = ".".join(map(str, LEAST_TVM_FFI))
    advice = f"run: pip install 'apache-tvm-ffi>={least}'"
    found = _installed("apache-tvm-ffi")
    if found is None:
        return Availability(usable=False, detail=advice)
    if _numbers(found) < LEAST_TVM_FFI:
        return Availability(usable=False, detail=f"apache-tvm-ffi {found} is installed, {advice}")
    return Availability(usable=True, detail=f"apache-tvm-ffi {found}")


def _installed(distribution: str) -> str | None:
    from importlib import metadata  # noqa: PLC0415 - slow, and only a probe needs it

    try:
        return metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return None


def _numbers(version: str) -> tuple[int, ...]:
    """Return the numbers of a release: of ``"0.1.15.post2"`` 0, 1 and 15."""
    found = re.match(r"\d+(?:\.\d+)*", version)
    return tuple(map(int, found[0].split("."))) if found else ()
