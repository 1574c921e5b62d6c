"""The things in which a call can differ from the calls before it: each of them one, and nothing else.

Whether a call is still a good one is for the oracle to say. What a launcher keeps of earlier calls, to be faster, must
tell all of these apart.
"""

from __future__ import annotations

import enum
import math
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Final

from trunnion.model.expr import Symbol
from trunnion.model.params import PointerParam, ScalarParam, StructParam, TensorParam
from trunnion.testing.rounding import COMPLEX, FORMATS
from trunnion.testing.strategies.histories import TWIN
from trunnion.testing.strategies.numbers import Indexable

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from trunnion.model.params import Param
    from trunnion.model.program import KernelProgram
    from trunnion.testing.history import Bench

__all__ = ["CHANGES", "NUMBERS", "Change", "changes_of"]


class _Real(float):
    """A double of another class, as array libraries have them."""

    __slots__ = ()


class _Whole(enum.IntEnum):
    """Integers of another class, equal to Python's own."""

    ONE = 1
    TWO = 2
    THREE = 3


def _is_real(param: Param) -> bool:
    return isinstance(param, ScalarParam) and param.dtype.name in FORMATS


def _is_whole(param: Param) -> bool:
    return isinstance(param, ScalarParam) and param.dtype.is_integer


def _is_tensor(param: Param) -> bool:
    return isinstance(param, TensorParam)


def _is_open(param: Param) -> bool:
    """Whether it is a tensor whose calls may differ in its extents."""
    return isinstance(param, TensorParam) and isinstance(param.shape[0], Symbol)


def _is_optional(param: Param) -> bool:
    return isinstance(param, TensorParam) and param.nullable


