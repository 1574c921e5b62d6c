"""What `trunnion doctor` is told: the parts of the toolchain, and where their versions do not fit each other."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trunnion.contract.diagnosis import Diagnosis, Finding, Severity
from trunnion.toolchain.driver import installed_driver
from trunnion_nvrtc.installation import (
    MAJOR,
    bindings,
    builtins,
    find_toolchain,
    headers,
    library,
    spare_headers,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from trunnion.contract.diagnosis import Component
    from trunnion.toolchain.driver import InstalledDriver

__all__ = ["diagnose_backend", "diagnose_compiler"]

_Version = tuple[int, int] | None


def diagnose_backend() -> Diagnosis:
    """Return what launching needs: the bindings and the driver. Loads neither into this process."""
    component, version = bindings()
    driver = installed_driver()
    findings = [*_about_bindings(component, version), *driver.findings]
    if driver.cuda is not None and driver.cuda[0] < MAJOR and not driver.simulated:
        findings.append(
            Finding(
                Severity.ERROR,
                "driver-too-old",
                f"the driver understands CUDA {_text(driver.cuda)}, this plugin launches through CUDA {MAJOR}",
                f"install an NVIDIA driver for CUDA {MAJOR} (release 580 or later)",
            )
        )
    return Diagnosis((component, driver.component), tuple(findings))


def diagnose_compiler() -> Diagnosis:
    """Return what compiling needs: bindings, NVRTC, its parts and headers. Loads none of it into this process."""
    component, version = bindings()
    answers = find_toolchain()
    nvrtc, nvrtc_version = library("nvrtc", answers["nvrtc"])
    linker, linker_version = library("nvJitLink", answers["nvJitLink"])
    runtime, runtime_version = headers("cudart", answers["cudart"])
    cccl, _ = headers("cccl", answers["cccl"])
    beside = builtins(nvrtc)
    driver = installed_driver()
    findings = (
        *_about_bindings(component, version),
        *_about_nvrtc(nvrtc, nvrtc_version, beside),
        *_about_linker(linker, linker_version, nvrtc_version),
        *_about_headers(runtime, runtime_version, nvrtc_version),
        *_about_driver(driver, nvrtc_version),
    )
    return Diagnosis((component, nvrtc, beside, linker, runtime, cccl, driver.component), findings)


def _about_bindings(component: Component, version: _Version) -> Iterator[Finding]:
    advice = f"pip install 'cuda-bindings=={MAJOR}.*'"
    if not component.chosen:
        yield Finding(Severity.ERROR, "bindings-missing", "cuda-bindings is not installed", advice)
    elif version is None or version[0] != MAJOR:
        summary = f"cuda-bindings {component.version} is installed, this plugin is written for {MAJOR}.x"
        yield Finding(Severity.ERROR, "bindings-major", summary, advice)


def _about_nvrtc(nvrtc: Component, version: _Version, beside: Component) -> Iterator[Finding]:
    advice = f"pip install 'nvidia-cuda-nvrtc=={MAJOR}.*'"
    if not nvrtc.chosen:
        yield Finding(Severity.ERROR, "compiler-missing", f"NVRTC is not found: {nvrtc.detail}", advice)
        return
    if version is None:
        yield Finding(Severity.ERROR, "compiler-broken", f"{nvrtc.chosen} does not say its version", advice)
    elif version[0] != MAJOR:
        summary = f"NVRTC {nvrtc.version} is found first, cuda-bindings {MAJOR} needs {MAJOR}.x"
        yield Finding(Severity.ERROR, "compiler-major", summary, advice)
    if not beside.chosen:
        summary = (
            "libnvrtc-builtins does not lie beside libnvrtc: nothing that uses built-ins can be compiled"
        )
        yield Finding(Severity.ERROR, "builtins-missing", summary, advice)
    elif version is not None and not beside.version.startswith(_text(version)):
        summary = f"libnvrtc-builtins {beside.version} lies beside NVRTC {nvrtc.version}"
        yield Finding(Severity.ERROR, "builtins-version", summary, advice)


def _about_linker(linker: Component, version: _Version, nvrtc: _Version) -> Iterator[Finding]:
    advice = f"pip install 'nvidia-nvjitlink=={MAJOR}.*'"
    if not linker.chosen:
        summary = "nvJitLink is not found: programs of several parts cannot be linked"
        yield Finding(Severity.INFO, "linker-missing", summary, advice)
    elif version is not None and nvrtc is not None and (version[0] != nvrtc[0] or version < nvrtc):
        summary = f"nvJitLink {_text(version)} cannot link what NVRTC {_text(nvrtc)} makes"
        yield Finding(Severity.WARNING, "linker-version", summary, advice)


def _about_headers(runtime: Component, version: _Version, nvrtc: _Version) -> Iterator[Finding]:
    advice = "pip install " + " ".join(
        f"'nvidia-cuda-{one}=={MAJOR}.*'" for one in ("runtime", "cccl", "crt")
    )
    if not runtime.chosen:
        summary = "CUDA's headers are not found: sources that include one of them cannot be compiled"
        yield Finding(Severity.WARNING, "headers-missing", summary, advice)
    elif version is not None and nvrtc is not None and version[0] != nvrtc[0]:
        summary = f"the headers in {runtime.chosen} are of CUDA {_text(version)}, NVRTC is {_text(nvrtc)}"
        yield Finding(Severity.WARNING, "headers-version", summary, advice)
    spare = spare_headers(runtime.chosen) if runtime.chosen else None
    if spare is not None:
        summary = f"the headers in {runtime.chosen} lack crt/, which mma.h includes: " + (
            f"those in {spare} stand in" if spare else "sources that include it cannot be compiled"
        )
        advice = f"pip install 'nvidia-cuda-crt=={MAJOR}.*'"
        yield Finding(Severity.INFO if spare else Severity.WARNING, "headers-crt", summary, advice)


def _about_driver(driver: InstalledDriver, nvrtc: _Version) -> Iterator[Finding]:
    if nvrtc is None or driver.cuda is None or driver.simulated or nvrtc <= driver.cuda:
        return
    ours, theirs = _text(nvrtc), _text(driver.cuda)
    if nvrtc[0] > driver.cuda[0]:
        summary = f"NVRTC {ours} compiles for a newer driver than this one, which understands CUDA {theirs}"
        advice = (
            "what is compiled here runs on machines with a newer driver; to run it here, update the driver"
        )
    else:
        summary = f"NVRTC {ours} is newer than the driver's CUDA {theirs}: cubins run, PTX does not"
        advice = f"install a driver for CUDA {ours}, or: pip install 'nvidia-cuda-nvrtc=={theirs}.*'"
    yield Finding(Severity.WARNING, "compiler-newer-than-driver", summary, advice)


def _text(version: tuple[int, int]) -> str:
    return f"{version[0]}.{version[1]}"
