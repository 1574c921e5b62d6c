"""What ``trunnion doctor`` is told of the host C++ toolchain: every part and place, and why it is taken or not."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trunnion.contract.diagnosis import Candidate, Component, Diagnosis, Finding, Severity
from trunnion.errors import BackendUnavailableError, CompileError, DeviceRequirementError
from trunnion.storage.scratch import scratch_folder
from trunnion.toolchain.host_compilation import HostCompilation, compile_host
from trunnion.toolchain.host_compiler import INSTALL_COMPILER, try_compilers
from trunnion.toolchain.host_headers import (
    FFI_DISTRIBUTION,
    INSTALL_CUDA,
    INSTALL_FFI,
    LEAST_CUDA,
    cuda_places,
    find_cuda,
    find_ffi,
)
from trunnion.toolchain.search import judge, path_text

if TYPE_CHECKING:
    from trunnion.toolchain.host_compiler import CompilerTrial, HostCompiler

__all__ = ["diagnose_host"]

_TRIAL = (
    '#include <cstring>\nextern "C" unsigned long trunnion_trial(const char* s) { return std::strlen(s); }\n'
)
_TRIAL_SECONDS = 30.0

_Part = tuple[Component, tuple[Finding, ...]]


def diagnose_host(headers: Severity | None = Severity.ERROR) -> Diagnosis:
    """Return what building C++ launchers needs: TVM-FFI, a compiler and CUDA's headers.

    The compiler is tried on a small source: one whose assembler, linker or headers of C are missing says its version
    all the same. Nothing is loaded into this process.

    Parameters
    ----------
    headers
        How bad it is that there are none of CUDA's headers; None: nobody wants any.
    """
    parts = (_ffi(), _compiler(), *((_headers(headers),) if headers is not None else ()))
    return Diagnosis(
        tuple(component for component, _ in parts),
        tuple(finding for _, findings in parts for finding in findings),
    )


def _ffi() -> _Part:
    found = find_ffi()
    if isinstance(found, str):
        component = Component(name=FFI_DISTRIBUTION, kind="distribution", detail=found)
        return component, (Finding(Severity.ERROR, "tvm-ffi-missing", found, INSTALL_FFI),)
    component = Component(
        name=FFI_DISTRIBUTION,
        kind="distribution",
        version=found.distribution,
        chosen=path_text(found.library),
        detail=f"its C interface is of version {_text(found.version)}",
    )
    return component, ()


def _compiler() -> _Part:
    trials = tuple(try_compilers())
    named = trials[0].named
    eligible = trials[:1] if named else trials
    taken = next((trial for trial in eligible if trial.compiler is not None), None)
    candidates = tuple(_candidate(trial, taken, named) for trial in trials)
    if taken is None or taken.compiler is None:
        component = Component(name="host compiler", kind="compiler", candidates=candidates)
        tried = "; ".join(trial.text for trial in eligible)
        summary = f"no C++ compiler can be used, so no launcher can be built ({tried})"
        return component, (Finding(Severity.ERROR, "host-compiler-missing", summary, INSTALL_COMPILER),)
    component = Component(
        name="host compiler",
        kind="compiler",
        version=taken.compiler.name,
        chosen=taken.path,
        detail=f"{taken.compiler.identity}; for {taken.compiler.target}",
        candidates=candidates,
    )
    problem = _trial_failure(taken.compiler)
    if not problem:
        return component, ()
    summary = f"{taken.compiler.name} cannot build a library: {problem}"
    return component, (Finding(Severity.ERROR, "host-compiler-broken", summary, INSTALL_COMPILER),)


def _candidate(trial: CompilerTrial, taken: CompilerTrial | None, named: str) -> Candidate:
    if trial is taken:
        reason = "this one is used"
    elif trial.problem:
        reason = trial.problem
    else:
        reason = "CXX names another one" if named else "another one comes first"
    origin = f"{trial.origin}: {trial.named}" if trial.named else trial.origin
    return Candidate(origin, trial.path, trial is taken, reason)


def _trial_failure(compiler: HostCompiler) -> str:
    """Return what is wrong with a compiler that says its version, in one line; empty if it builds a library."""
    asked = HostCompilation(
        source="trial.cc",
        text=_TRIAL,
        output="trial.so",
        options=("-shared", "-fPIC", "trial.cc"),
        seconds=_TRIAL_SECONDS,
    )
    try:
        with scratch_folder() as folder:
            compile_host(compiler, asked, folder, "doctor")
    except CompileError as error:
        lines = error.log.strip().splitlines() or ["it fails and prints nothing"]
        return next((line for line in lines if "error" in line), lines[-1])
    except (BackendUnavailableError, DeviceRequirementError, OSError) as error:
        return str(error)
    return ""


def _headers(needed: Severity) -> _Part:
    found = find_cuda()
    if found is None:
        component = Component(name="cuda.h", kind="headers", candidates=judge(cuda_places(), ""))
        summary = (
            f"there is no cuda.h of CUDA {_text(LEAST_CUDA)} or newer, so no launcher for CUDA can be built"
        )
        return component, (Finding(needed, "cuda-header-missing", summary, INSTALL_CUDA),)
    component = Component(
        name="cuda.h",
        kind="headers",
        version=f"CUDA {_text(found.version)}",
        chosen=path_text(found.folder),
        candidates=judge(cuda_places(), found.folder),
    )
    return component, ()


def _text(version: tuple[int, ...]) -> str:
    return ".".join(map(str, version))
