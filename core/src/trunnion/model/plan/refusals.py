"""The refusals of a call: a row for each, with the class of its error, its fields, and its text.

Whoever refuses a call, in Python or in C++, says which row, and its fields: so the same mistake has the same error
everywhere. ``refusals.hpp`` and ``refusals.cc`` of C++ launchers are written from this table, by
`trunnion.codegen.cpp.refusals`. Two things are no rows: what a driver said (`DriverError`), and the rules of tensor
maps, which are a table of their own.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar

from trunnion.errors import (
    ArgumentTypeError,
    ArgumentValueError,
    CaptureError,
    DeviceRequirementError,
    ExprError,
    LifecycleError,
    TensorMapError,
    UnboundSymbolError,
    shorten,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = ["AFTER_FORK", "REFUSALS", "FieldKind", "RefusalRow"]

AFTER_FORK: Final = "start processes by spawn, or fork before CUDA is first used"
"""What to do where a process was forked after CUDA was used."""

_ErrorT = TypeVar("_ErrorT", bound=Exception)


class FieldKind(enum.Enum):
    """What a field of a refusal is, and how it is shown."""

    ARGUMENT = "argument"
    """The name of the argument that is wrong; the error itself quotes it, and says where it was given."""
    NAME = "name"
    """Another name that a user chose: quoted."""
    TEXT = "text"
    """Words of ours, or the author's own."""
    INT = "int"
    """An integer of 64 signed bits."""
    NUMBER = "number"
    """Any number."""
    ADDRESS = "address"
    """An integer of 64 unsigned bits, in hexadecimal."""
    AXIS = "axis"
    """A dimension of a grid or a block: x, y or z."""
    VERSION = "version"
    """A version of CUDA as the driver counts: 12010 is 12.1."""
    DIMS = "dims"
    """A tensor's extents or strides."""
    AUTHOR = "author"
    """What the author wrote for the number in the field before, in brackets; nothing where it says no more."""
    NAMES = "names"
    """Names: how many, and each of them. A list is a row's last field."""
    PLACES = "places"
    """Where something stands, as one text each."""


_SHOW: Final[Mapping[FieldKind, Any]] = {
    FieldKind.NAME: shorten,
    FieldKind.ADDRESS: hex,
    FieldKind.AXIS: "xyz".__getitem__,
    FieldKind.VERSION: lambda version: f"{version // 1000}.{version % 1000 // 10}",
    FieldKind.DIMS: lambda numbers: str(tuple(numbers)),
    FieldKind.NAMES: lambda names: f"{len(names)} ({', '.join(map(shorten, names)) or 'none'})",
    FieldKind.PLACES: UnboundSymbolError.listed,
}
_READ: Final[Mapping[FieldKind, Any]] = {
    FieldKind.INT: int,
    FieldKind.ADDRESS: int,
    FieldKind.AXIS: int,
    FieldKind.VERSION: int,
    FieldKind.DIMS: lambda text: tuple(map(int, text.split())),
}
_LISTS: Final = (FieldKind.NAMES, FieldKind.PLACES)


