"""`NvrtcAdapter`: build an artifact from launcher text and an image, and load it."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

from trunnion.artifacts.program_file import program_of
from trunnion.contract.adapter import KernelAdapter
from trunnion.distributions import version_of
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

__all__ = ["NvrtcAdapter"]

_LAUNCHER = "launcher.py"
_IMAGES = ("image.cubin", "image.ptx")


class NvrtcAdapter(KernelAdapter):
    """Keep a launcher's text beside its image, a cubin or PTX; there is nothing to compile on the host."""

    def build(self, source: GeneratedSource, image: DeviceImage, staging: Path) -> Artifact:  # noqa: ARG002 - nothing is compiled, so nothing is staged
        """Return the artifact; see `KernelAdapter.build`."""
        match_parameters(source.plan.kernels, image)
        match_variables(source.plan.variables, image)
        files = {_LAUNCHER: source.text.encode(), f"image.{image.kind}": image.data}
        return self.artifact(source, image, files)

    def load(self, artifact: Artifact, runtime: Runtime) -> LoadedProgram:
        """Load the image and run the launcher's text; see `KernelAdapter.load`."""
        from trunnion_nvrtc.backend.driver import cuda_driver  # noqa: PLC0415 - building must not need a driver

        files = artifact.files
        images = [files[name] for name in _IMAGES if name in files]
        if _LAUNCHER not in files or len(images) != 1:
            raise CorruptArtifactError(
                "artifact",
                f"must hold {_LAUNCHER} and one of {' and '.join(_IMAGES)} (has: {', '.join(files)})",
            )
        symbols = artifact.manifest.symbols
        module = LauncherModule.execute(
            files[_LAUNCHER].decode(), _LAUNCHER, plan=lambda: program_of(artifact).plan()
        )
        return PythonProgram(module, images[0], symbols, cuda_driver(), runtime)

    def fingerprint(self) -> str:
        """Return the version of the bindings: the launcher's text calls them."""
        return f"cuda-bindings {_bindings_version()}"


@functools.cache
def _bindings_version() -> str | None:
    """Return the version of the bindings, read once: what is imported stays, and later there may be no file left."""
    return version_of("cuda-bindings")
