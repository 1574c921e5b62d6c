"""`AcmeWrapper`: launch plan to Python source."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trunnion.codegen.python.dialect import FacadeDialect
from trunnion.codegen.python.emitter import VERSION, emit_launcher
from trunnion.contract.source import GeneratedSource, SourceWrapper

if TYPE_CHECKING:
    from trunnion.model.plan import LaunchPlan

__all__ = ["AcmeWrapper"]


class AcmeWrapper(SourceWrapper):
    """Let core's emitter write the launcher; the driver is called through the methods of `AcmeDriver`."""

    @property
    def version(self) -> str:
        """Everything that the text depends on beside the plan."""
        return f"python/{VERSION} {FacadeDialect.version}"

    def emit(self, plan: LaunchPlan) -> GeneratedSource:
        """Return the launcher's text."""
        text = emit_launcher(plan, FacadeDialect())
        return GeneratedSource(
            language="python", filename="launcher.py", text=text, plan=plan, emitter=self.version
        )