@dataclass(frozen=True, slots=True)
class Change:
    """One thing in which a call can differ."""

    name: str
    """In a word or two."""

    apply: Callable[[Bench, Any, int], None]
    """Makes the difference in what the next call is made with: for a parameter, in one of several forms."""

    fits: Callable[[Param], bool] | None = None
    """Which parameters can differ so; None: it is a matter of the whole call."""

    needs_outputs: bool = False
    """Whether the program must have an output."""

    def places(self, program: KernelProgram) -> tuple[Any, ...]:
        """Return the parameters that can differ so, or None for the whole call."""
        signature = program.signature
        if self.needs_outputs and not signature.outputs:
            return ()
        if self.fits is None:
            return (None,)
        return tuple(param for param in signature.params if self.fits(param))

    def make(self, bench: Bench, pick: int) -> None:
        """Make the difference.

        Parameters
        ----------
        bench
            The calls.
        pick
            Which parameter, and then which form; counted, and round again.
        """
        places = self.places(bench.program)
        self.apply(bench, places[pick % len(places)], pick // len(places))


def changes_of(program: KernelProgram) -> tuple[str, ...]:
    """Return the names of the changes that a program allows."""
    return tuple(name for name, change in CHANGES.items() if change.places(program))


# Numbers ----------------------------------------------------------------------------------------------------------


def _number(*forms: object) -> Callable[[Bench, Any, int], None]:
    """Return the change of a number to one of some."""

    def apply(bench: Bench, param: Any, form: int) -> None:
        bench.now.numbers[param.name] = forms[form % len(forms)]

    return apply


def _whole(bench: Bench, param: Any, form: int) -> None:
    """Change an integer; one that is a symbol stays so small that it is good."""
    bench.now.numbers[param.name] = (2, 3, 7, 60, 0)[form % 5]


def _equal_whole(bench: Bench, param: Any, form: int) -> None:
    """Pass an equal number of another class: some are integers, some are none."""
    now: Any = bench.now.numbers[param.name]
    forms: tuple[object, ...] = (Indexable(int(now)), float(now), bool(now), _Whole.ONE, complex(now))
    bench.now.numbers[param.name] = forms[form % len(forms)]


def _pointer(bench: Bench, param: Any, form: int) -> None:
    bench.now.numbers[param.name] = (None, 0, 1 << 21, Indexable(1 << 20), 3 << 62, True)[form % 6]


def _struct(bench: Bench, param: Any, form: int) -> None:
    other = bytes(range(1, 1 + param.nbytes))
    bench.now.numbers[param.name] = (other, memoryview(other), bytes(param.nbytes), other[1:])[form % 4]


def _same_struct(bench: Bench, param: Any, form: int) -> None:
    """Write other bytes into the very object that was passed before; later calls find a copy as it was."""
    held: Any = bench.now.numbers[param.name]
    if isinstance(held, bytearray):
        bench.now.numbers[param.name] = held
        bench.on_change_back(_rewriting(held, bytes(held)))
        held[form % len(held)] ^= 0x5A


def _rewriting(held: bytearray, data: bytes) -> Callable[[], None]:
    def rewrite() -> None:
        held[:] = data

    return rewrite


# Tensors ----------------------------------------------------------------------------------------------------------


def _absent(bench: Bench, param: Any, form: int) -> None:
    """Leave a tensor out, or pass one that was left out."""
    del form
    if bench.now.tensors[param.name] is not None:
        bench.now.tensors[param.name] = None
    else:
        bench.put(param)


def _view(bench: Bench, param: Any, change: Callable[[Any], Any]) -> None:
    """Pass another view of the memory that a tensor lies in."""
    if bench.now.tensors[param.name] is None:
        bench.put(param)
    bench.now.tensors[param.name] = change(bench.now.tensors[param.name])


_OTHER_TYPES: Final = {1: ("uint8",), 2: ("int16", "uint16"), 4: ("uint32",), 8: ("float64",)}
"""Element types that no parameter of these programs has, by their bytes."""


def _dtype(bench: Bench, param: Any, form: int) -> None:
    others = _OTHER_TYPES[param.dtype.itemsize]
    other = replace(bench.spec(param), dtype=others[form % len(others)]).kind
    _view(bench, param, lambda tensor: tensor.view(other))


def _rank(bench: Bench, param: Any, form: int) -> None:
    # One that has no rows has no first row either.
    _view(bench, param, lambda tensor: tensor[0] if tensor.shape[0] and not form % 2 else tensor[None])


def _spread(bench: Bench, param: Any, form: int) -> None:
    """Lie in steps of another size, from the same address on."""
    factor = 2 + form % 2

    def spread(tensor: Any) -> Any:
        steps = (tensor.stride(0) * factor, *tensor.stride()[1:])
        return tensor.as_strided(tensor.shape, steps)

    _view(bench, param, spread)


def _offset(bench: Bench, param: Any, form: int) -> None:
    """Begin some elements later in the same storage: at an address that is as well aligned, or not."""
    elements = (16 // param.dtype.itemsize, 64 // param.dtype.itemsize, 1)[form % 3]

    def moved(tensor: Any) -> Any:
        return tensor.as_strided(tensor.shape, tensor.stride(), tensor.storage_offset() + elements)

    _view(bench, param, moved)


def _memory(bench: Bench, param: Any, form: int) -> None:
    """Lie in other memory, while the old one is still there."""
    del form
    bench.now.storages[param.name] = None
    bench.put(param)


_AHEAD: Final = 1024
"""Bytes ahead of a tensor with a short storage: at such an address no good tensor lies, whatever memory is used again.

How long a storage is need not be asked where the address is known and calls are alike: see "What is checked" in
docs/launching.md.
"""


def _short(bench: Bench, param: Any, form: int) -> None:
    """Lie in other memory, at a new address, and in a storage that ends a byte before the tensor does."""
    _memory(bench, param, form)
    start = _AHEAD // param.dtype.itemsize
    _view(bench, param, lambda one: one.as_strided(one.shape, one.stride(), one.storage_offset() + start))
    tensor = bench.now.tensors[param.name]
    if tensor.numel():
        bench.harness.machine.shorten(tensor)


def _shrunk(bench: Bench, param: Any, form: int) -> None:
    """Have extents as no other tensor, at an address that was good a call before, and a storage too short for them."""
    del form
    _memory(bench, param, 0)
    bench.call("call")
    bench.now.values["n"] = 10
    bench.now.out = None  # destinations of the old extents would be a second mistake
    bench.reshape()
    bench.harness.machine.shorten(bench.now.tensors[param.name])


def _in_place(*changes: Callable[[Bench, Any, int], None]) -> Callable[[Bench, Any, int], None]:
    """Return the change of the very same tensor object, by what makes another one of it in one of some ways."""

    def apply(bench: Bench, param: Any, form: int) -> None:
        if bench.now.tensors[param.name] is None:
            bench.put(param)
        tensor = bench.now.tensors[param.name]
        before = tensor.view_as(tensor)
        changes[form % len(changes)](bench, param, form // len(changes))
        tensor.data = bench.now.tensors[param.name]
        bench.now.tensors[param.name] = tensor
        bench.on_change_back(lambda: setattr(tensor, "data", before))

    return apply


def _same(bench: Bench, param: Any, form: int) -> None:
    """Be the very tensor that another parameter is given."""
    del form
    bench.now.tensors[param.name] = bench.now.tensors["x"]


def _freed(bench: Bench, param: Any, form: int) -> None:
    """Be another tensor that lies where the one before lay: of the same extents."""
    del form
    bench.replace_memory(param)


def _elsewhere(bench: Bench, param: Any, form: int) -> None:
    """Lie on the other device, as the only tensor."""
    del form
    there = 1 - bench.now.on
    storage = bench.harness.storage(bench.spec(param).nbytes, there)
    bench.now.tensors[param.name] = bench.spec(param).over(storage)


def _symbols(bench: Bench, form: int) -> None:
    if form % 2 and "s" in {one.name for one in bench.program.signature.symbols()}:
        bench.now.values["s"] = {24: 20}.get(bench.now.values["s"], 24)
    else:
        bench.now.values["n"] = (4, 12, 1, 0, 16)[form // 2 % 5]
    if bench.now.out is not None:
        bench.now.out = bench.destinations()


def _extents(bench: Bench, _: None, form: int) -> None:
    """Have other extents or strides, in tensors that begin where those before begin."""
    _symbols(bench, form)
    bench.reshape()


def _freed_extents(bench: Bench, _: None, form: int) -> None:
    """Have other extents or strides, in new tensors at the addresses that the freed ones had."""
    _symbols(bench, form)
    for param in bench.program.signature.tensors:
        if bench.now.tensors[param.name] is not None:
            bench.replace_memory(param)


def _resized(bench: Bench, _: None, form: int) -> None:
    """Be the very same tensors, given other extents in place."""
    before = bench.now.values.copy()
    _symbols(bench, form)
    for param in bench.program.signature.tensors:
        tensor = bench.now.tensors[param.name]
        if tensor is not None:
            spec = bench.spec(param)
            bench.on_change_back(_restoring(tensor, bench.spec(param, before)))
            tensor.as_strided_(spec.shape, spec.strides)


def _restoring(tensor: Any, spec: Any) -> Callable[[], None]:
    return lambda: tensor.as_strided_(spec.shape, spec.strides)


# The whole call -----------------------------------------------------------------------------------------------------


def _device(bench: Bench, _: None, form: int) -> None:
    """Have all tensors on the other device."""
    del form
    bench.now.on = 1 - bench.now.on
    if bench.now.device is not None:
        bench.now.device = bench.now.on
    bench.now.stream = None  # it is one of the other device
    if bench.now.out is not None:
        bench.now.out = bench.destinations()
    bench.place()


def _named_device(bench: Bench, _: None, form: int) -> None:
    bench.now.device = bench.now.on if form % 2 == 0 else 1 - bench.now.on


def _out(bench: Bench, _: None, form: int) -> None:
    """Have destinations, others than before, none where there were some, or such as do not fit."""
    if bench.now.out is not None and form % 2:
        bench.now.out = None
        return
    bench.now.out = bench.destinations()
    if form % 4 == 2:  # noqa: PLR2004 - one form of four
        bench.now.out[0] = bench.now.out[0][:-1]


def _view_of_out(bench: Bench, _: None, form: int) -> None:
    """Have destinations of which one begins where it did a call before, and has another shape or element type."""
    bench.now.out = bench.destinations()
    bench.call("call")
    first, *others = bench.now.out
    output = bench.program.signature.outputs[0]
    other = replace(bench.spec(output), dtype=_OTHER_TYPES[output.dtype.itemsize][0]).kind
    bench.now.out = [(first[:-1], first[None], first.view(other))[form % 3], *others]


def _stream(bench: Bench, _: None, form: int) -> None:
    """Name a stream: a new one, or one of the driver's own."""
    handles = (None, 0, None, 1, 2)
    handle = handles[form % len(handles)]
    bench.now.stream = bench.harness.simulator.new_stream(bench.now.on) if handle is None else handle


def _current_stream(bench: Bench, _: None, form: int) -> None:
    """Have another current stream."""
    del form
    bench.now.stream = None
    bench.now.current[bench.now.on] = bench.harness.simulator.new_stream(bench.now.on)


def _thread(bench: Bench, _: None, form: int) -> None:
    """Come from another thread, whose current streams are its own."""
    bench.now.threaded = not bench.now.threaded
    bench.now.current = {}
    if form % 2:
        bench.now.current[bench.now.on] = bench.harness.simulator.new_stream(bench.now.on)


def _count(bench: Bench, _: None, form: int) -> None:
    del form
    bench.now.less = 1 - bench.now.less


_ALL: Final[Sequence[Change]] = (
    Change("sign of a zero", _number(-0.0, _Real(-0.0)), _is_real),
    Change("equal real", _number(0, _Real(0.0), False, 0j, Indexable(0)), _is_real),
    Change("NaN", _number(math.nan, -math.nan), _is_real),
    Change("other real", _number(1.5, 1, 2.0**-14, Fraction(3, 4)), _is_real),
    Change(
        "part of a complex",
        _number(complex(0.0, -0.0), complex(-0.0, 0.0), 1j, 0, -0.0, complex(0.0, math.nan)),
        lambda param: isinstance(param, ScalarParam) and param.dtype.name in COMPLEX,
    ),
    Change("equal integer", _equal_whole, _is_whole),
    Change("other integer", _whole, _is_whole),
    Change(
        "truth",
        _number(False, 1, 0, 1.0),
        lambda param: isinstance(param, ScalarParam) and param.dtype.name == "bool",
    ),
    Change("address", _pointer, lambda param: isinstance(param, PointerParam)),
    Change("struct", _struct, lambda param: isinstance(param, StructParam)),
    Change("bytes of a struct", _same_struct, lambda param: isinstance(param, StructParam)),
    Change("absence", _absent, _is_optional),
    Change("element type", _dtype, _is_tensor),
    Change("rank", _rank, _is_tensor),
    Change("spread", _spread, _is_tensor),
    Change("offset", _offset, _is_tensor),
    Change("memory", _memory, _is_tensor),
    Change("short storage", _short, _is_tensor),
    Change("shrunk storage", _shrunk, _is_open),
    Change("one tensor twice", _same, lambda param: param.name == TWIN),
    Change("freed memory", _freed, _is_tensor),
    Change("layout in place", _in_place(_spread, _rank), _is_tensor),
    Change("memory in place", _in_place(_memory, _offset), _is_tensor),
    Change("element type in place", _in_place(_dtype), _is_tensor),
    Change("one device of two", _elsewhere, _is_tensor),
    Change("extents", _extents),
    Change("extents in freed memory", _freed_extents),
    Change("extents in place", _resized),
    Change("device", _device),
    Change("named device", _named_device),
    Change("destinations", _out, needs_outputs=True),
    Change("view of a destination", _view_of_out, needs_outputs=True),
    Change("named stream", _stream),
    Change("current stream", _current_stream),
    Change("thread", _thread),
    Change("count", _count),
)

CHANGES: Final[Mapping[str, Change]] = {change.name: change for change in _ALL}
"""Every change, by its name."""

NUMBERS: Final = tuple(
    change for change in _ALL if change.fits not in {None, _is_tensor, _is_optional, _is_open}
)
"""Those of an argument that is no tensor."""
