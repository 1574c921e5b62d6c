"""Values of foreign classes, none of whose code a message may run, and tensors of which something is odd."""

from __future__ import annotations

import ctypes
import enum
import warnings
import weakref
from typing import Any
from unittest import mock

import numpy as np
import torch

warnings.filterwarnings("ignore", module="torch")
warnings.filterwarnings("ignore", message=".*quantize")

__all__ = ["ForeignCodeError", "claiming", "devices", "ending", "streams", "tensors", "values"]


class ForeignCodeError(Exception):
    """Code of a foreign value was run, though nothing but its type was asked for."""


def _refuse(self: object, *_: object, **__: object) -> Any:
    raise ForeignCodeError(object.__repr__(self))


_SPEAKING = dict.fromkeys(
    (
        "__repr__",
        "__str__",
        "__format__",
        "__eq__",
        "__ne__",
        "__lt__",
        "__bool__",
        "__len__",
        "__contains__",
    ),
    _refuse,
)


def _hostile(name: str, *bases: type, **more: Any) -> type:
    return type(name, bases, {**_SPEAKING, "__hash__": object.__hash__, **more})


class Metaclass(type):
    """A class of classes without a name."""

    __name__ = property(_refuse)  # type: ignore[assignment]  # that is the mistake
    __repr__ = _refuse


class Word(enum.StrEnum):
    """A text of another class."""

    DEVICE = "cuda:0"


Foreign = _hostile("Foreign")
Text = _hostile("Text", str)
Number = _hostile("Number", int)
Float = _hostile("Float", float)
Bytes = _hostile("Bytes", bytes)
Items = _hostile("Items", list, __len__=list.__len__)  # a list is converted, and so asked how long it is
Odd = _hostile("\x1b[31m\a\u202e\u2028[red]")
Nameless = Metaclass("Nameless", (), dict(_SPEAKING))


def _posing(kind: type) -> Any:
    """Return a value that says it is of another class."""
    return _hostile("Posing", __class__=property(lambda _: kind))()


def _end(self: object, *_: object, **__: object) -> Any:
    raise SystemExit(0)


class _Unequal(type):
    """A class that ends the process when it is compared."""

    __eq__ = _end
    __hash__ = type.__hash__


class _Unhashable(type):
    """A class that ends the process when it is looked up, as abstract classes do."""

    __hash__ = _end


_KEPT = torch.zeros(4)


def _dead() -> Any:
    gone = Foreign()
    return weakref.proxy(gone)


def claiming() -> list[Any]:
    """Return what says that it is a tensor, by ``__class__`` alone, which even torch believes; and what cannot say."""
    return [_posing(torch.Tensor), weakref.proxy(_KEPT), mock.MagicMock(spec=torch.Tensor), _dead()]


def _ending(base: type, metaclass: type = type) -> type:
    """Return a class of which every method of ``base`` ends the process."""
    kept = {"__new__", "__init__", "__class__", "__getattribute__", "__init_subclass__", "__subclasshook__"}
    asked = ["__fspath__", "__index__", "__iter__", "__len__", "__str__", "__bool__", "__hash__", "__eq__"]
    return metaclass("Ending", (base,), dict.fromkeys({*dir(base), *asked} - kept, _end))


def ending() -> list[Any]:
    """Return values that end the process, with status 0, whatever they are asked."""
    text, number = _ending(str)("cpu"), _ending(int)(3)
    numbers = [number, _ending(float)(1.5), _ending(bytes)(b"12345678")]
    several = [_ending(list)([1]), _ending(tuple)((1, 2)), _ending(dict)(a=1), _ending(set)({1})]
    posing = type("Posing", (), {"__class__": property(_end)})()
    unknown = type("Unknown", (), {"__getattr__": _end})()
    unhashable = object.__new__(_Unhashable("Unhashable", (), {}))
    things = [_ending(object)(), _ending(object, _Unequal)(), posing, unknown, unhashable]
    return [text, *numbers, *several, *things, [text], (number, text), {"a": text}]


def values() -> list[Any]:
    """Return what is wrong for whatever it is given."""
    return [*_foreign(), *_numbers(), *_things(), *claiming()]


