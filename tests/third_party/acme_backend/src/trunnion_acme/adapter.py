"""`AcmeAdapter`: build an artifact from launcher text and a cubin, and load it."""

from __future__ import annotations

import platform
from typing import TYPE_CHECKING

from trunnion.artifacts.program_file import program_of
from trunnion.contract.adapter import KernelAdapter
from trunnion.errors import CorruptArtifactError
from trunnion.image.match import match_parameters, match_variables
from trunnion.launcher.program import LauncherModule, PythonProgram

if TYPE_CHECKING:
    from pathlib import Path

    from trunnion.artifacts.artifact import Artifact
    from trunnion.contract.adapter import LoadedProgram
    from trunnion.contract.compiler import DeviceImage
    from trunnion.contract.runtime import Runtime
    from trunnion.contract.source import GeneratedSource

__all__ = ["AcmeAdapter"]

_LAUNCHER = "launcher.py"
_IMAGE = "image.cubin"


class AcmeAdapter(KernelAdapter):
    """Keep the launcher's text beside the cubin: on the host there is nothing to compile."""

    def build(self, source: GeneratedSource, image: DeviceImage, staging: Path) -> Artifact:
        """Return the artifact; ``staging`` is where a backend with a host compiler would work."""
        del staging
        match_parameters(source.plan.kernels, image)
        match_variables(source.plan.variables, image)
        files = {_LAUNCHER: source.text.encode(), _IMAGE: image.data}
        return self.artifact(source, image, files)

    def load(self, artifact: Artifact, runtime: Runtime) -> LoadedProgram:
        """Run the launcher's text over the driver."""
        from trunnion_acme.driver import acme_driver  # here: building must not need a driver

        missing = {_LAUNCHER, _IMAGE} - set(artifact.files)
        if missing:
            raise CorruptArtifactError("artifact", f"has no file {', '.join(sorted(missing))}")
        text = artifact.files[_LAUNCHER].decode()
        module = LauncherModule.execute(text, _LAUNCHER, plan=lambda: program_of(artifact).plan())
        symbols = artifact.manifest.symbols
        return PythonProgram(module, artifact.files[_IMAGE], symbols, acme_driver(), runtime)

    def fingerprint(self) -> str:
        """Return the host toolchain that an artifact depends on: here, the interpreter."""
        return f"python {platform.python_version()}"
