"""What `trunnion doctor` is told of C++ launchers: with what they are built, loaded and run, and what does not fit."""

from __future__ import annotations

from importlib import metadata
from typing import TYPE_CHECKING

from trunnion.contract.diagnosis import Component, Diagnosis, Finding, Severity
from trunnion.toolchain.driver import installed_driver
from trunnion.toolchain.host_diagnosis import diagnose_host
from trunnion.toolchain.search import path_text
from trunnion.toolchain.torch_release import LEAST_TORCH, installed_torch, torch_problem

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from trunnion.toolchain.driver import InstalledDriver

__all__ = ["LEAST_DRIVER", "diagnose_launchers"]

LEAST_DRIVER = (12, 0)
"""The CUDA version of the oldest driver that has what every launcher calls: libraries that serve all devices."""


def diagnose_launchers(targets: Collection[str] = ("cuda",)) -> Diagnosis:
    """Return what building, loading and launching need. Loads none of it into this process.

    Parameters
    ----------
    targets
        The kinds of target that are launched on. If ``"cuda"`` is not the only one, what it alone lacks is a warning.
    """
    driver = installed_driver()
    needed = Severity.WARNING if set(targets) - {"cuda"} else Severity.ERROR
    host = diagnose_host(needed)
    torch, about_torch = _torch()
    return Diagnosis(
        (*host.components, torch, driver.component),
        (*host.findings, *about_torch, *_about_driver(driver, needed)),
    )


def _torch() -> tuple[Component, tuple[Finding, ...]]:
    """Return torch; that there is none at all is said by the doctor itself."""
    version = installed_torch()
    if version is None:
        return Component(name="torch", kind="distribution", detail="not installed"), ()
    try:
        place = str(metadata.distribution("torch").locate_file("torch"))
    except metadata.PackageNotFoundError:
        place = ""
    component = Component(name="torch", kind="distribution", version=version, chosen=path_text(place))
    problem = torch_problem()
    if not problem:
        return component, ()
    advice = f"pip install 'torch>={_text(LEAST_TORCH)}'"
    summary = (
        f"torch {version} is too old for TVM-FFI to take its tensors: {_text(LEAST_TORCH)} or later is needed"
    )
    return component, (Finding(Severity.ERROR, "torch-too-old", summary, advice),)


def _about_driver(driver: InstalledDriver, needed: Severity) -> Iterator[Finding]:
    yield from driver.findings
    if driver.cuda is not None and driver.cuda < LEAST_DRIVER and not driver.simulated:
        ours, theirs = _text(LEAST_DRIVER), _text(driver.cuda)
        summary = f"the driver understands CUDA {theirs}, launchers call what CUDA {ours} brought"
        advice = "install release 525 of the driver, or a later one"
        yield Finding(needed, "driver-too-old", summary, advice)


def _text(version: tuple[int, ...]) -> str:
    return ".".join(map(str, version))
