"""How a generated launcher calls the driver: through a facade, or inlined by a backend's own dialect."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from trunnion.codegen.writer import SourceWriter

__all__ = ["Dialect", "FacadeDialect", "LaunchText"]


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchText:
    """The texts of one launch's parts; each is a number or an identifier."""

    index: int
    """The launch; its frame is ``l<index>`` with the attributes of `LaunchFrame`."""

    kernel: str
    """The kernel's handle."""

    grid: tuple[str, str, str]
    """Blocks along x, y, z."""

    block: tuple[str, str, str]
    """Threads along x, y, z."""

    dynamic_smem_bytes: str
    """Dynamic shared memory, in bytes."""

    varying: frozenset[str]
    """The fields of ``CUlaunchConfig``, less ``Dim``, that a call decides: ``"gridX"``, …, ``"sharedMemBytes"``."""


class Dialect(Protocol):
    """Writes the driver's part of a launcher. In scope: ``context``, ``stream``, ``device`` and the launch's frame."""

    version: str
    """Name and version; part of the text, and so of an artifact's key."""

    def imports(self) -> tuple[str, ...]:
        """Return import lines for the module's head."""

    def hoisted(self) -> tuple[str, ...]:
        """Return lines that run once, where ``context`` is in scope."""

    def emit_launch(self, out: SourceWriter, launch: LaunchText) -> None:
        """Write the lines that launch."""


class FacadeDialect:
    """Calls the facade's own ``launch``: right everywhere, inlined nowhere."""

    version = "facade/1"

    def imports(self) -> tuple[str, ...]:
        """Return nothing: the facade is the context's."""
        return ()

    def hoisted(self) -> tuple[str, ...]:
        """Return the line that fetches the facade's method."""
        return ("driver_launch = context.facade.launch",)

    def emit_launch(self, out: SourceWriter, launch: LaunchText) -> None:
        """Write one call."""
        shape = ", ".join((*launch.grid, *launch.block, launch.dynamic_smem_bytes))
        frame = f"l{launch.index}"
        out.line(f"driver_launch({frame}.config, {launch.kernel}, ({shape}), stream, {frame}.address)")
