"""Wrong calls of one backend's programs, by every way in: each is refused by a typed error."""

from __future__ import annotations

import pickle
import sys
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

import torch
from stress_trials import hostile
from stress_trials.shard import Journal, finish

import trunnion
from trunnion import DeviceCode, ProgramBuilder, Symbol, ceildiv, le, sim
from trunnion.errors import TrunnionError, UnsupportedFeatureError
from trunnion.messages import describe
from trunnion.registry import default_registry
from trunnion.testing.strategies.breakage import _wrong_arguments
from trunnion.testing.strategies.calls import TensorSpec, arguments_of
from trunnion.testing.strategies.numbers import BytesSpec

if TYPE_CHECKING:
    from collections.abc import Callable

    from trunnion.compiled import CompiledProgram
    from trunnion.model.program import KernelProgram

ACME = Path(__file__).resolve().parents[2] / "third_party" / "acme_backend" / "src"
PARTS = ("", "tvm_ffi-cpu")
CUDA = 'extern "C" __global__ void k(...) {}'
CPU = """#include <trunnion/block.h>
extern "C" void k(const float* x, float* y, int64_t n, float factor, const trunnion_block_t* block) {
  for (int64_t i = 0; i < n; ++i) y[i] = x[i] * factor;
}
"""


@dataclass
class Subject:
    """A program that is called, and a call of it that is right."""

    program: CompiledProgram
    model: KernelProgram
    right: list[Any]


def simple(code: DeviceCode) -> tuple[KernelProgram, tuple[object, ...]]:
    """Return a program of one launch, and a right call."""
    n = Symbol("n")
    p = ProgramBuilder("simple", code)
    x, factor, y = (
        p.input("x", "float32", (n,)),
        p.scalar("factor", "float32"),
        p.output("y", "float32", (n,)),
    )
    p.launch("k", args=(x, y, n, factor), grid=1, block=1)
    return p.build(), (TensorSpec(dtype="float32", shape=(4,), strides=(1,)), 1.5)


KERNELS = (
    'extern "C" __global__ void k(const float*, float*, long long, float) {}',
    'extern "C" __global__ void k(const float*, const void*, long long, double, __nv_bfloat16, bool, void*) {}',
)


def scalars() -> tuple[KernelProgram, tuple[object, ...]]:
    """Return a program that takes numbers, an address, bytes and tensors that need not be there."""
    n, m = Symbol("n", min=2, max=1 << 20, multiple_of=2), Symbol("m")
    kinds = ("int8", "uint64", "float16", "float64", "bool")
    types = {
        "int8": "char",
        "uint64": "unsigned long long",
        "float16": "unsigned short",
        "float64": "double",
        "bool": "bool",
    }
    source = "struct __align__(8) Bytes { char b[16]; };\n"
    listed = ", ".join(types[kind] for kind in kinds)
    source += f'extern "C" __global__ void k(float*, float*, void*, Bytes, {listed}, float*) {{}}'
    p = ProgramBuilder("scalars", DeviceCode("cuda", source))
    t = p.input("t", "float32", (n, m), strides=(Symbol("step"), 1))
    u = p.input("u", "float32", (m,), nullable=True)
    numbers = [p.scalar(kind, kind) for kind in kinds]
    n2 = p.scalar("count", "int64", n)
    address, data = p.pointer("address", alignment=16), p.struct("data", 16, 8)
    out = p.output("z", "float32", (n,), fill=1.0)
    p.check(le(m, 64), "m at most 64")
    del n2
    p.launch("k", args=(t, u, address, data, *numbers, out), grid=ceildiv(n, 64), block=64, when=m)
    tensor = TensorSpec(dtype="float32", shape=(4, 2), strides=(3, 1))
    other = TensorSpec(dtype="float32", shape=(2,), strides=(1,))
    return p.build(), (tensor, other, 1, 2, 1.5, 2.5, True, 4, 4096, BytesSpec(bytes(16), "bytes"))


def mapped() -> tuple[KernelProgram, tuple[object, ...]]:
    """Return a program with tensor maps, a workspace and two launches."""
    m, n = Symbol("m"), Symbol("n", multiple_of=8)
    source = "struct __align__(64) Map { char b[128]; };\n"
    source += 'extern "C" __global__ void k(const __grid_constant__ Map, float*, int, float*) {}'
    p = ProgramBuilder("mapped", DeviceCode("cuda", source))
    a = p.input("a", "float32", (m, n), alignment=16)
    space = p.workspace("space", "float32", (m, n))
    y, z = (p.output(name, "float32", (m,)) for name in "yz")
    for out in (y, z):
        p.launch("k", args=(a.tiled(box_dim=(4, 8)), space, n.cast("int32"), out), grid=m, block=32)
    return p.build(), (TensorSpec(dtype="float32", shape=(4, 8), strides=(8, 1)),)


def registered(backend: str) -> str:
    """Return the backend's name; the sample one is announced first."""
    if backend == "acme":
        sys.path.insert(0, str(ACME))
        from trunnion_acme.hooks import SPEC

        default_registry().register(SPEC, "trunnion-acme")
    return backend.partition("-")[0]


