"""What was measured on, and with which versions."""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import torch

import trunnion
from launching.subject import version_of

if TYPE_CHECKING:
    from launching.stage import Device

__all__ = ["Machine"]

_DISTRIBUTIONS = (
    "torch",
    "cuda-bindings",
    "trunnion-fastcall",
    "apache-tvm-ffi",
    "nvidia-cuda-nvrtc",
    "cuda-core",
    "cupy-cuda13x|cupy-cuda12x|cupy",
    "triton",
    "nvidia-cutlass-dsl",
    "tilelang",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """The conditions of a measurement."""

    date: str
    """The day, in UTC."""

    device: str
    """The GPU's name, or that it is simulated."""

    simulated: bool
    """Whether there is no GPU, so that the times say nothing."""

    driver: str
    """The NVIDIA driver's version; empty if nvidia-smi does not say."""

    cpu: str
    """The processor's name."""

    cores: int
    """How many of its cores this process may use."""

    python: str
    """The interpreter's version."""

    versions: dict[str, str]
    """Of every distribution that takes part and is installed."""

    @classmethod
    def here(cls, device: Device) -> Machine:
        """Return this machine."""
        found = {name.partition("|")[0]: version_of(name) for name in _DISTRIBUTIONS}
        return cls(
            date=datetime.now(UTC).date().isoformat(),
            device=device.name,
            simulated=device.simulator is not None,
            driver="" if device.simulator else _driver(),
            cpu=_cpu(),
            cores=len(os.sched_getaffinity(0)),
            python=platform.python_version(),
            versions={
                "trunnion": trunnion.__version__,
                "CUDA of torch": torch.version.cuda or "",
                **{name: version for name, version in found.items() if version},
            },
        )

    def line(self) -> str:
        """Return everything in one sentence."""
        versions = ", ".join(f"{name} {version}" for name, version in self.versions.items() if version)
        driver = f", driver {self.driver}" if self.driver else ""
        return f"{self.date}: {self.device}{driver}; {self.cpu}, {self.cores} cores; Python {self.python}; {versions}."


def _cpu() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text("utf-8").splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(names, platform.machine())


def _driver() -> str:
    tool = shutil.which("nvidia-smi")
    if tool is None:
        return ""
    command = [tool, "--query-gpu=driver_version", "--format=csv,noheader", "--id=0"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.stdout.strip() if done.returncode == 0 else ""
