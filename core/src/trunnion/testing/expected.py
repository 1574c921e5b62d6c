"""What a call says and what must come of it, as plain values: the vocabulary of the oracle."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from trunnion.testing.reference_facts import USUAL_ATTRIBUTES

if TYPE_CHECKING:
    from collections.abc import Mapping

    from trunnion.errors import TrunnionError

__all__ = [
    "Address",
    "CallSignature",
    "Expected",
    "ExpectedCopy",
    "ExpectedIm2col",
    "ExpectedLaunch",
    "ExpectedMap",
    "ExpectedNan",
    "ExpectedNumber",
    "ExpectedOutput",
    "ExpectedParameter",
    "ExpectedParts",
    "ExpectedStruct",
    "ExpectedView",
    "ExpectedWindow",
    "ExpectedWorkspace",
    "Kernel",
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
    """The ordinal of its device, of the kind that is launched on; None: it does not lie on one."""

    lazy: bool = False
    """Whether memory holds the conjugates, or the negatives, of its elements."""

    short: bool = False
    """Whether its storage ends before it does."""

    @property
    def is_empty(self) -> bool:
        """Whether it has no elements."""
        return 0 in self.shape

    @property
    def last(self) -> int:
        """Elements between the first and the last one."""
        return sum((extent - 1) * stride for extent, stride in zip(self.shape, self.strides, strict=True))


@dataclass(frozen=True, slots=True, kw_only=True)
class CallSignature:
    """One call: what is passed, where to, and on what."""

    args: tuple[object, ...]
    """Positional arguments: `TensorFacts` for a tensor, anything else as it is."""

    out: tuple[object, ...] | None = None
    """Destinations, or None."""

    device: int | None = None
    """The device that the caller names, or None."""

    most_window_bytes: int = 128 << 20
    """The longest access-policy window that the device allows."""

    only_device: int | None = None
    """The one device that there is, which a call need not name: the CPU is 0; None: there may be several."""

    attributes: Mapping[int, int] = field(default_factory=lambda: USUAL_ATTRIBUTES, repr=False, compare=False)
    """What the device answers, by ``CUdevice_attribute``: all that facts are."""

    resources: Mapping[str, tuple[int | None, int]] = field(default_factory=dict, repr=False, compare=False)
    """Of kernels, by name, the registers of a thread and the static shared memory, in bytes; others' are usual."""


@dataclass(frozen=True, slots=True)
class Address:
    """A place in a tensor or a workspace of the call, or a module variable; a number only once that exists."""

    memory: str
    """The name of the parameter, of the workspace, or of the variable."""

    offset: int = 0
    """Bytes from the first element."""

    workspace: bool = False
    """Whether it is a workspace."""

    part: int | None = None
    """Which part of the program's code defines the variable; None: it is none."""

    @property
    def base(self) -> Address:
        """The first element's."""
        return Address(self.memory, 0, self.workspace, self.part)


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpectedIm2col:
    """What only an im2col map has, in the driver's order."""

    lower: tuple[int, ...]
    """``pixelBoxLowerCorner``: along W, H, D."""

    upper: tuple[int, ...]
    """``pixelBoxUpperCorner``: along W, H, D."""

    channels: int
    """``channelsPerPixel``."""

    pixels: int
    """``pixelsPerColumn``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpectedMap:
    """One tensor map, in the driver's order: innermost dimension first."""

    address: Address
    """``globalAddress``."""

    element_type: str
    """The name of the type as which the elements are read, or the driver's word for it."""

    dtype: int
    """``CUtensorMapDataType``."""

    dims: tuple[int, ...]
    """``globalDim``, in elements."""

    strides: tuple[int, ...]
    """``globalStrides``, in bytes, without the innermost dimension's."""

    box: tuple[int, ...] | None
    """``boxDim`` of a tiled map."""

    im2col: ExpectedIm2col | None = None
    """The mode of an im2col map."""

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


@dataclass(frozen=True, slots=True)
class ExpectedParts:
    """A complex number of which a part is not a number."""

    parts: tuple[bytes | ExpectedNan, ...]
    """The real part and the imaginary part."""


@dataclass(frozen=True, slots=True)
class ExpectedView:
    """A tensor with its layout: the address, then the numbers, then nothing; what lies between does not count."""

    address: Address | None
    """Of the first element; None: null."""

    extents: bytes
    """The extents that travel, 4 bytes each; they follow the address."""

    strides: bytes
    """The strides that travel, 8 bytes each, at the next multiple of 8."""

    @property
    def stride_offset(self) -> int:
        """Where the strides begin."""
        return 8 + len(self.extents) + len(self.extents) % 8


Kernel = tuple[str, int]
"""A kernel's name, as the program spells it, and which part of the program's code holds it."""

