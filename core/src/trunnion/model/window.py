"""`AccessPolicyWindow`: which accesses of a launch the L2 cache should keep."""

from __future__ import annotations

import enum
from dataclasses import dataclass, field

from trunnion.errors import ProgramError, shorten
from trunnion.messages import describe, one_of
from trunnion.model.enums import DriverEnum, member
from trunnion.model.expr import Expr, as_expr
from trunnion.model.expr_tree import symbols_of
from trunnion.model.fields import instance, place
from trunnion.model.memory import Memory
from trunnion.plain import is_exactly, text

__all__ = ["AccessPolicyWindow", "AccessProperty", "WindowPolicy"]


class AccessProperty(DriverEnum):
    """``CUaccessProperty``: how long the cache holds what was accessed."""

    NORMAL = ("normal", 0)
    STREAMING = ("streaming", 1)
    PERSISTING = ("persisting", 2)


class WindowPolicy(enum.StrEnum):
    """How long a window holds."""

    LAUNCH = "launch"
    """For this launch only: an attribute of the launch, which a graph captures."""

    STREAM = "stream"
    """Set on the call's stream before the launch and taken back once the kernel is done, persisting lines included.

    The call waits for the kernel, so it cannot be captured.
    """


@dataclass(frozen=True, slots=True)
class AccessPolicyWindow:
    """A range of global memory with an access policy of its own (``CUaccessPolicyWindow``)."""

    memory: Memory
    """The tensor or workspace in which the range lies."""

    hit_ratio: float = 1.0
    """The share of the range's accesses that get `hit_property`: 0 to 1."""

    nbytes: Expr | None = None
    """The range's length in bytes; None: to the end of the memory, but at most what the device allows.

    A length that is named and that the device does not allow is refused.
    """

    element_offset: Expr = field(default_factory=lambda: as_expr(0))
    """Elements between the memory's first element and the range's."""

    hit_property: AccessProperty = AccessProperty.PERSISTING
    """What hits get; or its word."""

    miss_property: AccessProperty = AccessProperty.STREAMING
    """What the other accesses of the range get: normal or streaming; or its word."""

    policy: WindowPolicy = WindowPolicy.LAUNCH
    """How long it holds; or its word."""

    def __post_init__(self) -> None:
        instance(self.memory, Memory, "window")
        with place(f"window over {shorten(self.memory.name)}"):
            self._normalise()

    def _normalise(self) -> None:
        if not is_exactly(self.hit_ratio, int, float) or not 0 <= self.hit_ratio <= 1:
            raise ProgramError(f"got {describe(self.hit_ratio)}, expected 0 to 1", field="hit_ratio")
        object.__setattr__(self, "hit_ratio", abs(float(self.hit_ratio)))  # there is but one zero
        for name in ("nbytes", "element_offset"):
            value = getattr(self, name)
            if value is None and name == "nbytes":
                continue
            with place(name):
                expr = as_expr(value)
                tuple(symbols_of(expr))
                if expr.bounds.high < 0:
                    raise ProgramError("is negative in every call")
                object.__setattr__(self, name, expr)
        with place("element_offset"):
            _ = self.offset_bytes
        with place("memory"):
            self.memory.span_bytes()  # which limits it, and of deep extents may be too deep
        for name in ("hit_property", "miss_property"):
            object.__setattr__(self, name, member(AccessProperty, getattr(self, name), name))
        if self.miss_property is AccessProperty.PERSISTING:
            raise ProgramError("got persisting, expected normal or streaming", field="miss_property")
        policy = text(self.policy)
        if policy not in tuple(WindowPolicy):
            raise ProgramError(f"got {describe(self.policy)}, {one_of(policy, WindowPolicy)}", field="policy")
        object.__setattr__(self, "policy", WindowPolicy(policy))

    @property
    def offset_bytes(self) -> Expr:
        """Bytes between the memory's first element and the range's."""
        return self.element_offset * self.memory.dtype.itemsize
