"""Foreign values, wherever one is passed that builds or compiles: refused by type, and none of their code is run."""

from __future__ import annotations

import pytest
import torch
from stress_trials import hostile

import trunnion
from trunnion import DeviceCode, ProgramBuilder, Symbol
from trunnion.errors import TrunnionError

N = Symbol("n")
CODE = DeviceCode("cuda", 'extern "C" __global__ void k(int number) {}')


def builder():
    return ProgramBuilder("numbers", CODE)


def program():
    made = builder()
    made.launch("k", (made.scalar("number", "int32"),), 1, 1)
    return made.build()


def compiled(backend="nvrtc", target="sm_90a", **said):
    return trunnion.compile(program(), backend, target=target, **said)


def tensor(**said):
    return builder().input("x", "float32", **{"shape": (N, 8), **said})


def launch(args=(), grid=1, **said):
    builder().launch("k", args=args, grid=grid, block=1, **said)


WAYS = {
    "options": lambda v: compiled(options=v),
    "options of a plugin": lambda v: compiled(options={"nvrtc": v}),
    "an option": lambda v: compiled(options={"nvrtc": {"fmad": v}}),
    "options in a list": lambda v: compiled(options={"nvrtc": {"define-macro": [v]}}),
    "backend": compiled,
    "target": lambda v: compiled(target=v),
    "compiler": lambda v: compiled(compiler=v),
    "program": trunnion.compile,
    "file to load": trunnion.load,
    "name": lambda v: builder().input(v, "float32", (N,)),
    "dtype": lambda v: builder().input("x", v, (N,)),
    "shape": lambda v: tensor(shape=v),
    "dimension": lambda v: tensor(shape=(v,)),
    "strides": lambda v: tensor(strides=v),
    "access": lambda v: tensor(access=v),
    "alignment": lambda v: tensor(alignment=v),
    "fill": lambda v: builder().output("x", "float32", (N,), fill=v),
    "box": lambda v: tensor().tiled(v),
    "swizzle": lambda v: tensor().tiled((8, 8), swizzle=v),
    "hit ratio": lambda v: tensor().window(hit_ratio=v),
    "arguments": launch,
    "an argument": lambda v: launch((v,)),
    "grid": lambda v: launch(grid=v),
    "cluster": lambda v: launch(cluster=v),
    "scheduling policy": lambda v: launch(scheduling_policy=v),
    "when": lambda v: launch(when=v),
    "code": lambda v: ProgramBuilder("n", v),
    "language": lambda v: DeviceCode(v, "//"),
    "source": lambda v: DeviceCode("cuda", v),
    "defines": lambda v: DeviceCode("cuda", "//", defines=v),
    "a define": lambda v: DeviceCode("cuda", "//", defines=(("a", v),)),
    "source file": DeviceCode.from_file,
    "symbol": Symbol,
    "bound": lambda v: Symbol("n", min=v),
    "operand": lambda v: trunnion.ceildiv(N, v),
    "cast": N.cast,
    "symbols": trunnion.symbols,
}


@pytest.mark.filterwarnings("ignore:.*nested tensors:UserWarning", "ignore:.*uantize")
@pytest.mark.parametrize("way", WAYS)
def test_a_foreign_value_is_refused_by_its_type(way):
    gone = torch.zeros(4)
    gone.untyped_storage().resize_(0)
    values, said = (gone, *hostile.values()), []
    for value in values:
        try:
            WAYS[way](value)
        except TrunnionError as error:
            said.append(str(error).replace("\n", ""))
    assert all(text.isprintable() for text in said)
    assert len(said) > len(values) // 3
