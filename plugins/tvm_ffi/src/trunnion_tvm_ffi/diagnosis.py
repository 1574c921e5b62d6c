"""What `trunnion doctor` is told: with what launchers are built, loaded and run, and what of it does not fit."""

from __future__ import annotations

from importlib import metadata
from typing import TYPE_CHECKING

from trunnion.contract.diagnosis import Candidate, Component, Diagnosis, Finding, Severity
from trunnion.errors import BackendUnavailableError
from trunnion.toolchain.driver import installed_driver
from trunnion.toolchain.host_compiler import INSTALL_COMPILER, host_compiler, try_compilers
from trunnion.toolchain.host_headers import (
    FFI_DISTRIBUTION,
    INSTALL_CUDA,
    INSTALL_FFI,
    LEAST_CUDA,
    cuda_headers,
    cuda_places,
    find_ffi,
)
from trunnion.toolchain.search import judge, path_text
from trunnion_tvm_ffi.availability import LEAST_TORCH, installed_torch, torch_problem

if TYPE_CHECKING:
    from collections.abc import Iterator

    from trunnion.toolchain.driver import InstalledDriver

__all__ = ["LEAST_DRIVER", "diagnose_backend"]

LEAST_DRIVER = (12, 0)
"""The CUDA version of the oldest driver that has what every launcher calls: libraries that serve all devices."""

_Found = tuple[Component, tuple[Finding, ...]]


def diagnose_backend() -> Diagnosis:
    """Return what building, loading and launching need. Loads none of it into this process."""
    driver = installed_driver()
    parts = (_ffi(), _compiler(), _headers(), _torch(), (driver.component, tuple(_about_driver(driver))))
    return Diagnosis(
        tuple(component for component, _ in parts),
        tuple(finding for _, findings in parts for finding in findings),
    )


def _ffi() -> _Found:
    found = find_ffi()
    if isinstance(found, str):
        component = Component(name=FFI_DISTRIBUTION, kind="distribution", detail=found)
        return component, (Finding(Severity.ERROR, "tvm-ffi-missing", found, INSTALL_FFI),)
    interface = f"its C interface is of version {_text(found.version)}"
    return (
        Component(
            name=FFI_DISTRIBUTION,
            kind="distribution",
            version=found.distribution,
            chosen=path_text(found.library),
            detail=interface,
        ),
        (),
    )


def _compiler() -> _Found:
    try:
        taken = host_compiler("tvm_ffi")
    except BackendUnavailableError:
        taken = None
    candidates: list[Candidate] = []
    for trial in try_compilers():
        first = taken is not None and trial.compiler == taken and not any(one.chosen for one in candidates)
        passed_over = "another one comes first" if taken else "CXX names another one"
        reason = trial.problem or ("this one is used" if first else passed_over)
        origin = f"{trial.origin}: {trial.named}" if trial.named else trial.origin
        candidates.append(Candidate(origin, trial.path, first, reason))
    if taken is None:
        component = Component(name="host compiler", kind="compiler", candidates=tuple(candidates))
        tried = "; ".join(f"{one.origin}: {one.reason}" for one in candidates)
        summary = f"no C++ compiler can be used, so nothing can be built ({tried})"
        return component, (Finding(Severity.ERROR, "host-compiler-missing", summary, INSTALL_COMPILER),)
    component = Component(
        name="host compiler",
        kind="compiler",
        version=taken.name,
        chosen=path_text(taken.command[0]),
        detail=f"{taken.identity}; for {taken.target}",
        candidates=tuple(candidates),
    )
    return component, ()


def _headers() -> _Found:
    try:
        found = cuda_headers("tvm_ffi")
    except BackendUnavailableError:
        component = Component(name="cuda.h", kind="headers", candidates=judge(cuda_places(), ""))
        summary = f"there is no cuda.h of CUDA {_text(LEAST_CUDA)} or newer: nothing can be built for CUDA"
        return component, (Finding(Severity.ERROR, "cuda-header-missing", summary, INSTALL_CUDA),)
    component = Component(
        name="cuda.h",
        kind="headers",
        version=f"CUDA {_text(found.version)}",
        chosen=path_text(found.folder),
        candidates=judge(cuda_places(), found.folder),
    )
    return component, ()


def _torch() -> _Found:
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


def _about_driver(driver: InstalledDriver) -> Iterator[Finding]:
    yield from driver.findings
    if driver.cuda is not None and driver.cuda < LEAST_DRIVER and not driver.simulated:
        ours, theirs = _text(LEAST_DRIVER), _text(driver.cuda)
        summary = f"the driver understands CUDA {theirs}, launchers call what CUDA {ours} brought"
        advice = "install release 525 of the driver, or a later one"
        yield Finding(Severity.ERROR, "driver-too-old", summary, advice)


def _text(version: tuple[int, ...]) -> str:
    return ".".join(map(str, version))
