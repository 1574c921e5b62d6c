"""Foreign values, wherever one is passed that builds or compiles: refused by type, and none of their code is run."""

from __future__ import annotations

import functools

import pytest
import torch
from stress_trials import hostile

import trunnion
from trunnion import (
    ArtifactStore,
    DeviceCode,
    KernelProgram,
    PrebuiltImage,
    ProgramBuilder,
    Registry,
    Symbol,
    Target,
    default_registry,
    examples,
)
from trunnion.errors import ArgumentTypeError, TrunnionError

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


@functools.cache
def launchable():
    return compiled()


@functools.cache
def on_the_host():
    """Return a program of the CPU, whose launcher TVM-FFI converts arguments for, and a tensor for it."""
    source = (
        "#include <trunnion/block.h>\n"
        "void k(const float* x, float* y, int s, const trunnion_block_t*) { y[0] = x[0] + s; }\n"
    )
    made = ProgramBuilder("host", DeviceCode("c++", source))
    x, y = made.input("x", "float32", (N,)), made.output("y", "float32", (N,))
    made.launch("k", (x, y, made.scalar("s", "int32")), 1, 1)
    return trunnion.compile(made.build(), target="cpu"), torch.ones(3)


def call_on_the_host(way, value):
    program, tensor = on_the_host()
    ways = {
        "argument": lambda: program(value, 1),
        "number": lambda: program(tensor, value),
        "argument of the entry": lambda: program.entry(value, 1),
        "number of the entry": lambda: program.entry(tensor, value),
        "bound argument": lambda: program.bind(value, 1),
        "bound number": lambda: program.bind(tensor, value),
        "bound output": lambda: program.bind(tensor, 1, out=value),
        "output": lambda: program(tensor, 1, out=value),
        "one of the outputs": lambda: program(tensor, 1, out=[value]),
        "stream": lambda: program(tensor, 1, stream=value),
        "bound stream": lambda: program.bind(tensor, 1, stream=value),
    }
    return ways[way]()


CLAIMS = (
    "argument", "argument of the entry", "bound argument", "output", "bound output", "one of the outputs",
    "number", "number of the entry", "bound number", "stream", "bound stream",
)  # fmt: skip


def store():
    return ArtifactStore("store")


def tensor(**said):
    return builder().input("x", "float32", **{"shape": (N, 8), **said})


def launch(args=(), grid=1, **said):
    builder().launch("k", args=args, grid=grid, block=1, **said)


