"""A backend that writes no launcher: core's interpreter does as the plan says, over the driver of ``nvrtc``."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from trunnion.artifacts.program_file import program_of
from trunnion.contract.adapter import KernelAdapter
from trunnion.contract.source import GeneratedSource, SourceWrapper
from trunnion.image.match import match_parameters, match_variables
from trunnion.launcher.program import LauncherModule, PythonProgram
from trunnion.registry import default_registry
from trunnion_nvrtc.backend.driver import cuda_driver

if TYPE_CHECKING:
    from pathlib import Path

    from trunnion.artifacts.artifact import Artifact
    from trunnion.contract.adapter import LoadedProgram
    from trunnion.contract.compiler import DeviceImage
    from trunnion.contract.runtime import Runtime
    from trunnion.contract.spec import BackendSpec
    from trunnion.model.plan import LaunchPlan

__all__ = ["interpreted_backend"]


class Wrapper(SourceWrapper):
    """Writes which plan it is."""

    version = "interpreted"

    def emit(self, plan: LaunchPlan) -> GeneratedSource:
        """Return a text that names the plan, and does nothing."""
        return GeneratedSource(
            language="json", filename="plan.json", text=f'"{plan.hash}"\n', plan=plan, emitter=self.version
        )


class Adapter(KernelAdapter):
    """Keeps the image, and interprets the plan of the program that core adds."""

    def build(self, source: GeneratedSource, image: DeviceImage, staging: Path) -> Artifact:
        """Return the artifact."""
        del staging
        match_parameters(source.plan.kernels, image)
        match_variables(source.plan.variables, image)
        files = {source.filename: source.text.encode(), f"image.{image.kind}": image.data}
        return self.artifact(source, image, files)

    def load(self, artifact: Artifact, runtime: Runtime) -> LoadedProgram:
        """Return what interprets the plan."""
        (image,) = (data for name, data in artifact.files.items() if name.startswith("image."))
        symbols = artifact.manifest.symbols
        module = LauncherModule.interpret(program_of(artifact).plan())
        return PythonProgram(module, image, symbols, cuda_driver(), runtime)

    def fingerprint(self) -> str:
        """Return nothing: no toolchain of the host's is in it."""
        return ""


def interpreted_backend() -> BackendSpec:
    """Return the backend: it declares what ``nvrtc`` does."""
    (nvrtc,) = (spec for spec in default_registry().backends() if spec.name == "nvrtc")
    return replace(nvrtc, name="interpreted", load_wrapper=lambda: Wrapper, load_adapter=lambda: Adapter)
