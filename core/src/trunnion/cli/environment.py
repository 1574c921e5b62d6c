"""What is around the plugins: versions, environment variables, the tensor library, the simulator's compiler, caches."""

from __future__ import annotations

import os
import platform
import re
import subprocess
import sys
import tempfile
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trunnion.artifacts.location import VARIABLE, default_root, is_kept_by_default
from trunnion.call_helper import GROUP as HELPERS
from trunnion.call_helper import installed_choice
from trunnion.contract.diagnosis import Finding, Severity
from trunnion.distributions import PREFIX, announced, canonical, installed, name_and_version, requirements
from trunnion.errors import ArgumentValueError, ArtifactError, DeviceRequirementError
from trunnion.registry import GROUP
from trunnion.signing.keys import PASSWORD
from trunnion.storage.ownership import check_owner

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from trunnion.toolchain.driver import InstalledDriver

__all__ = [
    "caches",
    "call_helper",
    "environment",
    "environment_findings",
    "missing_parts",
    "simulator",
    "tensor_library",
    "versions",
]

_DISTRIBUTIONS = (
    "pluggy",
    "platformdirs",
    "typer",
    "rich",
    "numpy",
    "torch",
    "cuda-bindings",
    "cuda-pathfinder",
    "apache-tvm-ffi",
)
_VARIABLES = (
    "CUDA_HOME",
    "CUDA_PATH",
    "CUDA_VISIBLE_DEVICES",
    "CONDA_PREFIX",
    "LD_LIBRARY_PATH",
    "CC",
    "CXX",
    "VIRTUAL_ENV",
    "XDG_CACHE_HOME",
)
_OWN_VARIABLES = "TRUNNION_"
_BUILT_FOR = re.compile(r"^cuda\b[^=\n]*=\s*'([0-9]+)\.([0-9]+)", re.MULTILINE)
_SECONDS = 10.0
_GOOD = frozenset({"usable", "not there yet", "turned off"})
"""What there may be to say of a cache that is as it should be."""


def versions() -> dict[str, str]:
    """Return the version of Python and of every distribution that matters; empty for one that is not installed.

    These are trunnion's own, what each of them requires, always or with an extra, those that bring plugins or a call
    helper, those that they build on, and all of NVIDIA's.
    """
    there = installed()
    ours = [name for name in there if name.startswith(PREFIX)]
    named = {
        "trunnion",
        *_DISTRIBUTIONS,
        *ours,
        *(need for name in ours for need in requirements(there[name])),
    }
    points = (*announced(GROUP, anew=True), *announced(HELPERS, anew=True))
    named |= {canonical(name_and_version(point.dist)[0]) for point in points if point.dist is not None} - {""}
    named |= {name for name in there if name.startswith("nvidia-")}
    found = {
        name: (name_and_version(there[name])[1] or "unknown") if name in there else ""
        for name in sorted(named)
    }
    return {"python": platform.python_version(), **found}


def environment() -> dict[str, str | None]:
    """Return the environment variables that matter; None for one that is not set. A password is only said to be set."""
    own = sorted(name for name in os.environ if name.startswith(_OWN_VARIABLES))
    found = {name: os.environ.get(name) for name in (*_VARIABLES, *own)}
    if PASSWORD in found:
        found[PASSWORD] = "set"  # what a doctor says is pasted into reports
    return found


def missing_parts(installed: Mapping[str, str]) -> Iterator[Finding]:
    """Yield what some backends want and is not installed.

    Parameters
    ----------
    installed
        What `versions` returned.
    """
    if not installed.get("apache-tvm-ffi"):
        summary = "apache-tvm-ffi is not installed: backends whose launchers are C++ cannot be used"
        yield Finding(Severity.INFO, "cpp-runtime-missing", summary, "pip install 'trunnion[cpp]'")


def environment_findings() -> Iterator[Finding]:
    """Yield what environment variables say that is likely not meant."""
    roots = [os.environ.get(name, "") for name in ("CUDA_PATH", "CUDA_HOME")]
    if all(roots) and Path(roots[0]).resolve() != Path(roots[1]).resolve():
        summary = (
            f"CUDA_PATH is {roots[0]}, CUDA_HOME is {roots[1]}: some libraries follow the one, some the other"
        )
        yield Finding(Severity.WARNING, "cuda-roots-differ", summary, "set both to one toolkit, or unset one")
    if os.environ.get("CUDA_VISIBLE_DEVICES") in ("", "-1"):
        summary = "CUDA_VISIBLE_DEVICES hides every device"
        yield Finding(Severity.WARNING, "devices-hidden", summary, "unset it to launch on a GPU")