@dataclass(frozen=True, slots=True)
class RefusalRow(Generic[_ErrorT]):
    """One row: called with its fields, it returns the error."""

    id: str
    """What the row is called: lower-case words, with hyphens; the error's `refusal`."""

    error: type[_ErrorT]
    """The error's class."""

    fields: tuple[tuple[str, FieldKind], ...]
    """The name and the kind of each field, in their order."""

    texts: tuple[str, ...]
    """The texts that the error is made of, in the order in which its class takes them, with fields in braces."""

    only: str = ""
    """``"python"`` or ``"cpp"``, if launchers of that language alone say it; empty: both do."""

    def __call__(self, *values: Any) -> _ErrorT:
        """Return the error.

        Parameters
        ----------
        *values
            The fields, in their order.
        """
        shown: dict[str, str] = {}
        before = ""
        for (name, kind), value in zip(self.fields, values, strict=True):
            if kind is FieldKind.AUTHOR:
                before = "" if value == before else f" ({value})"
            else:
                before = _SHOW.get(kind, str)(value)
            shown[name] = before
        texts = [text.format_map(shown) for text in self.texts]
        made: Any
        if issubclass(self.error, UnboundSymbolError):
            made = self.error(*values)
        elif issubclass(self.error, TensorMapError):
            made = self.error(texts[1:], field=texts[0])
        else:
            made = self.error(*texts)
        made.refusal = self.id
        return made  # type: ignore[no-any-return]  # it is of the class

    def read(self, place: str, texts: Sequence[str]) -> _ErrorT:
        """Return the error of which a C++ launcher sent the fields.

        Parameters
        ----------
        place
            Where the argument was given, if its name does not say that.
        texts
            The fields, each as a text; those of a list one by one.
        """
        values: list[Any] = []
        for _, kind in self.fields:
            if kind in _LISTS:
                values.append(tuple(texts[len(values) :]))
            else:
                values.append(_READ.get(kind, str)(texts[len(values)]))
        return self.at(place, *values) if place else self(*values)

    def at(self, place: str, *values: Any) -> _ErrorT:
        """Return the error of what was given at a place that its name does not say.

        Parameters
        ----------
        place
            The place, as `ArgumentError.place` has it.
        *values
            What stands in the row's fields.
        """
        made = self(*values)
        made.place = place  # type: ignore[attr-defined]  # those that have one are of arguments
        return made


_ARGUMENT, _NAME, _TEXT = FieldKind.ARGUMENT, FieldKind.NAME, FieldKind.TEXT
_INT, _NUMBER, _ADDRESS, _AXIS = FieldKind.INT, FieldKind.NUMBER, FieldKind.ADDRESS, FieldKind.AXIS
_VERSION, _DIMS, _AUTHOR = FieldKind.VERSION, FieldKind.DIMS, FieldKind.AUTHOR
_NAMES, _PLACES = FieldKind.NAMES, FieldKind.PLACES


def _type(
    row: str, got: str, expected: str, /, argument: str = "{argument}", only: str = "", **fields: FieldKind
) -> RefusalRow[ArgumentTypeError]:
    """Return a row of an argument of the wrong type; the argument's name is its first field, or said here."""
    named = {"argument": _ARGUMENT} if argument == "{argument}" else {}
    return RefusalRow(
        row, ArgumentTypeError, tuple((named | fields).items()), (argument, got, expected), only
    )


def _value(
    row: str, got: str, expected: str, /, argument: str = "{argument}", only: str = "", **fields: FieldKind
) -> RefusalRow[ArgumentValueError]:
    """Return a row of an argument of a value that is not allowed, as `_type` does."""
    named = {"argument": _ARGUMENT} if argument == "{argument}" else {}
    return RefusalRow(
        row, ArgumentValueError, tuple((named | fields).items()), (argument, got, expected), only
    )


def _need(
    row: str, requirement: str, got: str, /, hint: str = "", only: str = "", **fields: FieldKind
) -> RefusalRow[DeviceRequirementError]:
    """Return a row of what a driver, a device or a machine does not have."""
    return RefusalRow(row, DeviceRequirementError, tuple(fields.items()), (requirement, got, hint), only)


def _plain(
    row: str, error: type[_ErrorT], message: str, /, only: str = "", **fields: FieldKind
) -> RefusalRow[_ErrorT]:
    """Return a row of an error that is one text."""
    return RefusalRow(row, error, tuple(fields.items()), (message,), only)


# Each row takes as few lines as it can: it is read as a table.
# fmt: off
# Counts --------------------------------------------------------------------------------------------------------------

COUNT = _type("count", "{given} arguments", "{wanted}", "", given=_INT, wanted=_NAMES)
OUT_COUNT = _type("out-count", "{given} tensors", "{wanted}", "out", "python", given=_INT, wanted=_NAMES)

