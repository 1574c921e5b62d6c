"""`TvmFfiAdapter`: build one self-contained TVM-FFI module from launcher text and an image, and load it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trunnion.codegen.cpp.build import HOST_OBJECT, build_launcher, launcher_fingerprint
from trunnion.codegen.cpp.files import kept_launcher, launcher_files
from trunnion.codegen.cpp.host import host_kernel_symbol
from trunnion.codegen.cpp.program import CppProgram
from trunnion.contract.adapter import KernelAdapter
from trunnion.errors import CorruptArtifactError, shorten
from trunnion.image.match import match_parameters, match_variables
from trunnion.toolchain.torch_release import refuse_old_torch
from trunnion_tvm_ffi.availability import DISTRIBUTION

if TYPE_CHECKING:
    from pathlib import Path

    from trunnion.artifacts.artifact import Artifact
    from trunnion.contract.adapter import LoadedProgram
    from trunnion.contract.compiler import DeviceImage
    from trunnion.contract.runtime import Runtime
    from trunnion.contract.source import GeneratedSource

__all__ = ["TvmFfiAdapter"]


class TvmFfiAdapter(KernelAdapter):
    """Compile a launcher with its image in it; anything that speaks TVM-FFI can load what comes out."""

    def build(self, source: GeneratedSource, image: DeviceImage, staging: Path) -> Artifact:
        """Return the artifact; see `KernelAdapter.build`."""
        match_parameters(source.plan.kernels, image)
        match_variables(source.plan.variables, image)
        symbols = list(image.symbols)
        if image.kind == HOST_OBJECT:
            _check_host_symbols(symbols)
        library = build_launcher(source.text, image, symbols, staging, plugin=self.spec.name)
        return self.artifact(source, image, launcher_files(source, image, library))

    def load(self, artifact: Artifact, runtime: Runtime) -> LoadedProgram:
        """Load the module, which is native code; see `KernelAdapter.load`."""
        refuse_old_torch(self.spec.name, DISTRIBUTION)
        library, facts = kept_launcher(artifact.files)
        return CppProgram(library, facts, runtime, self.spec.name)

    def fingerprint(self) -> str:
        """Return what identifies the host compiler, its headers and TVM-FFI."""
        return launcher_fingerprint(self.spec.name)

    def fingerprint_for(self, target_kind: str) -> str:
        """Return what identifies the host compiler and TVM-FFI, and CUDA's headers for CUDA alone."""
        return launcher_fingerprint(self.spec.name, cuda=target_kind == "cuda")


def _check_host_symbols(symbols: list[str]) -> None:
    """Refuse an object whose kernels a launcher would not find, or would take for one another.

    Raises
    ------
    CorruptArtifactError
        If there is such a kernel.
    """
    wanted = [host_kernel_symbol(index) for index in range(len(symbols))]
    if symbols != wanted:
        got, expected = ", ".join(map(shorten, symbols)), ", ".join(wanted)
        raise CorruptArtifactError(
            "host object", f"names its kernels {got}, where a launcher calls {expected}"
        )
