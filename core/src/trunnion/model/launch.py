"""One kernel launch, as its author describes it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from trunnion.errors import ProgramError
from trunnion.messages import describe
from trunnion.model.code import DeviceCode, device_code
from trunnion.model.constant import Constant, usual_type, written_as_constant
from trunnion.model.dtypes import number_class
from trunnion.model.expr import Const, Expr, ExprLike, NonInteger, as_expr
from trunnion.model.fields import instance, members, place, text
from trunnion.model.float_expr import FloatCast, FloatExpr
from trunnion.model.launch_attributes import LAUNCH_ATTRIBUTES
from trunnion.model.launch_limits import MAX_BLOCK, MAX_GRID, MAX_SMEM, MAX_THREADS
from trunnion.model.memory import Memory
from trunnion.model.module_variable import ModuleVariable
from trunnion.model.moved_address import MovedAddress
from trunnion.model.params import PointerParam, ScalarParam, StructParam
from trunnion.model.struct import Array, Struct, leaves
from trunnion.model.tensormap import TensorMap
from trunnion.model.view import TensorView
from trunnion.model.window import AccessPolicyWindow
from trunnion.plain import is_a

if TYPE_CHECKING:
    from collections.abc import Sequence

    from trunnion.model.launch_attributes import Cluster, ClusterSchedulingPolicy, MemSyncDomain

__all__ = [
    "Argument",
    "Dims",
    "KernelLaunch",
    "as_argument",
]

Argument = (
    Memory
    | MovedAddress
    | TensorView
    | ScalarParam
    | PointerParam
    | StructParam
    | ModuleVariable
    | TensorMap
    | Struct
    | Expr
    | Constant
    | FloatCast
)
"""What a launch passes: a tensor's or a workspace's pointer, moved or not, or either with its layout, a number, an
address or bytes of the caller's, a module variable's address, a tensor map by value, a struct of any of these, an
integer expression, a constant, or a floating-point expression.

An expression travels as the type of its outermost cast, or as ``int64`` if it has none, a floating-point one as
``float64``.
"""

Dims = tuple[Expr, Expr, Expr]
"""Three extents: x, y, z."""

_ARGUMENTS: tuple[type[Argument], ...] = (
    Memory, MovedAddress, TensorView, ScalarParam, PointerParam, StructParam, ModuleVariable, TensorMap, Struct, Expr,
    Constant, FloatCast,
)  # fmt: skip
_MAX_ARGUMENTS = 4096


def _dims(value: ExprLike | Sequence[ExprLike], field: str) -> Dims:
    allowed = "an integer, an expression, or a sequence of up to 3 of them"
    given = (value,) if is_a(value, (Expr, int, NonInteger)) else members(value, field, allowed)
    if not 1 <= len(given) <= 3:  # noqa: PLR2004 - x, y and z
        raise ProgramError(f"got {len(given)} extents, expected 1 to 3", field=field)
    extents: list[Expr] = []
    for axis, extent in enumerate(given):
        with place(f"{field}[{axis}]"):
            extents.append(as_expr(extent))  # type: ignore[arg-type]  # which checks it
    while len(extents) < 3:  # noqa: PLR2004 - x, y and z
        extents.append(Const(1))
    return extents[0], extents[1], extents[2]


def as_argument(value: object, field: str) -> Argument:
    """Return what a launch may pass.

    Raises
    ------
    ProgramError
        If it is nothing of the kind.
    """
    if is_a(value, _ARGUMENTS):
        return value
    if is_a(value, FloatExpr):
        return value.cast("float64")
    if type(value) is int:
        with place(field):
            return as_expr(value)
    raise ProgramError(
        f"got {describe(value)}, expected a parameter, a workspace, a view, a module variable, a tensor map, a struct, "
        f"an integer expression or a constant{_advice(value)}",
        field=field,
    )


def _advice(value: object) -> str:
    """Return what to write instead of a value that is no argument; a float's type does not show."""
    if value is None:
        return "; for a null pointer write const(None)"
    if is_a(value, Array):
        return ": C passes an array as a field of a struct, struct(('values', array(...)))"
    if is_a(value, dict):
        return "; fields by name are struct(*fields.items())"
    if is_a(value, (list, tuple)):
        return "; values behind one another are a struct's field array(*values)"
    kind = number_class(value)
    written = f"const(value.item(), '{kind}')" if kind else written_as_constant(value)
    each = f"a number of each call is a parameter, scalar('x', '{kind or usual_type(value)}')"
    return f"; write {written}; {each}" if written else ""