# Tensors -------------------------------------------------------------------------------------------------------------

NO_TENSOR = _type("no-tensor", "{kind}", "a tensor", kind=_TEXT)
NO_TENSOR_BUT_NONE = _type(
    "no-tensor-but-none", "NoneType", "a tensor; a parameter that is declared nullable=True takes None"
)
NO_MEMORY = _type(
    "no-memory", "{kind} with no memory of its own",
    "a dense tensor in memory; call .resolve_conj(), .resolve_neg() or .to_dense() if it is lazy", only="python",
    kind=_TEXT
)
UNREADABLE = _type(
    "unreadable", "{kind} that refuses: {said}", "a dense tensor in memory", only="python", kind=_TEXT, said=_TEXT
)
DTYPE = _type("dtype", "a tensor of {got}", "one of {expected}", got=_TEXT, expected=_TEXT)
RANK = _value(
    "rank", "{got} dimensions, shape {shape}", "{expected} dimensions", got=_INT, expected=_INT, shape=_DIMS
)
LONG_RANK = _value("long-rank", "{got} dimensions", "{expected} dimensions", only="cpp", got=_INT, expected=_INT)
NOT_ON_CUDA = _value("not-on-cuda", "a tensor on {device}", "a tensor on a CUDA device", device=_TEXT)
NOT_ON_CUDA_BUT_CPU = _value(
    "not-on-cuda-but-cpu", "a tensor on {device}", "a tensor on a CUDA device; call .to('cuda')", device=_TEXT
)
NOT_ON_CPU = _value("not-on-cpu", "a tensor on {device}", "a tensor on the CPU", device=_TEXT)
NOT_ON_CPU_BUT_CUDA = _value(
    "not-on-cpu-but-cuda", "a tensor on {device}", "a tensor on the CPU; call .cpu()", device=_TEXT
)
OTHER_DEVICE = _value(
    "other-device", "a tensor on device {device}", "device {first}, where {owner} lies", device=_INT, first=_INT,
    owner=_NAME
)
OTHER_PLACE = _value(
    "other-place", "a tensor on {device}", "{first}, where {owner} lies", only="python", device=_TEXT, first=_TEXT,
    owner=_NAME
)
NO_PLACE = _value(
    "no-place", "{array} on {device}", "one in the memory of the host or of a CUDA device", only="python",
    array=_TEXT, device=_TEXT
)
LAYOUT = _value(
    "layout", "strides {strides} for shape {shape}", "a contiguous row-major tensor; call .contiguous()",
    strides=_DIMS, shape=_DIMS
)
NULL_TENSOR = _type("null-tensor", "a tensor with a null address", "a tensor in memory")
ALIGNMENT = _value(
    "alignment", "address {address}", "a multiple of {alignment} bytes", address=_ADDRESS, alignment=_INT
)
STORAGE = _value(
    "storage", "a storage with room for {room} bytes", "room for the {spanned} bytes that its elements span",
    only="python", room=_INT, spanned=_INT
)
UNEXPORTABLE = _type(
    "unexportable", "{kind} that refuses: {said}", "an array that DLPack can carry", only="python", kind=_TEXT,
    said=_TEXT
)
UNWRITABLE = _value("unwritable", "{array}", "an array that can be written", only="python", array=_TEXT)

# Numbers, addresses and bytes ----------------------------------------------------------------------------------------

_ITEM: Final = "; pass the tensor's .item(), which waits for its device"
_INTEGER, _REAL, _BOOLEAN = "an integer, {low} to {high}", "a number that fits {dtype}", "True or False"

