"""A program that asks something of everything, and what can be wrong with a call of it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from trunnion.model.builder import ProgramBuilder
from trunnion.model.code import DeviceCode
from trunnion.model.constant import const
from trunnion.model.expr import Symbol, symbols
from trunnion.model.float_expr import real
from trunnion.model.window import AccessPolicyWindow
from trunnion.testing.strategies import TensorSpec
from trunnion.testing.strategies.calls import row_major
from trunnion.testing.strategies.numbers import BytesSpec

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from trunnion.model.program import KernelProgram

__all__ = ["FEATURES", "GOOD", "MISTAKES", "NAMES", "UNENCODED", "Mistake", "program_of"]

NAMES = ("x", "y", "z", "i8", "k", "f", "e", "b", "q", "u", "v", "g", "c", "i", "w", "h", "o", "r")
"""The parameters, in one order."""

_N, _M, _G, _C, _I, _W, _H = symbols("n m g c i w h")
_O = Symbol("o", min=-(2**63))
_R = Symbol("r", min=-(2**63))
_K = Symbol("k", min=1, max=100, multiple_of=4)

FEATURES = frozenset({"maps", "clusters", "windows", "driver"})
"""What programs, and machines, do without elsewhere."""


def _tensor(dtype: str, *shape: int, strides: tuple[int, ...] | None = None, **said: Any) -> TensorSpec:
    return TensorSpec(dtype=dtype, shape=shape, strides=strides or row_major(shape), **said)


def _x(*shape: int, **said: Any) -> TensorSpec:
    return _tensor("float32", *shape, **said)


GOOD: dict[str, Any] = {
    "x": _x(16),
    "y": _tensor("float16", 16, 32),
    "z": _x(16),
    "i8": 3,
    "k": 16,
    "f": 1.5,
    "e": 2.0**-127,
    "b": True,
    "q": 64,
    "u": BytesSpec(bytes(8)),
    "v": 16,
    "g": 16,
    "c": 1,
    "i": 1,
    "w": 64,
    "h": 0,
    "o": 16,
    "r": 1,
}
"""A call in which nothing is wrong."""

UNENCODED = _tensor("float16", 16, 32)
"""A ``y`` of which no map was encoded before: Python's launchers keep those."""


@dataclass(frozen=True)
class Mistake:
    """One thing that is wrong."""

    slot: str
    """A parameter, a word beside the arguments, or what else there is one of: a call makes one mistake of each."""

    name: str
    """What it is."""

    value: Any = None
    """What is passed instead, or planted."""

    needs: str = ""
    """The one of `FEATURES` without which it is none."""

    by_word: bool = False
    """Whether only `LoadedProgram.entry` can say it."""

    def __str__(self) -> str:
        return f"{self.slot}: {self.name}"


def _of_slot(slot: str, **said: Any) -> list[Mistake]:
    return [Mistake(slot, name.replace("_", " "), value) for name, value in said.items()]


MISTAKES = (
    *_of_slot(
        "x",
        no_tensor=3,
        type=_tensor("int32", 16),
        rank=_x(16, 1),
        layout=_x(16, strides=(2,)),
        alignment=_x(16, offset=1),
        another_extent=_x(18),
    ),
    Mistake("x", "on the CPU", _x(16, device=None), "driver"),
    Mistake("x", "on another device", _x(16, device=1), "driver"),
    *_of_slot(
        "y",
        none=None,
        type=_tensor("bfloat16", 16, 32),
        stride=_tensor("float16", 16, 32, strides=(32, 2)),
        the_author_s_check=_tensor("float16", 16, 16),
    ),
    Mistake("y", "a map's rule", _tensor("float16", 16, 20, strides=(20, 1)), "maps"),
    *_of_slot("z", extent=_x(17), rank=_x(16, 1), text="text"),
    *_of_slot("i8", range=1000, text="x", float=1.5),
    *_of_slot(
        "k",
        least=0,
        multiple=6,
        greatest=104,
        range=2**40,
        bool=True,
        a_workspace_s_extent=4,
        threads=100,
    ),
    Mistake("k", "a window beyond its memory", 24, "windows"),
    *_of_slot("f", range=1e6, text="x"),
    *_of_slot("e", zero=0.0, text="x"),
    *_of_slot("b", int=1),
    *_of_slot("q", alignment=8, null=0, text="x"),
    *_of_slot("u", size=BytesSpec(bytes(7)), int=3),
    *_of_slot("v", another=17),
    *_of_slot("g", the_author_s_check=3, too_many_blocks=70000, negative=-1),
    Mistake("g", "no whole cluster", 15, "clusters"),
    *_of_slot("c", no_threads=0, too_many_threads=8),
    *_of_slot("i", no_divisor=0, beyond_a_cast=10000),
    Mistake("w", "a window too long for the device", 2**28, "windows"),
    Mistake("w", "more than any memory", 2**63 - 1, "windows"),
    *_of_slot("h", more_than_a_number=2**31),
    *_of_slot("o", beyond_the_end=17, before_the_beginning=-1),
    *_of_slot("r", a_quotient_that_is_not_finite=0, beyond_a_float=-100),
    Mistake("h", "more than a block has", 300_000, "driver"),
    *_of_slot(
        "out",
        shape=(_x(13),),
        type=(_tensor("int32", 14),),
        number=(),
        none=(None,),
        layout=(_x(14, strides=(2,)),),
    ),
    *_of_slot("count", one_less=-1, one_more=1),
    Mistake("device", "another", 1, "driver"),
    Mistake("device", "none", 99, "driver"),
    Mistake("device", "text", "nowhere", "driver", by_word=True),
    Mistake("stream", "of another device", 1, "driver"),
    Mistake("stream", "text", "x", "driver", by_word=True),
    Mistake("state", "closed", "closed"),
    Mistake("state", "captured unprepared", "fresh", "driver"),
    Mistake("state", "captured with a window on its stream", "open", "windows"),
    Mistake("driver", "allocate", "allocate", "driver"),
    Mistake("driver", "encode", "cuTensorMapEncodeTiled", "maps"),
    Mistake("driver", "fill", "cuMemsetD32Async", "driver"),
    Mistake("driver", "launch", "cuLaunchKernelEx", "driver"),
)


