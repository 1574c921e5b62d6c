"""How a generated launcher calls the driver: through a facade, or inlined by a backend's own dialect."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from trunnion.codegen.literals import python_tuple

if TYPE_CHECKING:
    from trunnion.codegen.writer import SourceWriter

__all__ = ["Dialect", "FacadeDialect", "LaunchText"]


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchText:
    """The texts of one launch's parts; each is a number or an identifier."""

    index: int
    """The launch; its frame is ``l<index>`` with the attributes of `LaunchFrame`."""

    kernel: int
    """The kernel; its handle is ``kernel<kernel>``."""

    grid: tuple[str, str, str]
    """Blocks along x, y, z."""

    block: tuple[str, str, str]
    """Threads along x, y, z."""

    dynamic_smem_bytes: str
    """Dynamic shared memory, in bytes."""

    varying: frozenset[str]
    """The fields of ``CUlaunchConfig``, less ``Dim``, that a call decides: ``"gridX"``, …, ``"sharedMemBytes"``."""

    shape: str
    """The variable that holds what `varying` names as one tuple, the same object while nothing of it changes; empty if
    nothing varies."""

    window: tuple[str, str] | None
    """The address and the bytes of the window that is an attribute of the launch; None: there is none."""

    computed: tuple[tuple[int, tuple[str, ...]], ...] = ()
    """The attributes that a call decides: ``CUlaunchAttributeID``, and all of the driver's numbers."""

    @property
    def computed_text(self) -> str:
        """`computed` as a tuple of Python's; empty if there is none."""
        pairs = [f"({number}, {python_tuple(list(names))})" for number, names in self.computed]
        return python_tuple(pairs) if pairs else ""


class Dialect(Protocol):
    """Writes the driver's part of a launcher.

    In scope: ``context``, ``device``, ``several`` (whether there are more), ``stream`` (a handle), the launch's frame.
    """

    version: str
    """Name and version; part of the text, and so of an artifact's key."""

    def imports(self) -> tuple[str, ...]:
        """Return import lines for the module's head."""

    def hoisted(self, kernels: int) -> tuple[str, ...]:
        """Return lines that run once, where ``context`` and ``kernel0`` … are in scope.

        Parameters
        ----------
        kernels
            How many kernels there are.
        """

    def emit_enter(self, out: SourceWriter, *, always: bool) -> None:
        """Write the lines that make a context of ``device`` current, and set ``entered`` to whether to ``leave()``.

        Parameters
        ----------
        out
            Takes the lines.
        always
            Whether some call needs a current context. Otherwise launches alone follow, which need one only under the
            driver's own streams 0, 1 and 2: any other stream knows its device.
        """

    def emit_shape(self, out: SourceWriter, launch: LaunchText) -> None:
        """Write the lines that fill in what varies of grid, block and shared memory: where it may have changed."""

    def emit_prepare(self, out: SourceWriter, launch: LaunchText) -> None:
        """Write the lines that fill in what else a call decides: once for a call, once for a bound launch."""

    def emit_fire(self, out: SourceWriter, launch: LaunchText) -> None:
        """Write the lines that launch."""


class FacadeDialect:
    """Calls the facade's own methods: right everywhere, inlined nowhere."""

    version = "facade/4"

    def imports(self) -> tuple[str, ...]:
        """Return nothing: the facade is the context's."""
        return ()

    def hoisted(self, kernels: int) -> tuple[str, ...]:
        """Return the line that fetches what calls the facade's method."""
        del kernels
        return ("driver_launch = context.launch",)

    def emit_enter(self, out: SourceWriter, *, always: bool) -> None:
        """Write one call."""
        out.line(f"entered = {'' if always else 'stream <= 2 and '}enter(device)")

    def emit_shape(self, out: SourceWriter, launch: LaunchText) -> None:
        """Write nothing: the call takes everything."""

    def emit_prepare(self, out: SourceWriter, launch: LaunchText) -> None:
        """Write nothing, as above."""

    def emit_fire(self, out: SourceWriter, launch: LaunchText) -> None:
        """Write one call."""
        shape = ", ".join((*launch.grid, *launch.block, launch.dynamic_smem_bytes))
        frame = f"l{launch.index}"
        window = "None" if launch.window is None else f"({', '.join(launch.window)})"
        computed = f", {launch.computed_text}" if launch.computed else ""
        out.line(f"driver_launch({frame}, ({shape}), stream, {window}{computed})")