NO_INTEGER = _type("no-integer", "{kind}", _INTEGER, kind=_TEXT, low=_INT, high=_NUMBER)
TENSOR_FOR_INTEGER = _type("tensor-for-integer", "{kind}", _INTEGER + _ITEM, kind=_TEXT, low=_INT, high=_NUMBER)
INTEGER_RANGE = _value("integer-range", "{got}", _INTEGER, got=_TEXT, low=_INT, high=_NUMBER)
NO_REAL = _type("no-real", "{kind}", _REAL, kind=_TEXT, dtype=_TEXT)
TENSOR_FOR_REAL = _type("tensor-for-real", "{kind}", _REAL + _ITEM, kind=_TEXT, dtype=_TEXT)
REAL_RANGE = _value("real-range", "{got}", _REAL, got=_TEXT, dtype=_TEXT)
NO_BOOLEAN = _type("no-boolean", "{kind}", _BOOLEAN, kind=_TEXT)
TENSOR_FOR_BOOLEAN = _type("tensor-for-boolean", "{kind}", _BOOLEAN + _ITEM, kind=_TEXT)
FOREIGN_NUMBER = _type(
    "foreign-number", "{kind}, which raises {error}", "a number, or what answers as one", only="python", kind=_TEXT,
    error=_TEXT
)
NO_ADDRESS = _type("no-address", "None", "an address; the pointer is not nullable")
TENSOR_FOR_ADDRESS = _type("tensor-for-address", "{kind}", "an address: pass the tensor's .data_ptr()", kind=_TEXT)
NULL_ADDRESS = _value("null-address", "the address 0", "an address that is not null")
NO_BUFFER = _type("no-buffer", "{kind}", "an object with a buffer of {nbytes} bytes", kind=_TEXT, nbytes=_INT)
SCATTERED_BUFFER = _type(
    "scattered-buffer", "a buffer with gaps or in another order", "an object with a buffer of {nbytes} bytes",
    only="python", nbytes=_INT
)
BUFFER_SIZE = _value("buffer-size", "{got} bytes", "{nbytes}", got=_INT, nbytes=_INT)

# Symbols and checks --------------------------------------------------------------------------------------------------

UNBOUND = _plain("unbound", UnboundSymbolError, UnboundSymbolError.template, symbol=_NAME, places=_PLACES)
SYMBOL = _value("symbol", "{got} for {place}", "{allowed}", place=_TEXT, got=_NUMBER, allowed=_TEXT)
UNEQUAL = _value(
    "unequal", "{word} {got} along dimension {axis}", "{expected}{author}", word=_TEXT, axis=_INT, got=_INT,
    expected=_INT, author=_AUTHOR
)
VALUE = _value("value", "{got}", "{expected}{author}", got=_NUMBER, expected=_INT, author=_AUTHOR)
CONDITION = _value("condition", "a call that fails the program's check", "{message}", "", message=_TEXT)

# Expressions ---------------------------------------------------------------------------------------------------------

UNFIT = _plain("unfit", ExprError, "the value {value} of {text} does not fit 64 signed bits", value=_TEXT, text=_TEXT)
NOT_FINITE = _plain("not-finite", ExprError, "the value {value} of {text} is not finite", value=_TEXT, text=_TEXT)
FLOAT_UNFIT = _plain(
    "float-unfit", ExprError, "the value {value} of {text} does not fit {type}", value=_TEXT, text=_TEXT, type=_TEXT
)
DIVISION = _plain("division", ExprError, "division by zero in {text}", text=_TEXT)
SHIFT = _plain("shift", ExprError, "a shift by {count} in {text}, expected 0 to 63", count=_INT, text=_TEXT)
CAST = _plain(
    "cast", ExprError, "the value {value} of {text} does not fit {type} ({low} to {high})", value=_INT, low=_INT,
    high=_NUMBER, type=_TEXT, text=_TEXT
)

# Launches ------------------------------------------------------------------------------------------------------------

_BLOCKS: Final = "a grid of {got} blocks along {axis} for kernel {kernel}"

