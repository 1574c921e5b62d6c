"""Write a C++ launcher for the CPU: the same calls and checks, and a grid loop in the place of a driver.

The kernels are in an object that the launcher is linked with. Kernel number i of the plan is there as
`host_kernel_symbol` says, whatever it is called in C++; see ``include/trunnion/block.h`` and ``host_program.hpp``.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING

from trunnion.codegen.cpp.emitter import EXPORTS, LauncherEmitter
from trunnion.codegen.cpp.launches import extents
from trunnion.model.plan.steps import AllowSmem, PrepareLaunch

if TYPE_CHECKING:
    from trunnion.codegen.cpp.text import CallText
    from trunnion.codegen.writer import SourceWriter
    from trunnion.model.plan import LaunchPlan, PlannedLaunch
    from trunnion.model.plan.steps import Action

__all__ = ["emit_host_launcher", "host_kernel_symbol"]


def emit_host_launcher(plan: LaunchPlan) -> str:
    """Return the text of the launcher of ``plan``, for the CPU.

    Parameters
    ----------
    plan
        What to launch; it needs nothing that only a GPU has.
    """
    return _HostEmitter(plan).module()


def host_kernel_symbol(index: int) -> str:
    """Return the symbol of a kernel in a host object, by its place in the plan."""
    return f"trunnion_kernel_{index}"


class _HostEmitter(LauncherEmitter):
    """The text of one launcher for the CPU."""

    header = "trunnion/host_runtime.hpp"
    place = "kDLCPU, 0"
    made = "Program"
    exports = MappingProxyType(EXPORTS)

    def emit_head(self, out: SourceWriter) -> None:
        """Write the kernels' declarations, and the constants."""
        with out.block('extern "C" {', "}"):
            for index in range(len(self.plan.kernels)):
                parameters = "void* const* arguments, const trunnion_block_t* block"
                out.line(
                    f'__attribute__((visibility("hidden"))) void {host_kernel_symbol(index)}({parameters});'
                )
        out.line()
        super().emit_head(out)
        out.lines("Program own;", "")

    def needs_context(self) -> bool:
        """Whether anything has to be current: on the CPU nothing has."""
        return False

    def emit_device_step(self, text: CallText, action: Action) -> bool:
        """Write nothing: no launch has attributes, and shared memory no limit but what one may ask for at all."""
        del text
        return isinstance(action, (AllowSmem, PrepareLaunch))

    def fill(self, step: str, address: str) -> str:
        """Return a write."""
        return f"fill({step}, {address}, count);"

    def emit_launch(self, text: CallText, launch: PlannedLaunch, smem: str) -> None:
        """Write the loop over a grid."""
        kernel = host_kernel_symbol(launch.kernel)
        values = f"parameters, {extents(launch, 'g')}, {extents(launch, 'b')}, {smem}, trunnion_threads"
        text.require(f"run_grid({kernel}, {values})")