@dataclass(frozen=True, slots=True)
class KernelLaunch:
    """One launch of one kernel (``cuLaunchKernelEx``)."""

    kernel: str
    """The kernel: a C identifier, or a C++ name expression such as ``"gemm<128>"``."""

    args: tuple[Argument, ...]
    """What the kernel is given, in its own parameters' order."""

    grid: Dims
    """Blocks along x, y, z, with a cluster too; missing ones are 1. A grid with a 0 launches nothing."""

    block: Dims
    """Threads along x, y, z; missing ones are 1."""

    dynamic_smem_bytes: Expr = Const(0)
    """Dynamic shared memory of a block, in bytes."""

    cluster: Cluster | None = None
    """Blocks of a cluster along x, y, z; None: the launch says nothing of clusters, which is not (1, 1, 1).

    Each extent of the grid is a multiple of the cluster's. Up to 8 blocks run on every device that has clusters, up to
    16 on some. Expressions are computed, and judged, at each call in which the launch happens.
    """

    cooperative: bool = False
    """Whether all blocks must be resident at once, so that they can wait for one another."""

    pdl: bool | Expr = False
    """Set on the consumer: it may start before the launch before it has finished, and waits by itself.

    An expression decides that at each call: where it is 0 the launch waits for the one before it.
    """

    window: AccessPolicyWindow | None = None
    """Which accesses the L2 cache should keep."""

    when: Expr | None = None
    """The launch is skipped where this is 0; None: it never is, but for an empty grid."""

    priority: int | None = None
    """The launch's priority instead of its stream's; lower numbers come first."""

    carveout: int | None = None
    """Per cent of the L1 cache's memory that are wanted as shared memory, 0 to 100; None: the driver chooses."""

    preferred_cluster: tuple[int, int, int] | None = None
    """A larger cluster that the hardware may choose; each extent is a multiple of `cluster`'s."""

    scheduling_policy: ClusterSchedulingPolicy | None = None
    """How clusters are placed, or its word."""

    mem_sync_domain: MemSyncDomain | None = None
    """The domain of the launch's memory fences, or its word."""

    code: DeviceCode | None = None
    """The part of the program's code that holds the kernel; None: the first."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "kernel", text(self.kernel, "kernel"))
        self._normalise()

    def memories(self) -> tuple[Memory, ...]:
        """Return all memory that the launch is given: by pointer, through a map, as a window."""
        found: dict[Memory, None] = {}
        for argument in (leaf for given in self.args for leaf in leaves(given)):
            if isinstance(argument, TensorMap):
                found[argument.tensor] = None
            elif isinstance(argument, (MovedAddress, TensorView)):
                found[argument.memory] = None
            elif isinstance(argument, Memory):
                found[argument] = None
        if self.window is not None:
            found[self.window.memory] = None
        return tuple(found)

    def _normalise(self) -> None:
        if "\0" in self.kernel:
            raise ProgramError("a kernel's name cannot hold a NUL character", field="kernel")
        given = members(self.args, "args")
        object.__setattr__(self, "args", tuple(as_argument(arg, f"args[{i}]") for i, arg in enumerate(given)))
        if len(self.args) > _MAX_ARGUMENTS:
            raise ProgramError(
                f"got {len(self.args)} arguments, expected at most {_MAX_ARGUMENTS}", field="args"
            )
        for name in ("grid", "block"):
            object.__setattr__(self, name, _dims(getattr(self, name), name))
        with place("dynamic_smem_bytes"):
            object.__setattr__(self, "dynamic_smem_bytes", as_expr(self.dynamic_smem_bytes))
        for row in LAUNCH_ATTRIBUTES:
            object.__setattr__(self, row.field, row.normalise(getattr(self, row.field), row.field))
        if self.window is not None:
            instance(self.window, AccessPolicyWindow, "window")
        if self.when is not None:
            with place("when"):
                object.__setattr__(self, "when", as_expr(self.when))
        if self.code is not None:
            object.__setattr__(self, "code", device_code(self.code, "code"))
            instance(self.code, DeviceCode, "code")
        self._check_bounds()
        self._check_clusters()

    def _check_bounds(self) -> None:
        for name, limits, least in (("grid", MAX_GRID, 0), ("block", MAX_BLOCK, 1)):
            for axis, (extent, limit) in enumerate(zip(getattr(self, name), limits, strict=True)):
                if extent.bounds.high < least or extent.bounds.low > limit:
                    raise ProgramError(
                        f"got {extent.bounds}, expected {least} to {limit}", field=f"{name}[{axis}]"
                    )
        threads = 1
        for extent in self.block:
            threads *= max(extent.bounds.low, 1)
        if threads > MAX_THREADS:
            raise ProgramError(
                f"got at least {threads} threads, expected at most {MAX_THREADS}", field="block"
            )
        smem = self.dynamic_smem_bytes.bounds
        if smem.high < 0 or smem.low > MAX_SMEM:
            raise ProgramError(f"got {smem} bytes, expected 0 to {MAX_SMEM}", field="dynamic_smem_bytes")

    def _check_clusters(self) -> None:
        """Check what is constant already; a call checks the rest."""
        widths: tuple[int | Expr, ...] = self.cluster or ()
        for axis, (extent, blocks) in enumerate(zip(self.grid, widths, strict=False)):
            width = 1 if isinstance(blocks, Expr) else blocks
            if isinstance(blocks, Const):
                width = blocks.value
            if isinstance(extent, Const) and extent.value % width:
                raise ProgramError(
                    f"got {extent.value} blocks, expected a multiple of the cluster's {width}",
                    field=f"grid[{axis}]",
                )
        if self.preferred_cluster is None:
            return
        if self.cluster is None:
            raise ProgramError("got one without a cluster, expected a cluster too", field="preferred_cluster")
        for axis, (wanted, least) in enumerate(zip(self.preferred_cluster, widths, strict=True)):
            if isinstance(least, Expr):
                raise ProgramError(
                    "got one beside a cluster that each call decides, expected a constant cluster, or no preferred one",
                    field="preferred_cluster",
                )
            if wanted % least:
                raise ProgramError(
                    f"got {wanted}, expected a multiple of the cluster's {least}",
                    field=f"preferred_cluster[{axis}]",
                )
            extent = self.grid[axis]
            if isinstance(extent, Const) and extent.value % wanted:
                raise ProgramError(
                    f"got {extent.value} blocks, expected a multiple of the preferred cluster's {wanted}",
                    field=f"grid[{axis}]",
                )
