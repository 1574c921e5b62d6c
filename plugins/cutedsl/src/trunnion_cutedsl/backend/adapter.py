"""`CuteDslAdapter`: build a C++ launcher beside its image, and load both."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trunnion.codegen.cpp.build import build_launcher, launcher_fingerprint
from trunnion.codegen.cpp.files import kept_launcher, launcher_files
from trunnion.codegen.cpp.image import encoded_name
from trunnion.codegen.cpp.program import CppProgram, HandedImage
from trunnion.contract.adapter import KernelAdapter
from trunnion.errors import CorruptArtifactError
from trunnion.image.match import match_parameters, match_variables
from trunnion.toolchain.torch_release import refuse_old_torch
from trunnion_cutedsl.availability import DISTRIBUTION

if TYPE_CHECKING:
    from pathlib import Path

    from trunnion.artifacts.artifact import Artifact
    from trunnion.contract.adapter import LoadedProgram
    from trunnion.contract.compiler import DeviceImage
    from trunnion.contract.runtime import Runtime
    from trunnion.contract.source import GeneratedSource

__all__ = ["CuteDslAdapter"]


class CuteDslAdapter(KernelAdapter):
    """Compile a launcher; the image stays a file of its own."""

    def build(self, source: GeneratedSource, image: DeviceImage, staging: Path) -> Artifact:
        """Return the artifact; see `KernelAdapter.build`."""
        match_parameters(source.plan.kernels, image)
        match_variables(source.plan.variables, image)
        for symbol in image.symbols:
            encoded_name(symbol)  # what no launcher could be handed is refused here, not when it is loaded
        library = build_launcher(source.text, None, (), staging, plugin=self.spec.name)
        return self.artifact(source, image, launcher_files(source, image, library))

    def load(self, artifact: Artifact, runtime: Runtime) -> LoadedProgram:
        """Load the launcher, which is native code, and its image; see `KernelAdapter.load`."""
        refuse_old_torch(self.spec.name, DISTRIBUTION)
        library, facts = kept_launcher(artifact.files)
        image = HandedImage(self._image(artifact), artifact.manifest.symbols)
        return CppProgram(library, facts, runtime, self.spec.name, image)

    def _image(self, artifact: Artifact) -> bytes:
        """Return the image that lies in an artifact.

        Raises
        ------
        CorruptArtifactError
            If there is none, or several.
        """
        found = [name for name in (f"image.{kind}" for kind in self.spec.accepts) if name in artifact.files]
        if len(found) != 1:
            wanted = " or ".join(f"image.{kind}" for kind in self.spec.accepts)
            raise CorruptArtifactError("artifact", f"must hold one of {wanted}")
        return artifact.files[found[0]]

    def fingerprint(self) -> str:
        """Return what identifies the host compiler, its headers and TVM-FFI."""
        return launcher_fingerprint(self.spec.name)