def tensor_library(driver: InstalledDriver) -> tuple[dict[str, str], tuple[Finding, ...]]:
    """Return what torch is installed, without importing it, and how it fits the driver."""
    try:
        found = metadata.distribution("torch")
    except metadata.PackageNotFoundError:
        summary = "torch is not installed: programs can be compiled, not called"
        return {}, (Finding(Severity.WARNING, "torch-missing", summary, "pip install torch"),)
    built_for = _built_for(Path(str(found.locate_file("torch/version.py"))))
    facts = {
        "name": "torch",
        "version": found.version,
        "cuda": "none" if built_for is None else f"{built_for[0]}.{built_for[1]}",
        "path": str(found.locate_file("torch")),
    }
    if driver.cuda is None or driver.simulated:
        return facts, ()
    understood = f"{driver.cuda[0]}.{driver.cuda[1]}"
    if built_for is None:
        summary = "this torch is built without CUDA: nothing can be launched on this machine's driver"
        return facts, (
            Finding(Severity.ERROR, "torch-without-cuda", summary, "install a CUDA build of torch"),
        )
    if built_for[0] > driver.cuda[0]:
        summary = f"torch is built for CUDA {facts['cuda']}, the driver understands CUDA {understood}"
        advice = f"update the driver, or install a torch for CUDA {driver.cuda[0]}"
        return facts, (Finding(Severity.ERROR, "torch-newer-than-driver", summary, advice),)
    if built_for > driver.cuda:
        summary = f"torch is built for CUDA {facts['cuda']}, newer than the driver's {understood}, of one major version"
        return facts, (Finding(Severity.INFO, "torch-minor-version", summary),)
    return facts, ()


def call_helper() -> tuple[dict[str, str], tuple[Finding, ...]]:
    """Return which call helper Python launchers use, or why none."""
    choice = installed_choice()
    used = "none" if choice.helper is None else choice.name
    facts = {"used": used, "distribution": choice.distribution, "reason": choice.reason}
    if not choice.broken:
        return facts, ()
    whose = f"{choice.distribution}: " if choice.distribution else ""
    summary = f"no call helper is used: {whose}{choice.reason}"
    advice = f"launches work without it, and take longer; {choice.advice}"
    return facts, (Finding(Severity.WARNING, "call-helper-unusable", summary, advice),)


def simulator() -> tuple[dict[str, Any], tuple[Finding, ...]]:
    """Return what builds the simulated driver, and whether it builds a small library."""
    from trunnion.sim.shim import compiler_command, compiler_problem

    if not sys.platform.startswith("linux"):
        summary = f"the simulated driver runs on Linux only, this is {sys.platform}"
        return {"compiler": "", "version": ""}, (Finding(Severity.WARNING, "simulator-platform", summary),)
    try:
        command = compiler_command()
    except DeviceRequirementError as error:
        missing = Finding(
            Severity.WARNING, "simulator-compiler-missing", f"no simulation: {error}", error.hint
        )
        return {"compiler": "", "version": ""}, (missing,)
    facts = {"compiler": " ".join(command), "version": _first_line(command)}
    problem = compiler_problem(command)
    if not problem:
        return facts, ()
    summary = f"no simulation: {facts['compiler']} cannot build the simulated driver: {problem}"
    advice = (
        "name a C compiler in CC, or unset it"
        if os.environ.get("CC")
        else "install gcc or clang, or name one in CC"
    )
    return facts, (Finding(Severity.WARNING, "simulator-compiler-broken", summary, advice),)


def caches() -> tuple[dict[str, Any], tuple[Finding, ...]]:
    """Return the folders that trunnion keeps things in, and whether they can be used."""
    from trunnion.sim.shim import cache_folder

    folders, findings = {}, []
    for what, found in (("simulator", cache_folder), ("artifacts", default_root)):
        path, state = "", ""
        try:
            folder = found()
            path = os.fsencode(folder).decode("utf-8", "backslashreplace")
            off = found is default_root and not is_kept_by_default()
            state = "turned off" if off else _state(folder)
        except (ArgumentValueError, ArtifactError, OSError) as error:
            state = str(error)
        folders[what] = {"path": path, "state": state}
        if state not in _GOOD:
            summary = f"the cache of {what} cannot be used: {state}"
            advice = "mend or remove the folder, or set XDG_CACHE_HOME to one that can be written to"
            advice += f"; {VARIABLE} names another for artifacts, or is 0" if found is default_root else ""
            findings.append(Finding(Severity.WARNING, f"{what}-cache", summary, advice))
    return folders, tuple(findings)


def _state(folder: Path) -> str:
    """Return whether a folder can be used, or why it cannot."""
    if folder.exists():
        check_owner(folder.stat(), os.geteuid(), str(folder))
        problem = _writing_problem(folder)
        return f"not writable: {problem}" if problem else "usable"
    if folder.is_symlink():
        return "a link to nothing"
    problem = _writing_problem(there := _lowest_there(folder))
    return f"cannot be made in {there}: {problem}" if problem else "not there yet"


def _lowest_there(folder: Path) -> Path:
    """Return what is there already of the folders above one; it may be a file, or a link to nothing."""
    return next(parent for parent in folder.parents if os.path.lexists(parent))


def _writing_problem(folder: Path) -> str:
    """Return why nothing can be made in a folder; empty if something can.

    It is tried, and removed at once: permissions do not tell of a file system that is full, read-only or no real one.
    """
    try:
        with tempfile.TemporaryDirectory(dir=folder, prefix="trunnion-trial-"):
            return ""
    except OSError as error:
        return error.strerror or str(error)


def _built_for(version_file: Path) -> tuple[int, int] | None:
    try:
        found = _BUILT_FOR.search(version_file.read_text("utf-8", "replace"))
    except OSError:
        return None
    return (int(found[1]), int(found[2])) if found else None


def _first_line(command: tuple[str, ...]) -> str:
    try:
        done = subprocess.run(
            [*command, "--version"],
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
            timeout=_SECONDS,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"does not say: {error}"
    return (done.stdout or done.stderr).partition("\n")[0]