ExpectedNumber = bytes | ExpectedNan | ExpectedParts
"""What a number must be in memory."""


@dataclass(frozen=True, slots=True)
class ExpectedStruct:
    """A struct: what stands in it, and zeros everywhere else."""

    nbytes: int
    """How many bytes it has."""

    fields: tuple[tuple[int, int, ExpectedParameter], ...]
    """Offset, bytes and value of each field; none of them is a struct."""


ExpectedParameter = ExpectedNumber | Address | ExpectedView | ExpectedMap | ExpectedStruct
"""What a kernel's parameter must be; an address travels as 8 bytes, least first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpectedWindow:
    """The access-policy window of a launch."""

    address: Address
    """Its first byte."""

    nbytes: int
    """Its length."""

    hit_ratio: float
    """The share of accesses that get the hit property."""

    hit_property: int
    """``CUaccessProperty``."""

    miss_property: int
    """``CUaccessProperty``."""

    policy: str
    """``"launch"`` or ``"stream"``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpectedLaunch:
    """One launch that must happen."""

    kernel: Kernel
    """The kernel."""

    grid: tuple[int, int, int]
    """Blocks."""

    block: tuple[int, int, int]
    """Threads."""

    dynamic_smem_bytes: int
    """Bytes."""

    parameters: tuple[ExpectedParameter, ...]
    """By ordinal."""

    attributes: tuple[tuple[str, tuple[int, ...]], ...] = ()
    """The constant attributes that the program names: the field, and the driver's numbers."""

    window: ExpectedWindow | None = None
    """The access-policy window."""

    @property
    def maps(self) -> tuple[ExpectedMap, ...]:
        """The maps among the parameters, in order, equal ones each time."""
        return tuple(value for value in self.leaves if isinstance(value, ExpectedMap))

    @property
    def leaves(self) -> tuple[ExpectedParameter, ...]:
        """The parameters in order, and in the place of a struct its fields."""
        inner = (
            [one for _, _, one in value.fields] if isinstance(value, ExpectedStruct) else [value]
            for value in self.parameters
        )
        return tuple(one for group in inner for one in group)


@dataclass(frozen=True, slots=True)
class ExpectedOutput:
    """One tensor that the call must return."""

    name: str
    """The output's name."""

    dtype: str
    """The element type's name."""

    shape: tuple[int, ...]
    """Elements along each dimension."""

    alignment: int = 1
    """What its address must be a multiple of."""

    fill: ExpectedNumber | None = None
    """What each element must be before the first launch; None: whatever it was."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpectedWorkspace:
    """Scratch memory that the call must provide."""

    name: str
    """The workspace's name."""

    nbytes: int
    """The least size."""

    alignment: int
    """What its address must be a multiple of."""

    zeroed: bool
    """Whether it must hold zeros before the first launch."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpectedCopy:
    """A tensor that is copied to a module variable."""

    variable: Address
    """Where to."""

    source: Address
    """Where from."""

    nbytes: int
    """How many bytes."""

    launched: int
    """How many launches of the call come before it; those that are skipped do not count."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Expected:
    """A call that must succeed, and how."""

    launches: tuple[ExpectedLaunch, ...]
    """Those that are not skipped, in stream order."""

    outputs: tuple[ExpectedOutput, ...]
    """In order."""

    device: int
    """The ordinal of the device on which all of it happens."""

    workspaces: tuple[ExpectedWorkspace, ...] = ()
    """Those that a launch is given which is not skipped, in the order of the program's first use."""

    skipped: int = 0
    """How many launches have an empty grid, or a condition that is 0."""

    copies: tuple[ExpectedCopy, ...] = ()
    """What is copied to module variables, in stream order."""

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

    words: tuple[str, ...] = ()
    """What the error must say: one word for each rule that its tensor map breaks, since all of them are named."""

    places: tuple[str, ...] = ()
    """Where the argument stands in the call, one of which the error says (`ArgumentError.place`); empty: unasked."""

    def explains(self, error: TrunnionError) -> bool:
        """Whether an error reports this problem."""
        named = (
            self.arguments is None
            or getattr(error, "argument", getattr(error, "symbol", None)) in self.arguments
        )
        said = all(any(word in one for one in getattr(error, "broken", ())) for word in self.words)
        placed = not self.places or getattr(error, "place", "") in self.places
        return isinstance(error, self.errors) and named and said and placed


@dataclass(frozen=True, slots=True)
class Refused:
    """A call that must be refused before anything is allocated or launched."""

    problems: tuple[Problem, ...]
    """Every reason; the error must report one of them."""

    def explains(self, error: TrunnionError) -> bool:
        """Whether an error reports one of the problems."""
        return any(problem.explains(error) for problem in self.problems)
