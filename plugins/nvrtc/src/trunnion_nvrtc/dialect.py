"""`CudaDialect`: the launch, inlined over ``cuda.bindings.driver``. Writes text; imports no toolchain."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from trunnion.codegen.python.dialect import LaunchText
    from trunnion.codegen.writer import SourceWriter

__all__ = ["CudaDialect"]


class CudaDialect:
    """Inlines the launch: only what a call decides is written into the configuration."""

    version = "nvrtc/1"

    def imports(self) -> tuple[str, ...]:
        """Return the imports of the driver's calls."""
        return (
            "from cuda.bindings.driver import CUstream, cuLaunchKernelEx",
            "from trunnion_nvrtc.driver import launch_error",
        )

    def hoisted(self) -> tuple[str, ...]:
        """Return nothing: the calls are globals of the module."""
        return ()

    def emit_launch(self, out: SourceWriter, launch: LaunchText) -> None:
        """Write the fields that vary, the stream if it changed, and the call."""
        frame = f"l{launch.index}"
        texts = {f"{kind}{axis}": text for kind, axis, text in _named(launch)}
        texts["sharedMemBytes"] = launch.dynamic_smem_bytes
        if launch.varying:
            out.line(f"config = {frame}.config")
        for name in sorted(launch.varying):
            field = name if name == "sharedMemBytes" else f"{name[:-1]}Dim{name[-1]}"
            out.line(f"config.{field} = {texts[name]}")
        with out.block(f"if {frame}.stream != stream:"):
            out.line(f"{frame}.config.hStream = CUstream(stream)")
            out.line(f"{frame}.stream = stream")
        out.line(f"status, = cuLaunchKernelEx({frame}.config, {launch.kernel}, {frame}.address, 0)")
        out.line("if status:")
        out.line("    raise launch_error(status)")


def _named(launch: LaunchText) -> list[tuple[str, str, str]]:
    named = [("grid", axis, text) for axis, text in zip("XYZ", launch.grid, strict=True)]
    return named + [("block", axis, text) for axis, text in zip("XYZ", launch.block, strict=True)]
