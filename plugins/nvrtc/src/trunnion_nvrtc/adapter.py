"""`NvrtcAdapter`: build an artifact from launcher text and a cubin, and load it."""

from __future__ import annotations

from importlib.metadata import version
from typing import TYPE_CHECKING

from trunnion.artifacts.artifact import Artifact
from trunnion.codegen.python.program import PythonProgram
from trunnion.contract.adapter import KernelAdapter
from trunnion.errors import CorruptArtifactError
from trunnion.image.match import match_parameters

if TYPE_CHECKING:
    from pathlib import Path

    from trunnion.contract.adapter import LoadedProgram
    from trunnion.contract.compiler import DeviceImage
    from trunnion.contract.runtime import Runtime
    from trunnion.contract.source import GeneratedSource

__all__ = ["NvrtcAdapter"]

_LAUNCHER = "launcher.py"
_IMAGE = "image.cubin"


class NvrtcAdapter(KernelAdapter):
    """Keep a launcher's text beside its cubin; there is nothing to compile on the host."""

    def build(self, source: GeneratedSource, image: DeviceImage, staging: Path) -> Artifact:  # noqa: ARG002 - nothing is compiled, so nothing is staged
        """Return the artifact; see `KernelAdapter.build`."""
        match_parameters(source.plan.kernels, image)
        files = {_LAUNCHER: source.text.encode(), _IMAGE: image.data}
        return Artifact.create(self.spec, source, image, files)

    def load(self, artifact: Artifact, runtime: Runtime) -> LoadedProgram:
        """Load the image and run the launcher's text; see `KernelAdapter.load`."""
        from trunnion_nvrtc.driver import cuda_driver  # noqa: PLC0415 - building must not need a driver

        missing = {_LAUNCHER, _IMAGE} - set(artifact.files)
        if missing:
            raise CorruptArtifactError("artifact", f"has no file {', '.join(sorted(missing))}")
        text = artifact.files[_LAUNCHER].decode()
        symbols = [kernel.symbol for kernel in artifact.manifest.kernels]
        return PythonProgram(text, artifact.files[_IMAGE], symbols, cuda_driver(), runtime)

    def fingerprint(self) -> str:
        """Return the version of the bindings: the launcher's text calls them."""
        return f"cuda-bindings {version('cuda-bindings')}"
