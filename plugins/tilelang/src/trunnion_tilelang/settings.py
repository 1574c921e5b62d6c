"""`Settings`: how a kernel's programs are compiled, as whoever decorates it says."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Self

__all__ = ["Settings"]


@dataclass(frozen=True, slots=True)
class Settings:
    """How programs are compiled, in the words of `trunnion.compile`."""

    backend: str = "auto"
    """The backend's name."""

    compiler: str | None = None
    """The device compiler's name."""

    options: Mapping[str, Mapping[str, Any]] = field(default_factory=lambda: MappingProxyType({}))
    """Options for plugins."""

    cache: Any = True
    """Where compiled programs are kept."""

    @classmethod
    def of(cls, backend: str, compiler: str | None, options: Any, cache: Any) -> Self:
        """Return settings of what somebody said; what is wrong with it `trunnion.compile` says."""
        kept = MappingProxyType(dict(options or {})) if isinstance(options or {}, Mapping) else options
        return cls(backend, compiler, kept, cache)