GRID = _value("grid", _BLOCKS, "0 to {limit}", "", kernel=_NAME, axis=_AXIS, got=_INT, limit=_INT)
CLUSTER = _value(
    "cluster", _BLOCKS, "a multiple of the cluster's {cluster}", "", kernel=_NAME, axis=_AXIS, got=_INT, cluster=_INT
)
CLUSTER_EXTENT = _value(
    "cluster-extent", "a cluster of {got} blocks along {axis} for kernel {kernel}", "1 to {limit}", "", kernel=_NAME,
    axis=_AXIS, got=_INT, limit=_INT
)
WIDE_CLUSTER = _value(
    "wide-cluster", "a cluster of {got} blocks for kernel {kernel}", "at most {limit}", "", kernel=_NAME, got=_INT,
    limit=_INT
)
BLOCK = _value(
    "block", "{got} threads along {axis} for kernel {kernel}", "1 to {limit}", "", kernel=_NAME, axis=_AXIS, got=_INT,
    limit=_INT
)
WIDE_BLOCK = _value(
    "wide-block", "a block of {got} threads for kernel {kernel}", "at most {limit}", "", kernel=_NAME, got=_INT,
    limit=_INT
)
SMEM_SIZE = _value(
    "smem-size", "{got} bytes of shared memory for kernel {kernel}", "0 to {limit}", "", kernel=_NAME, got=_INT,
    limit=_INT
)
VIEW = _value(
    "view", "extent {got} along dimension {axis}", "-2147483648 to 2147483647: a view passes it as int32", axis=_INT,
    got=_INT
)
OFFSET = _value(
    "offset", "an address moved by {got} elements", "0 to the {limit} elements that it spans", got=_INT, limit=_INT
)
ABSENT = _type("absent", "None", "a tensor: {reader} reads it in this call", reader=_TEXT)

# Outputs, workspaces, maps and windows -------------------------------------------------------------------------------

NEGATIVE = _value("negative", "extent {got} along dimension {axis}", "at least 0", axis=_INT, got=_INT)
SIZE = _value("size", "arguments that ask for 2**63 bytes of it or more", "fewer than 2**63")
DESTINATION = _value(
    "destination", "strides {strides} for shape {shape}",
    "a contiguous row-major tensor to write into: allocate one, and copy from it", strides=_DIMS, shape=_DIMS
)
OUTPUT_DEVICE = _value("output-device", "a tensor on {device}", "CUDA device {ordinal}", device=_TEXT, ordinal=_INT)
OUTPUT_ON_CPU = _value("output-on-cpu", "a tensor on {device}", "the CPU", device=_TEXT)
OUTPUT_PLACE = _value(
    "output-place", "a tensor on {device}", "{expected}", only="python", device=_TEXT, expected=_TEXT
)
OVERLAP = _value("overlap", "memory that {other} also lies in", "memory of its own", other=_NAME)
OWN_OUTPUTS = _type(
    "own-outputs", "{kind}", "None: the function allocates what it returns", "out", "python", kind=_TEXT
)
FILLED_ELSEWHERE = _type(
    "filled-elsewhere", "{kind}", "a torch tensor, because the output is filled before the call", only="python",
    kind=_TEXT
)
OUT_IS_ARGUMENT = _type(
    "out-is-argument", "{kind}", "None: without a signature, destinations are arguments", "out", "python", kind=_TEXT
)
NO_ALLOCATOR = _need(
    "no-allocator", "an allocator for outputs and workspaces", "none: no tensor library took part in the call",
    "set one (TVMFFIEnvSetDLPackManagedTensorAllocator); outputs alone main_out takes as given", "cpp"
)
MAP_OUTSIDE: Final = RefusalRow(
    "map-outside", TensorMapError, (("memory", _NAME), ("start", _INT), ("end", _TEXT), ("limit", _INT)),
    ("tensor map over {memory}", "the map lies within its memory (got: bytes {start} to {end} of {limit})")
)
WINDOW_OUTSIDE = _value(
    "window-outside", "a window of {nbytes} bytes from byte {offset}", "one that lies within its {limit} bytes",
    nbytes=_TEXT, offset=_INT, limit=_INT
)
LONG_WINDOW = _need(
    "long-window", "an access-policy window of {nbytes} bytes over {memory}", "device {device}, which allows {most}",
    "leave nbytes out for as much as the device allows", nbytes=_INT, memory=_NAME, device=_INT, most=_INT
)