WAYS = {
    **{f"{way} on the host": functools.partial(call_on_the_host, way) for way in CLAIMS},
    "option of C++": lambda v: trunnion.compile(on_the_host()[0].program, options={"tvm_ffi": {"I": v}}),
    "what is built": lambda v: store().get_or_build("0" * 64, lambda _: v),
    "entry points": lambda v: Registry(v).names(),
    "an entry point": lambda v: Registry([v]).names(),
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
    "a constant": trunnion.const,
    "type of a constant": lambda v: trunnion.const(1, v),
    "an offset": lambda v: tensor().at(v),
    "a field": lambda v: trunnion.struct(("f", v)),
    "name of a field": lambda v: trunnion.struct((v, N)),
    "a field and its name": trunnion.struct,
    "offsets of a struct": lambda v: trunnion.struct(("f", N), offsets=v),
    "an offset of a struct": lambda v: trunnion.struct(("f", N), offsets={"f": v}),
    "size of a struct": lambda v: trunnion.struct(("f", N), nbytes=v),
    "alignment of a struct": lambda v: trunnion.struct(("f", N), alignment=v),
    "a value of an array": lambda v: trunnion.array(v),  # noqa: PLW0108 - of values, each an argument
    "what is measured": lambda v: trunnion.measured(v, "S", CODE),
    "code that is measured": lambda v: trunnion.measured(trunnion.struct(("f", N)), "S", v),
    "operand of a root": trunnion.sqrt,
    "what is a double": trunnion.real,
    "operand of a float": lambda v: (N / 2) + v,
    "cast of a float": (N / 2).cast,
    "kernel of an occupancy": lambda v: trunnion.occupancy(v, 1),
    "block of an occupancy": lambda v: trunnion.occupancy("k", v),
    "memory of an occupancy": lambda v: trunnion.occupancy("k", 1, v),
    "a variable": lambda v: builder().variable(v, "int32"),
    "type of a variable": lambda v: builder().variable("x", v),
    "shape of a variable": lambda v: builder().variable("x", "int32", v),
    "what a variable holds": lambda v: builder().variable("x", "int32", (2,), init=v),
    "one number that a variable holds": lambda v: builder().variable("x", "int32", (2,), init=(1, v)),
    "code of a variable": lambda v: builder().variable("x", "int32", code=v),
    "a variable that is copied to": lambda v: builder().copy(v, tensor()),
    "what is copied": lambda v: builder().copy(trunnion.ModuleVariable("x", "int32"), v),
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
    "cache": lambda v: compiled(cache=v, lazy=True),
    "recache": lambda v: compiled(recache=v),
    "lazy": lambda v: compiled(lazy=v),
    "trust": lambda v: compiled(trust=v),
    "registry": lambda v: compiled(registry=v),
    "includes": lambda v: DeviceCode("cuda", "//", includes=v),
    "a header": lambda v: DeviceCode("cuda", "//", includes=((v, v),)),
    "options of code": lambda v: DeviceCode("cuda", "//", options=v),
    "language of a file": lambda v: DeviceCode.from_file("kernel", v),
    "cubin": lambda v: DeviceCode("cubin", v),
    "builder": lambda v: ProgramBuilder(v, CODE).build(),
    "block": lambda v: builder().launch("k", (), 1, v),
    "kernel": lambda v: builder().launch(v, (), 1, 1),
    "policy": lambda v: tensor().window(policy=v),
    "element type of a map": lambda v: tensor().tiled((8, 8), dtype=v),
    "condition": lambda v: builder().check(v, "m"),
    "message": lambda v: builder().check(N, v),
    "JSON": KernelProgram.from_json,
    "a target's text": Target.parse,
    "a target's kind": Target,
    "explain": trunnion.explain,
    "image": lambda v: launchable().image(v),
    "out": lambda v: launchable()(1, out=v),
    "stream": lambda v: launchable()(1, stream=v),
    "device": lambda v: launchable()(1, device=v),
    "device to prepare": lambda v: launchable().preload(v),
    "folder to save to": lambda v: launchable().artifact.save(v),  # noqa: PLW0108 - not built where nothing runs
    "store": ArtifactStore,
    "store's patience": lambda v: ArtifactStore("store", wait_seconds=v),
    "store's size": lambda v: ArtifactStore("store", max_bytes=v),
    "store's age": lambda v: ArtifactStore("store", max_age_seconds=v),
    "key": lambda v: store().get(v),
    "key to build": lambda v: store().get_or_build(v, print),
    "name of a backend": lambda v: default_registry().backend(v),
    "name of a compiler": lambda v: default_registry().compiler(v),
    "name of a plugin": lambda v: default_registry().plugin(v),
    "name of an owner": lambda v: default_registry().owner(v),
    "spec": lambda v: Registry(()).register(v),
    "pattern": lambda v: PrebuiltImage(b"", v),
    "image file": PrebuiltImage.from_file,
    "example": examples.load,
}


@pytest.mark.usefixtures("simulator")
@pytest.mark.filterwarnings("ignore:.*nested tensors:UserWarning", "ignore:.*uantize")
@pytest.mark.parametrize("way", WAYS)
def test_a_foreign_value_is_refused_by_its_type(way, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
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


@pytest.mark.usefixtures("simulator")
@pytest.mark.parametrize("way", WAYS)
def test_no_value_ends_the_process_that_passes_it(way, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for value in hostile.ending():
        try:
            WAYS[way](value)
        except TrunnionError as error:
            assert str(error).isprintable()  # noqa: PT017 - to be refused is one of two right ends


@pytest.mark.parametrize("way", CLAIMS)
def test_what_only_claims_to_be_a_tensor_is_none(way):
    """torch reads memory of what it believes to be a tensor, and what a proxy's class says it believes."""
    for value in hostile.claiming():
        with pytest.raises(
            ArgumentTypeError, match=r"got (Posing|ProxyType|MagicMock|weakref|CallableProxy)"
        ):
            call_on_the_host(way, value)


@pytest.mark.usefixtures("simulator")
@pytest.mark.parametrize("name", ["self", "args", "named", "call", "\x1b[31m"])
def test_no_name_means_anything_but_an_argument(name):
    program = compiled("tvm_ffi")
    with pytest.raises(ArgumentTypeError, match=r"one of .* 'out', 'stream', 'device'") as caught:
        program.entry(**{name: 1})
    assert str(caught.value).isprintable()