class Caller:
    """The programs of a backend, and calls of them."""

    def __init__(self, backend: str, rng: Random) -> None:
        self.rng, self.name = rng, registered(backend)
        self.cpu = backend.endswith("-cpu")
        self.simulator = sim.start(devices=2)
        made = (
            [simple(DeviceCode("c++", CPU))]
            if self.cpu
            else [simple(DeviceCode("cuda", KERNELS[0])), scalars(), mapped()]
        )
        self.subjects = [
            subject for program, call in made if (subject := self._subject(program, call)) is not None
        ]
        self.values, self.streams, self.devices = hostile.values(), hostile.streams(), hostile.devices()
        self.tensors = hostile.tensors(lambda host: self._placed(host, 0))
        self.described: list[str] = []

    def _subject(self, model: KernelProgram, call: tuple[object, ...]) -> Subject | None:
        try:
            program = trunnion.compile(model, self.name, target="cpu" if self.cpu else "sm_90a")
        except UnsupportedFeatureError:
            return None
        subject = Subject(program, model, [*call])
        program(*self.made(call))
        return subject

    def _placed(self, host: Any, device: int | None) -> Any:
        return host if self.cpu or device is None else self.simulator.tensor(host, device)

    def made(self, given: Any) -> list[Any]:
        """Return described arguments as such."""

        def storage(nbytes: int, device: int | None) -> Any:
            return self._placed(torch.zeros(nbytes + 256, dtype=torch.uint8), device)[:nbytes]

        return arguments_of(given, storage)

    def foreign(self) -> Any:
        """Return a value that is hostile, or a tensor that is odd."""
        return self.rng.choice(self.values if self.rng.random() < 0.6 else self.tensors)

    def mistake(self, subject: Subject) -> tuple[list[Any], dict[str, Any], str]:
        """Return arguments with one mistake or more, and the way in."""
        rng, given, named = self.rng, [*subject.right], dict[str, Any]()
        way = rng.choice(("call", "call", "entry", "bind", "preload"))
        for _ in range(rng.choice((1, 1, 1, 2, 3))):
            match rng.randrange(9):
                case 0 | 1 | 2:
                    index = rng.randrange(len(given))
                    param = subject.model.signature.params[index % len(subject.model.signature.params)]
                    wrong = [
                        one for _, one in _wrong_arguments(param, subject.right[index % len(subject.right)])
                    ]
                    given[index] = rng.choice(wrong or [None])
                case 3 | 4:
                    given[rng.randrange(len(given))] = self.foreign()
                case 5:
                    given = (
                        given[: rng.randrange(len(given))] if rng.random() < 0.5 else [*given, self.foreign()]
                    )
                    given = given or [self.foreign()]
                case 6:
                    named["out"] = self.destinations(subject)
                case 7:
                    key = rng.choice(("stream", "device"))
                    pool = {"stream": self.streams, "device": self.devices}[key]
                    named[key] = rng.choice(pool) if rng.random() < 0.6 else self.foreign()
                case _:
                    named[rng.choice(("self", "x", "args", "out_", "\x1b", "stream ", "__class__"))] = (
                        self.foreign()
                    )
        return given, named, way

    def destinations(self, subject: Subject) -> Any:
        """Return what is wrong for ``out=``."""
        rng, count = self.rng, len(subject.model.signature.outputs)
        wrong = TensorSpec(
            dtype=rng.choice(("float32", "int32")), shape=(rng.randrange(9),), strides=(rng.choice((1, 2)),)
        )
        match rng.randrange(5):
            case 0:
                return self.foreign()
            case 1:
                return [self.foreign()] * count
            case 2:
                return tuple(self.made((wrong,) * count))
            case 3:
                return self.made([wrong] * (count + 1))
        return self.made([wrong])[0]

    def attempt(self, counts: Counter[str]) -> str:
        """Make one wrong call; return what is wrong with how it was refused."""
        subject = self.rng.choice(self.subjects)
        given, named, way = self.mistake(subject)
        made = self.made(given)
        self.described = [subject.model.name, way, *(told(one) for one in (*given, *named, *named.values()))]
        run: Callable[[], Any] = {
            "call": lambda: subject.program(*made, **named),
            "entry": lambda: subject.program.entry(*made, **named),
            "bind": lambda: subject.program.bind(*made, **named)(),  # noqa: PLW0108 - binding is a part of the call
            "preload": lambda: subject.program.preload(named.get("device", self.foreign())),
        }[way]
        return refused(run, counts, way)


def told(value: Any) -> str:
    """Return a value for people, by its type unless it is plain."""
    return ascii(value) if type(value) in (TensorSpec, BytesSpec, torch.device) else describe(value)


def refused(run: Callable[[], Any], counts: Counter[str], way: str) -> str:
    """Return what is wrong with how a call was refused; empty if nothing is, or if the call was right after all."""
    try:
        run()
    except TrunnionError as error:
        counts["refused"] += 1
        counts[way] += 1
        text = str(error)
        if len(text) > 1 << 14 or not text.replace("\n", "").replace("\t", "").isprintable():
            return f"a message of {len(text)} characters, or one that does not print: {text[:300]!a}"
        same = str(pickle.loads(pickle.dumps(error))) == text  # noqa: S301 - our own bytes
        return "" if same and repr(error) else "the error is another one after pickling"
    except BaseException as error:  # noqa: BLE001 - whatever else leaves is what is looked for
        return f"{type(error).__name__}: {str(error)[:300]!a}"
    counts["taken"] += 1
    return ""


def main(path: str, seed: int, count: int, backend: str) -> None:
    """Run a shard: so many calls that are refused."""
    journal, counts = Journal(path), Counter[str]()
    caller = Caller(backend, Random(seed))  # noqa: S311 - no secret
    while counts["refused"] < count and len(journal.problems) < 200 and journal.trials < 5 * count:
        journal.attempt(lambda: caller.attempt(counts), lambda: " ".join(caller.described))
        if journal.trials % 500 == 0:
            caller.simulator.clear_trace()
    counts["programs"] = len(caller.subjects)
    finish(journal, counts)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4])
