"""`TvmFfiWrapper`: launch plan to C++ source. Imports no toolchain, so source can be made anywhere."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trunnion.codegen.cpp.emitter import VERSION, emit_launcher
from trunnion.contract.source import GeneratedSource, SourceWrapper

if TYPE_CHECKING:
    from trunnion.model.plan import LaunchPlan

__all__ = ["TvmFfiWrapper"]


class TvmFfiWrapper(SourceWrapper):
    """Render a plan as C++ over TVM-FFI's C ABI."""

    @property
    def version(self) -> str:
        """The emitter's version."""
        return f"cpp/{VERSION}"

    def emit(self, plan: LaunchPlan) -> GeneratedSource:
        """Return the launcher's text."""
        return GeneratedSource(
            language="c++", filename="launcher.cc", text=emit_launcher(plan), plan=plan, emitter=self.version
        )