def program_of(order: Sequence[str], features: frozenset[str], *, nullable: bool = False) -> KernelProgram:
    """Return a program that asks something of everything.

    Parameters
    ----------
    order
        The parameters' names, in their order.
    features
        What its launches use.
    nullable
        Whether one of its tensors is.
    """
    p = ProgramBuilder("p", DeviceCode("cuda", "//"))
    made = _params(p, nullable=nullable)
    given = {name: made[name]() for name in order}
    p.check(_G - 3, "g is 3")
    p.check(_K - _M, "k is m")
    out = p.output("out0", "float32", (_N - 2,), fill=0)
    scratch = p.workspace("scratch", "int8", (_K - 8,))
    passed = [given[name] for name in NAMES if name != "y"]
    tile = given["y"].tiled((2, 8)) if "maps" in features else given["y"]
    p.launch(
        "first",
        (*passed, tile, out, (_K * _I).cast("int16"), _N // _I),
        grid=(1, 1, _G),
        block=(_K * 16, _C, 1),
        dynamic_smem_bytes=_K * 100 + _H,
    )
    said: dict[str, Any] = {"cluster": (2, 1, 1)} if "clusters" in features else {}
    if "windows" in features:
        said["window"] = AccessPolicyWindow(given["x"], nbytes=_K * 4, hit_ratio=0.5)
    moved = given["x"].at(_O), const(None), const(0.5, "float32")
    floats = _N / _R, (real(_R) * 1000).cast("float16")
    p.launch("second", (given["x"], scratch, *moved, *floats), grid=(_G, 1, 1), block=32, **said)
    if "windows" in features:
        room = p.workspace("room", "int8", (_W,))
        for name, policy in (("third", "launch"), ("fourth", "stream")):
            window = AccessPolicyWindow(room, nbytes=_W, hit_property="streaming", policy=policy)
            p.launch(name, (room,), grid=1, block=32, window=window)
    return p.build()


def _params(p: ProgramBuilder, *, nullable: bool) -> dict[str, Callable[[], Any]]:
    """Return what adds each parameter."""
    scalars = {"v": _N, "g": _G, "c": _C, "i": _I}
    return {
        "x": lambda: p.input("x", "float32", (_N,), alignment=16),
        "y": lambda: p.input("y", "float16", (_N, _M), strides=(Symbol("s"), 1)),
        "z": lambda: p.input("z", "float32", (_N,), nullable=nullable),
        "i8": lambda: p.scalar("i8", "int8"),
        "k": lambda: p.scalar("k", "int32", _K),
        "f": lambda: p.scalar("f", "float16"),
        "e": lambda: p.scalar("e", "float8_e8m0fnu"),
        "b": lambda: p.scalar("b", "bool"),
        "q": lambda: p.pointer("q", alignment=16),
        "u": lambda: p.struct("u", 8, 8),
        "w": lambda: p.scalar("w", "int64", _W),
        "h": lambda: p.scalar("h", "int64", _H),
        "o": lambda: p.scalar("o", "int64", _O),
        "r": lambda: p.scalar("r", "int64", _R),
    } | {name: partial(p.scalar, name, "int32", symbol) for name, symbol in scalars.items()}