def _foreign() -> list[Any]:
    plain = [Foreign(), Text("x"), Text("cuda:0"), Number(7), Number(1 << 80), Float(1.5), Bytes(b"12345678")]
    held = [Items([1, 2]), [Foreign()], (Foreign(), Foreign()), {"a": Foreign()}, {Foreign()}]
    return [*plain, *held, Odd(), Nameless(), Foreign, Odd, *map(_posing, (int, str, float, bytes))]


def _numbers() -> list[Any]:
    texts = ["", "x" * 10_000, "\x1b[31m\u202e\ud800", b"", b"1" * 100]
    floats = [0.0, float("nan"), float("inf"), 1e308, 1j]
    return [None, True, False, 0, -1, 1 << 62, 1 << 64, 10**400, -(10**5000), *floats, *texts]


def _things() -> list[Any]:
    buffers = [
        bytearray(8),
        memoryview(b"12345678"),
        memoryview(b"1234567890123456")[::2],
        np.zeros(4, "float32"),
    ]
    arrays = [np.float32(1), np.int64(3), np.bool_(1), np.str_("a"), ctypes.c_int(3), ctypes.c_void_p(4096)]
    words = [torch.float32, torch.device("cuda:0"), torch.Size([4]), Word.DEVICE, Ellipsis, NotImplemented]
    return [*buffers, *arrays, *words, [], (), {}, range(3), object(), print, ForeignCodeError("a")]


def tensors(place: Any) -> list[Any]:
    """Return odd tensors.

    Parameters
    ----------
    place
        Returns a copy of a host tensor on a device.
    """
    gone = torch.zeros(4)
    gone.untyped_storage().resize_(0)
    away = place(torch.zeros(4))
    wide = torch.zeros(64, 64)
    strided = torch.zeros(16).as_strided((4,), (3,))
    return [
        gone,
        torch.zeros(4),
        torch.zeros(4, device="meta"),
        torch.zeros(4).to_sparse(),
        torch.zeros(0),
        torch.zeros(()),
        torch.zeros(4, requires_grad=True),
        torch.zeros(4, dtype=torch.complex64).conj(),
        torch.nn.Parameter(torch.zeros(4)),
        torch.zeros(4, dtype=torch.complex64).conj().imag,
        torch.zeros(1).expand(4),
        strided,
        wide.T,
        wide[1:, 1:],
        torch.zeros(*([1] * 64)),
        torch.zeros(4, dtype=torch.float64),
        torch.zeros(4, dtype=torch.bool),
        away,
        away[1:],
        away[:0],
        place(torch.zeros(4, dtype=torch.int32)),
        place(wide),
        place(wide).T,
        away.unsqueeze(0),
        place(torch.zeros(4, dtype=torch.uint8)),
        torch.nested.nested_tensor([torch.zeros(2), torch.zeros(3)]),
        torch.quantize_per_tensor(torch.zeros(4), 0.1, 0, torch.qint8),
        torch.zeros(4).to_mkldnn(),
    ]


class _Stream:
    def __init__(self, answer: Any) -> None:
        self.answer = answer

    def __cuda_stream__(self) -> Any:
        return self.answer


def streams() -> list[Any]:
    """Return what names no stream, or one that is not there."""
    answers = (None, (), (0,), (0, 0, 0), (0, Number(3)), (0, -1), (0, 1 << 64), (0, None), [0, 0], Foreign())
    return [*map(_Stream, answers), _Stream, 1, 2, -1, 1 << 64, 0xDEAD0000, torch.device("cuda:0"), "0", 1.0]


def devices() -> list[Any]:
    """Return what names no device, or one that is not there."""
    names = (
        "cuda:",
        "cuda:-1",
        "cuda:99",
        "cuda:1",
        "cpu",
        "cpu:0",
        "meta",
        "cuda:0\x1b",
        "CUDA:0",
        "cuda:٣",
        "xpu:0",
    )
    return [
        *names,
        *map(torch.device, ("cpu", "cuda:1", "meta")),
        -1,
        2,
        99,
        1 << 40,
        1 << 100,
        1.0,
        b"cuda:0",
    ]