# Devices and streams -------------------------------------------------------------------------------------------------

NO_DEVICE = _need("no-device", "a device", "a call with no tensor", "pass device=")
DEVICE_DIFFERS = _value(
    "device-differs", "{given}", "{device}, where the tensors lie", "device", given=_INT, device=_INT
)
PLACE_DIFFERS = _value(
    "place-differs", "{given}", "{device}, where the {what} lie", "device", "python", given=_TEXT, device=_TEXT,
    what=_TEXT
)
STREAM_DEVICE = _value(
    "stream-device", "a stream of device {found}", "one of device {device}, where the tensors lie", "stream",
    found=_INT, device=_INT
)
STREAM_CONTEXT = _value(
    "stream-context", "a stream of a context that has module variables of its own",
    "one of the primary context of device {device}, or of a green one: there the program's variables are", "stream",
    device=_INT
)
STREAM_ON_CPU = _value("stream-on-cpu", "{kind}", "None: the CPU has no streams", "stream", "cpp", kind=_TEXT)
STREAM_OF_HOST = _value(
    "stream-of-host", "{handle}", "None or 0: the host has no streams", "stream", "python", handle=_ADDRESS
)
SEVERAL_STREAMS = _value(
    "several-streams", "None beside {arrays}", "a stream: each of these libraries has a current one", "stream",
    "python", arrays=_TEXT
)
UNKNOWN_STREAM = _value(
    "unknown-stream", "None beside {kind} {array}", "a stream: that library does not tell TVM-FFI its current one",
    "stream", "python", kind=_TEXT, array=_NAME
)
OTHER_STREAM = _value(
    "other-stream", "another stream than the current one, for a call that allocates", "the current stream", "stream",
    "cpp"
)
OTHER_STREAM_FOR_OUTPUTS = _value(
    "other-stream-for-outputs", "another stream than the current one, for a call that allocates",
    "the current stream, or destinations (main_out)", "stream", "cpp"
)
WORD = _type("word", "{kind}", "{expected}", only="cpp", kind=_TEXT, expected=_TEXT)
UNPREPARED = _plain(
    "unprepared", CaptureError,
    "the program was not prepared for device {device}, and its stream is being captured: call preload({device}) "
    "before the capture", device=_INT
)
WINDOW_IN_CAPTURE = _plain(
    "window-in-capture", CaptureError,
    "a window with policy 'stream' cannot be captured, because the call waits for its kernel; use policy 'launch'"
)
ATTRIBUTE_VERSION = _need(
    "attribute-version", "CUDA {needed} for the launch attribute {attribute}", "a driver for CUDA {version}",
    "update the driver, or leave the attribute out", needed=_VERSION, attribute=_TEXT, version=_VERSION
)
ATTRIBUTE_CAPABILITY = _need(
    "attribute-capability", "compute capability {major}.{minor} for the launch attribute {attribute}",
    "device {device}, of compute capability {has_major}.{has_minor}",
    "launch on a device that has it, or leave the attribute out", major=_INT, minor=_INT, attribute=_TEXT,
    device=_INT, has_major=_INT, has_minor=_INT
)
DYNAMIC_SMEM = _need(
    "dynamic-smem", "{nbytes} bytes of dynamic shared memory for kernel {kernel}",
    "device {device}, which allows a block {most} bytes, static ones included", nbytes=_INT, kernel=_NAME,
    device=_INT, most=_INT
)
FACT = _need(
    "fact", "at least {least} as {name}", "{value}, as device {device} answers", least=_INT, name=_TEXT, value=_INT,
    device=_INT
)
NO_DRIVER = _need(
    "no-driver", "a CUDA driver (libcuda.so.1)", "none: {said}",
    "install the NVIDIA driver, or simulate: trunnion.sim.start()", said=_TEXT
)
OLD_DRIVER = _need(
    "old-driver", "a driver for CUDA {needed} or later, with {function}", "one for CUDA {version}",
    "update the driver", needed=_VERSION, function=_TEXT, version=_VERSION
)
OTHER_CPU = _need(
    "other-cpu", "a CPU that runs code for {architecture}", "one that lacks some of its instructions",
    "compile it for target='cpu'", "cpp", architecture=_TEXT
)
NO_SCRATCH = _need(
    "no-scratch", "{nbytes} bytes of scratch memory for a block", "none from the system",
    "lower the launch's dynamic_smem_bytes", "cpp", nbytes=_NUMBER
)

