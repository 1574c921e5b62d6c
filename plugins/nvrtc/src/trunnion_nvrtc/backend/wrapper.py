"""`NvrtcWrapper`: launch plan to Python source. Imports no toolchain, so source can be made anywhere."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trunnion.codegen.python.emitter import VERSION, emit_launcher
from trunnion.contract.source import GeneratedSource, SourceWrapper
from trunnion_nvrtc.backend.dialect import CudaDialect

if TYPE_CHECKING:
    from trunnion.model.plan import LaunchPlan

__all__ = ["NvrtcWrapper"]


class NvrtcWrapper(SourceWrapper):
    """Render a plan as Python over ``cuda.bindings.driver``."""

    @property
    def version(self) -> str:
        """The emitter's version and the dialect's."""
        return f"python/{VERSION} {CudaDialect.version}"

    def emit(self, plan: LaunchPlan) -> GeneratedSource:
        """Return the launcher's text."""
        text = emit_launcher(plan, CudaDialect())
        return GeneratedSource(
            language="python", filename="launcher.py", text=text, plan=plan, emitter=self.version
        )
