"""`CuteDslAdapter`: build a C++ launcher beside its image, and load both."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trunnion.artifacts.artifact import Artifact
from trunnion.codegen.cpp.build import build_launcher, launcher_fingerprint
from trunnion.codegen.cpp.files import kept_launcher, launcher_files
from trunnion.codegen.cpp.program import CppProgram
from trunnion.contract.adapter import KernelAdapter
from trunnion.image.match import match_parameters
from trunnion.toolchain.torch_release import refuse_old_torch
from trunnion_cutedsl.availability import DISTRIBUTION

if TYPE_CHECKING:
    from pathlib import Path

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
        symbols = [kernel.symbol for kernel in image.kernels]
        library = build_launcher(source.text, image, symbols, staging, plugin=self.spec.name)
        return Artifact.create(self.spec, source, image, launcher_files(source, image, library))

    def load(self, artifact: Artifact, runtime: Runtime) -> LoadedProgram:
        """Load the launcher, which is native code, and its image; see `KernelAdapter.load`."""
        refuse_old_torch(self.spec.name, DISTRIBUTION)
        library, facts = kept_launcher(artifact.files)
        return CppProgram(library, facts, runtime, self.spec.name)

    def fingerprint(self) -> str:
        """Return what identifies the host compiler, its headers and TVM-FFI."""
        return launcher_fingerprint(self.spec.name)
