"""Launch attributes: one table of what a launch can say beside its grid and block.

A row is a field of `KernelLaunch`, the driver's attribute behind it, and how the field's value becomes the driver's
numbers. Renderers go through the planned attributes in the table's order and never through the fields.

Source: CUDA Driver API, ``CUlaunchAttributeID`` and ``CUlaunchAttributeValue``. The least compute capability of what
concerns clusters: CUDA C++ Programming Guide, "Thread Block Clusters", which come with 9.0. Programmatic dependent
launches come with 9.0 too, but nothing says that an older device refuses the attribute: there the driver answers.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from trunnion.errors import ProgramError
from trunnion.model.capability import Capability
from trunnion.model.enums import DriverEnum, member
from trunnion.model.expr import Const, Expr, NonInteger, as_expr, integer_error
from trunnion.model.fields import flag, integer, members
from trunnion.plain import is_a

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = [
    "COMPUTED_FIELDS",
    "LAUNCH_ATTRIBUTES",
    "MAX_CLUSTER_BLOCKS",
    "PORTABLE_CLUSTER_BLOCKS",
    "Cluster",
    "ClusterSchedulingPolicy",
    "LaunchAttribute",
    "MemSyncDomain",
    "attribute_row",
]

PORTABLE_CLUSTER_BLOCKS = 8
"""The most blocks of a cluster that every device with clusters can run (CUDA C++ Programming Guide, "Clusters")."""

MAX_CLUSTER_BLOCKS = 16
"""The most blocks of a cluster on any device, under ``CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED``."""

Cluster = tuple[int, int, int] | tuple[Expr, Expr, Expr]
"""Blocks along x, y, z: constants, or expressions if one of them is none."""

_AXES = 3
_CLUSTERS_SINCE = (9, 0)
_ONE_BLOCK = (1, 1, 1)  # is no cluster but in name
_CARVEOUT = (0, 100)  # measured on an H200: a launch with CU_SHAREDMEM_CARVEOUT_DEFAULT, -1, is refused
_PRIORITY = (-(1 << 31), (1 << 31) - 1)


class ClusterSchedulingPolicy(DriverEnum):
    """``CUclusterSchedulingPolicy``: how clusters are placed on the device."""

    DEFAULT = ("default", 0)
    SPREAD = ("spread", 1)
    LOAD_BALANCING = ("load_balancing", 2)


class MemSyncDomain(DriverEnum):
    """``CUlaunchMemSyncDomain``: whose memory operations a launch's fences wait for."""

    DEFAULT = ("default", 0)
    REMOTE = ("remote", 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchAttribute:
    """One row."""

    field: str
    """The field of `KernelLaunch`."""

    id: int
    """``CUlaunchAttributeID``."""

    driver_name: str
    """The driver's name, without ``CU_LAUNCH_ATTRIBUTE_``."""

    member: str
    """The member of the union ``CUlaunchAttributeValue`` that holds its value: a number, or ``x``, ``y`` and ``z``."""

    driver_type: str = ""
    """The driver's enumeration that the number is of; empty: it is a plain integer."""

    cuda_version: int
    """The least version of CUDA whose driver knows it, as ``cuDriverGetVersion`` counts: 12080 is 12.8."""

    compute_capability: tuple[int, int] = (0, 0)
    """The least compute capability of a device that can hold it."""

    everywhere: tuple[int, ...] = ()
    """The driver's numbers that ask for no more than every device has; none: there are no such."""

    scopes: frozenset[str]
    """Where the driver takes it: ``"launch"``, ``"stream"``, ``"graph"`` (a kernel node)."""

    capability: Capability
    """What a backend must declare."""

    normalise: Callable[[object, str], object]
    """Checks a field's value, given the field's name, and returns it in its one form."""

    values: Callable[[object], tuple[int, ...] | tuple[Expr, ...]]
    """The driver's numbers for a value in that form, expressions where a call decides; none: it is left out."""

    summary: str
    """What it does, for the documentation."""

    words: type[DriverEnum] | None = None
    """The words that its number stands for, if it is one of some."""

    def spelled(self, numbers: tuple[int | None, ...]) -> str:
        """Return the field and its value as a launch's author wrote them, for the driver's numbers."""
        value: object = numbers[0] if len(numbers) == 1 else numbers
        if self.words is not None:
            value = next((one.word for one in self.words if one.code == value), value)
        return f"{self.field}={bool(value) if self.normalise in (flag, _switch) else value!r}"

    def least_capability(self, numbers: tuple[int | Expr | None, ...]) -> tuple[int, int]:
        """Return the least compute capability of a device that can hold the attribute.

        Parameters
        ----------
        numbers
            The driver's numbers for its value; of one that a call decides, with no integer in the place of some, it is
            the call that needs it.
        """
        decided = all(type(number) is int for number in numbers)
        return self.compute_capability if decided and numbers != self.everywhere else (0, 0)


def _constant_cluster(value: object, field: str) -> object:
    """Return blocks along x, y, z, all of them constants."""
    cluster = _cluster(value, field)
    if isinstance(cluster, tuple):
        for axis, extent in enumerate(cluster):
            if is_a(extent, Expr):
                raise ProgramError("got an expression, expected a constant", field=f"{field}[{axis}]")
    return cluster


def _cluster(value: object, field: str) -> object:
    """Return blocks along x, y, z: integers, or expressions if one of them is no constant."""
    if value is None:
        return None
    alone = type(value) is int or is_a(value, (Expr, NonInteger))
    given = (value,) if alone else members(value, field, "an integer, an expression, or up to 3 of them")
    if not 1 <= len(given) <= _AXES:
        raise ProgramError(f"got {len(given)} extents, expected 1 to {_AXES}", field=field)
    extents: list[int | Expr] = [1, 1, 1]
    for axis, one in enumerate(given):
        extents[axis] = _cluster_extent(one.value if is_a(one, Const) else one, f"{field}[{axis}]")
    least = 1
    for extent in extents:
        least *= max(extent.bounds.low, 1) if isinstance(extent, Expr) else extent
    if least > MAX_CLUSTER_BLOCKS:
        computed = any(isinstance(extent, Expr) for extent in extents)
        got = f"at least {least}" if computed else least
        raise ProgramError(f"got {got} blocks, expected at most {MAX_CLUSTER_BLOCKS}", field=field)
    if all(isinstance(extent, int) for extent in extents):
        return tuple(extents)
    return tuple(map(as_expr, extents))


def _cluster_extent(value: object, field: str) -> int | Expr:
    """Return blocks along one axis; of an expression a call checks what its bounds do not say."""
    _refuse_outside(value, field)
    if not isinstance(value, Expr):
        return integer(value, field, 1, MAX_CLUSTER_BLOCKS)
    if value.bounds.high < 1 or value.bounds.low > MAX_CLUSTER_BLOCKS:
        raise ProgramError(f"got {value.bounds}, expected 1 to {MAX_CLUSTER_BLOCKS}", field=field)
    return value


def _switch(value: object, field: str) -> object:
    """Return True or False, or the condition that decides it: 0 is off, as that of a launch's ``when``."""
    _refuse_outside(value, field)
    if not is_a(value, Expr):
        return flag(value, field)
    return value.value != 0 if is_a(value, Const) else value


def _refuse_outside(value: object, field: str) -> None:
    """Refuse what stands for no integer, a parameter say, with what to write instead."""
    if is_a(value, NonInteger):
        raise integer_error(value, field)


def _ranged(low: int, high: int) -> Callable[[object, str], object]:
    return lambda value, field: None if value is None else integer(value, field, low, high)


def _word(kind: type[DriverEnum]) -> Callable[[object, str], object]:
    return lambda value, field: None if value is None else member(kind, value, field)


def _extents(value: object) -> tuple[int, ...] | tuple[Expr, ...]:
    return value if isinstance(value, tuple) else ()


def _number(value: object) -> tuple[int, ...]:
    return (value,) if isinstance(value, int) else ()


def _set(value: object) -> tuple[int, ...] | tuple[Expr, ...]:
    if isinstance(value, Expr):
        return (value,)
    return (1,) if value is True else ()


def _code(value: object) -> tuple[int, ...]:
    return (value.code,) if isinstance(value, DriverEnum) else ()


_LAUNCH, _STREAM, _GRAPH = "launch", "stream", "graph"

LAUNCH_ATTRIBUTES: tuple[LaunchAttribute, ...] = (
    LaunchAttribute(
        field="cluster",
        id=4,
        driver_name="CLUSTER_DIMENSION",
        member="clusterDim",
        cuda_version=11080,
        compute_capability=_CLUSTERS_SINCE,
        everywhere=_ONE_BLOCK,
        scopes=frozenset({_LAUNCH, _GRAPH}),
        capability=Capability.CLUSTER,
        normalise=_cluster,
        values=_extents,
        summary="blocks of a cluster along x, y, z; more than 8 in all also set the non-portable function attribute",
    ),
    LaunchAttribute(
        field="cooperative",
        id=2,
        driver_name="COOPERATIVE",
        member="cooperative",
        cuda_version=11080,
        scopes=frozenset({_LAUNCH, _GRAPH}),
        capability=Capability.COOPERATIVE,
        normalise=flag,
        values=_set,
        summary="all blocks are resident at once, so that they can wait for one another",
    ),
    LaunchAttribute(
        field="pdl",
        id=6,
        driver_name="PROGRAMMATIC_STREAM_SERIALIZATION",
        member="programmaticStreamSerializationAllowed",
        cuda_version=11080,
        scopes=frozenset({_LAUNCH}),
        capability=Capability.PDL,
        normalise=_switch,
        values=_set,
        summary="the launch may start before the one before it in the stream has finished; a graph shows it as an edge",
    ),
    LaunchAttribute(
        field="priority",
        id=8,
        driver_name="PRIORITY",
        member="priority",
        cuda_version=11080,
        scopes=frozenset({_LAUNCH, _STREAM, _GRAPH}),
        capability=Capability.PRIORITY,
        normalise=_ranged(*_PRIORITY),
        values=_number,
        summary="the launch's priority instead of its stream's; lower numbers come first",
    ),
    LaunchAttribute(
        field="carveout",
        id=14,
        driver_name="PREFERRED_SHARED_MEMORY_CARVEOUT",
        member="sharedMemCarveout",
        cuda_version=12050,
        scopes=frozenset({_LAUNCH, _GRAPH}),
        capability=Capability.CARVEOUT,
        normalise=_ranged(*_CARVEOUT),
        values=_number,
        summary="per cent of the L1 cache's memory that are wanted as shared memory",
    ),
    LaunchAttribute(
        field="preferred_cluster",
        id=11,
        driver_name="PREFERRED_CLUSTER_DIMENSION",
        member="preferredClusterDim",
        cuda_version=12080,
        compute_capability=_CLUSTERS_SINCE,
        everywhere=_ONE_BLOCK,
        scopes=frozenset({_LAUNCH, _GRAPH}),
        capability=Capability.PREFERRED_CLUSTER,
        normalise=_constant_cluster,
        values=_extents,
        summary="a larger cluster, each extent a multiple of the cluster's, that the hardware may choose instead",
    ),
    LaunchAttribute(
        field="scheduling_policy",
        id=5,
        driver_name="CLUSTER_SCHEDULING_POLICY_PREFERENCE",
        member="clusterSchedulingPolicyPreference",
        driver_type="CUclusterSchedulingPolicy",
        cuda_version=11080,
        compute_capability=_CLUSTERS_SINCE,
        scopes=frozenset({_LAUNCH, _GRAPH}),
        capability=Capability.CLUSTER_SCHEDULING,
        normalise=_word(ClusterSchedulingPolicy),
        values=_code,
        words=ClusterSchedulingPolicy,
        summary="how clusters are placed: spread over the device, or balancing its load",
    ),
    LaunchAttribute(
        field="mem_sync_domain",
        id=10,
        driver_name="MEM_SYNC_DOMAIN",
        member="memSyncDomain",
        driver_type="CUlaunchMemSyncDomain",
        cuda_version=12000,
        scopes=frozenset({_LAUNCH, _STREAM, _GRAPH}),
        capability=Capability.MEM_SYNC_DOMAIN,
        normalise=_word(MemSyncDomain),
        values=_code,
        words=MemSyncDomain,
        summary="the domain within which the launch's memory fences order; remote isolates communication kernels",
    ),
)
"""Every attribute whose value is a constant of the program, or numbers of each call; the window is none of them."""

COMPUTED_FIELDS = frozenset({"cluster", "pdl"})
"""The fields that may be expressions."""

_ROWS = {row.id: row for row in LAUNCH_ATTRIBUTES}


def attribute_row(number: int) -> LaunchAttribute:
    """Return the row of an attribute.

    Parameters
    ----------
    number
        Its ``CUlaunchAttributeID``.

    Raises
    ------
    KeyError
        If the table has none.
    """
    return _ROWS[number]
