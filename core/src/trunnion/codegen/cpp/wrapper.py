"""`CppWrapper`: launch plan to C++ source. Imports no toolchain, so source can be made anywhere."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trunnion.codegen.cpp.emitter import VERSION, emit_launcher
from trunnion.codegen.cpp.host import emit_host_launcher
from trunnion.contract.source import GeneratedSource, SourceWrapper

if TYPE_CHECKING:
    from trunnion.model.plan import LaunchPlan

__all__ = ["CppWrapper"]


class CppWrapper(SourceWrapper):
    """Render a plan as C++ over TVM-FFI's C ABI, for CUDA devices or for the CPU."""

    text_runs = False

    @property
    def version(self) -> str:
        """The emitter's version."""
        return f"cpp/{VERSION}"

    def emit(self, plan: LaunchPlan) -> GeneratedSource:
        """Return the text of a launcher for CUDA devices."""
        return self._source(plan, emit_launcher(plan))

    def emit_for(self, plan: LaunchPlan, target_kind: str) -> GeneratedSource:
        """Return the text of a launcher for CUDA devices, or for the CPU."""
        return self._source(plan, emit_host_launcher(plan)) if target_kind == "cpu" else self.emit(plan)

    def _source(self, plan: LaunchPlan, text: str) -> GeneratedSource:
        return GeneratedSource(
            language="c++", filename="launcher.cc", text=text, plan=plan, emitter=self.version
        )
