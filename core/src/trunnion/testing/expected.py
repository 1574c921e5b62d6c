"""What a call says and what must come of it, as plain values: the vocabulary of the oracle."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from trunnion.errors import TrunnionError

__all__ = [
    "Address",
    "CallFacts",
    "Expected",
    "ExpectedLaunch",
    "ExpectedMap",
    "ExpectedNan",
    "ExpectedOutput",
    "ExpectedParameter",
    "Problem",
    "Refused",
    "TensorFacts",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class TensorFacts:
    """A tensor of a call, as its own attributes describe it."""

    dtype: str
    """The element type's name."""

    shape: tuple[int, ...]
    """Elements along each dimension, outermost first."""

    strides: tuple[int, ...]
    """Elements between neighbours along each dimension."""

    address: int
    """The address of the first element, in bytes."""

    device: int | None
    """The ordinal of its CUDA device; None: it does not lie on one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CallFacts:
    """One call: what is passed, where to, and on what."""

    args: tuple[object, ...]
    """Positional arguments: `TensorFacts` for a tensor, anything else as it is."""

    out: tuple[object, ...] | None = None
    """Destinations, or None."""

    device: int | None = None
    """The device that the caller names, or None."""


@dataclass(frozen=True, slots=True)
class Address:
    """A place in a tensor of the call; a number only once the tensor exists."""

    tensor: str
    """The parameter's name."""

    offset: int = 0
    """Bytes from the tensor's first element."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpectedMap:
    """One tensor map, in the driver's order: innermost dimension first."""

    address: Address
    """``globalAddress``."""

    element_type: str
    """The name of the type as which the elements are read."""

    dtype: int
    """``CUtensorMapDataType``."""

    dims: tuple[int, ...]
    """``globalDim``, in elements."""

    strides: tuple[int, ...]
    """``globalStrides``, in bytes, without the innermost dimension's."""

    box: tuple[int, ...]
    """``boxDim``."""

    element_strides: tuple[int, ...]
    """``elementStrides``."""

    interleave: int
    """``CUtensorMapInterleave``."""

    swizzle: int
    """``CUtensorMapSwizzle``."""

    l2_promotion: int
    """``CUtensorMapL2promotion``."""

    oob_fill: int
    """``CUtensorMapFloatOOBfill``."""


@dataclass(frozen=True, slots=True)
class ExpectedNan:
    """Any of a float type's patterns that are not a number."""

    dtype: str
    """The type's name."""


ExpectedParameter = bytes | Address | ExpectedNan | ExpectedMap
"""What a kernel's parameter must be; an address travels as 8 bytes, least first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpectedLaunch:
    """One launch that must happen."""

    kernel: str
    """The kernel's name, as the program spells it."""

    grid: tuple[int, int, int]
    """Blocks."""

    block: tuple[int, int, int]
    """Threads."""

    dynamic_smem_bytes: int
    """Bytes."""

    parameters: tuple[ExpectedParameter, ...]
    """By ordinal."""

    cluster: tuple[int, int, int] | None = None
    """Blocks, or nothing said of clusters."""

    cooperative: bool = False
    """Whether the cooperative attribute is set."""

    pdl: bool = False
    """Whether the programmatic attribute is set."""

    @property
    def maps(self) -> tuple[ExpectedMap, ...]:
        """The maps among the parameters, in order, equal ones each time."""
        return tuple(value for value in self.parameters if isinstance(value, ExpectedMap))


@dataclass(frozen=True, slots=True)
class ExpectedOutput:
    """One tensor that the call must return."""

    name: str
    """The output's name."""

    dtype: str
    """The element type's name."""

    shape: tuple[int, ...]
    """Elements along each dimension."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Expected:
    """A call that must succeed, and how."""

    launches: tuple[ExpectedLaunch, ...]
    """Those that are not skipped, in stream order."""

    outputs: tuple[ExpectedOutput, ...]
    """In order."""

    device: int
    """The ordinal of the device on which all of it happens."""

    skipped: int = 0
    """How many launches have an empty grid."""

    @property
    def maps(self) -> tuple[ExpectedMap, ...]:
        """The distinct maps, in the order of their first reader."""
        return tuple(dict.fromkeys(value for launch in self.launches for value in launch.maps))


@dataclass(frozen=True, slots=True)
class Problem:
    """One reason to refuse a call."""

    errors: tuple[type[TrunnionError], ...]
    """The classes that say so truthfully."""

    arguments: tuple[str, ...] | None
    """The parameters of which one must be named; None: the error names none."""

    reason: str
    """For people."""

    def explains(self, error: TrunnionError) -> bool:
        """Whether an error reports this problem."""
        named = self.arguments is None or getattr(error, "argument", None) in self.arguments
        return isinstance(error, self.errors) and named


@dataclass(frozen=True, slots=True)
class Refused:
    """A call that must be refused before anything is allocated or launched."""

    problems: tuple[Problem, ...]
    """Every reason; the error must report one of them."""

    def explains(self, error: TrunnionError) -> bool:
        """Whether an error reports one of the problems."""
        return any(problem.explains(error) for problem in self.problems)
