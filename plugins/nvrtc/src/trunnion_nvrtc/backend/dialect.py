"""`CudaDialect`: the launch, inlined over ``cuda.bindings.driver``. Writes text; imports no toolchain."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from trunnion.codegen.python.dialect import LaunchText
    from trunnion.codegen.writer import SourceWriter

__all__ = ["CudaDialect"]


class CudaDialect:
    """Inlines the launch: only what a call decides is written into the configuration."""

    version = "nvrtc/10"

    def imports(self) -> tuple[str, ...]:
        """Return the imports of the driver's calls."""
        return (
            "from cuda.bindings.driver import CUstream, cuCtxGetDevice",
            "from trunnion_nvrtc.backend.driver import Attempt, set_window",
        )

    def hoisted(self, kernels: int) -> tuple[str, ...]:
        """Return what looks for a context; what launches is in the frames, see `CudaDriver.prepared`."""
        del kernels
        return ("retry = context.explaining(context.facade.retry)",)

    def emit_enter(self, out: SourceWriter, *, always: bool) -> None:
        """Write the comparison of the current context's device, and the call if it is another.

        With one device there is no other; a thread without any context is told so by the launch itself.
        """
        out.line("entered = False")
        with out.block(f"if {'True' if always else 'several and stream <= 2'}:"):
            with out.block("try:"):
                out.line("status, current = cuCtxGetDevice()")
            with out.block("except ValueError:"):
                out.line("status = True  # one that cuda.bindings have no name for")
            with out.block("if status or int(current) != device:"):
                out.line("entered = enter(device)")

    def emit_shape(self, out: SourceWriter, launch: LaunchText) -> None:
        """Write the fields that vary, if they changed."""
        frame = f"l{launch.index}"
        shape = (("grid", launch.grid), ("block", launch.block))
        texts = {
            f"{kind}{axis}": text for kind, dims in shape for axis, text in zip("XYZ", dims, strict=True)
        }
        texts["sharedMemBytes"] = launch.dynamic_smem_bytes
        if launch.varying:
            with out.block(f"if {frame}.shape is not {launch.shape}:"):
                out.line(f"config = {frame}.config.fields")
                for name in sorted(launch.varying):
                    field = name if name == "sharedMemBytes" else f"{name[:-1]}Dim{name[-1]}"
                    out.line(f"config.{field} = {texts[name]}")
                out.line(f"{frame}.shape = {launch.shape}")

    def emit_prepare(self, out: SourceWriter, launch: LaunchText) -> None:
        """Write the stream, the window and the attributes that a call decides, each if it changed."""
        frame = f"l{launch.index}"
        with out.block(f"if {frame}.stream != stream:"):
            out.line(f"{frame}.config.fields.hStream = CUstream(stream)")
            out.line(f"{frame}.stream = stream")
        if launch.window is not None:
            address, nbytes = launch.window
            out.line(f"window = ({address}, {nbytes})")
            with out.block(f"if {frame}.window != window:"):
                out.line(f"set_window({frame}.config, window)")
                out.line(f"{frame}.window = window")

        if launch.computed:
            out.line(f"computed = {launch.computed_text}")
            with out.block(f"if {frame}.computed != computed:"):
                out.line(f"context.facade.set_attributes({frame}.config, computed)")
                out.line(f"{frame}.computed = computed")

    def emit_fire(self, out: SourceWriter, launch: LaunchText) -> None:
        """Write the call."""
        frame = f"l{launch.index}"
        out.line(f"status = {frame}.fire(*{frame}.arguments)")
        with out.block("if status:"):
            out.line(f"retry(Attempt(status, device, {frame}, KERNELS[{launch.kernel}]))")
