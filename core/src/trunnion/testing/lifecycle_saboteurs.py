"""Saboteurs of a loaded program's life: of closing it, of its destinations, and of the process that it lives in."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from trunnion.testing.saboteur import Changed, Saboteur, saboteur

if TYPE_CHECKING:
    from collections.abc import Callable

    from trunnion.contract.adapter import LoadedProgram

__all__ = ["LIFECYCLE_SABOTEURS"]


class _NeverClosed(Changed):
    """A loaded program that does not close."""

    def close(self) -> None:
        """Do nothing."""


class _ClosedWhenDropped(Changed):
    """A loaded program that closes itself when nobody refers to it."""

    def __del__(self) -> None:
        self._true.close()


class _IgnoresOut(Changed):
    """A loaded program that allocates even where destinations are given."""

    def call(self, args: Any, *, out: Any = None, **how: Any) -> Any:  # noqa: ARG002 - that is the mistake
        """Launch."""
        return self._true.call(args, **how)


class _BlindToForks(Changed):
    """A loaded program that does nothing in a forked child, and does not say so."""

    def __init__(self, true: LoadedProgram) -> None:
        super().__init__(true)
        self._process = os.getpid()

    def call(self, *args: Any, **how: Any) -> Any:
        """Launch."""
        return self._true.call(*args, **how) if self._process == os.getpid() else None


def _saboteur(name: str, what: str, law: str, loaded: Callable[[LoadedProgram], Any]) -> Saboteur:
    return saboteur(name, what, law, stage="lifecycle", loaded=loaded)


LIFECYCLE_SABOTEURS: tuple[Saboteur, ...] = (
    _saboteur("never-closed", "Closing does nothing.", "C1", _NeverClosed),
    _saboteur("closed-when-dropped", "Unloads in a finalizer.", "C2", _ClosedWhenDropped),
    _saboteur("ignored-out", "Ignores the given destinations.", "O2", _IgnoresOut),
    _saboteur("blind-to-forks", "Takes calls in a forked child.", "C6", _BlindToForks),
)
"""The saboteurs."""