# From load to close --------------------------------------------------------------------------------------------------

CLOSED = _plain("closed", LifecycleError, "the program was closed")
CLOSED_MODULE = _plain("closed-module", LifecycleError, "the program was closed; take the module up again", "python")
FORKED = _plain(
    "forked", LifecycleError,
    f"the process forked after the program was loaded, and CUDA does not survive a fork: {AFTER_FORK}"
)
FORKED_MODULE = _plain(
    "forked-module", LifecycleError,
    "the process forked after a call on a CUDA device; take the module up in a process of its own", "python"
)
CLOSE_WITHIN = _plain(
    "close-within", LifecycleError, "a program cannot be closed from within its own launch; close it after the call"
)
LOADING_ELSEWHERE = _plain(
    "loading-elsewhere", LifecycleError,
    "the program is being loaded, or prepared for a device, by another thread, for so long that it may wait for this "
    "one; preload() it before several threads call", "cpp"
)
LOADING_NESTED = _plain(
    "loading-nested", LifecycleError,
    "the program is being loaded, or prepared for a device, further up in this thread, which a signal's handler or a "
    "finalizer has interrupted; preload() it before, or leave this call to later", "cpp"
)
NO_IMAGE = _plain(
    "no-image", LifecycleError, "the launcher has no image of its own; hand it one: load(image, names)", "cpp"
)
SECOND_IMAGE = _plain("second-image", LifecycleError, "the launcher has its image already", "cpp")
NOT_LOADED = _plain("not-loaded", LifecycleError, "the program was not loaded yet", "cpp")
KERNEL_NAMES = _value(
    "kernel-names", "{got} bytes", "{count} kernels' exact names, each with a zero byte behind it", "names", "cpp",
    got=_NUMBER, count=_INT
)
IMAGE_NAMES = _value(
    "image-names", "{got} bytes",
    "{count} kernels' exact names, then {variables} variables', each with a zero byte behind it", "names", "cpp",
    got=_NUMBER, count=_INT, variables=_INT
)
EMPTY_IMAGE = _value("empty-image", "0 bytes", "a cubin, or PTX", "image", "cpp")
NO_OWN_MEMORY = _plain("no-own-memory", MemoryError, "the launcher's own memory could not be allocated", "cpp")
NO_BOUND_MEMORY = _plain("no-bound-memory", MemoryError, "no memory for a bound launch", "cpp")

# In a trace ----------------------------------------------------------------------------------------------------------

WORD_IN_JAX = _type(
    "word-in-jax", "it", "none in JAX: XLA allocates, and says the stream and the device", only="python"
)
TRACED_NUMBER = _type(
    "traced-number", "{kind}", "a number: it is part of what XLA compiles; say static_argnums of jax.jit for it",
    only="python", kind=_TEXT
)
NARROWED_BY_JAX = _need(
    "narrowed-by-jax", "JAX with {dtype}", "JAX without types of 64 bits",
    "set jax.config.update('jax_enable_x64', True), or declare the output narrower", "python", dtype=_TEXT
)
# fmt: on

REFUSALS: Final[Mapping[str, RefusalRow[Any]]] = MappingProxyType(
    {row.id: row for row in tuple(globals().values()) if isinstance(row, RefusalRow)}
)
"""Every row, by its id."""
