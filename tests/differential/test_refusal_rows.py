"""Each row of the table of refusals that two launchers can say: a wrong call, of which all say the row, alike."""

from __future__ import annotations

import warnings
from pathlib import Path

import pytest
import torch
from twins.mistakes import NAMES
from twins.outcome import notes_of
from twins.stage import CUDA, staged

from trunnion.errors import ArgumentTypeError, TrunnionError
from trunnion.model.builder import ProgramBuilder
from trunnion.model.code import DeviceCode
from trunnion.model.expr import Symbol, ge
from trunnion.model.plan.refusals import REFUSALS
from trunnion.testing.strategies import CallSpec, TensorSpec
from trunnion.testing.strategies.numbers import RaiserSpec
from trunnion.testing.symbols import kernel_symbol

ROOT = Path(__file__).parents[2]
N = Symbol("n")

MISTAKES = {
    "alignment": ("q: alignment", "x: alignment"),
    "block": ("c: no threads", "k: threads"),
    "buffer-size": ("u: size",),
    "cast": ("i: beyond a cast",),
    "closed": ("state: closed",),
    "cluster": ("g: no whole cluster",),
    "condition": ("g: the author s check", "y: the author s check"),
    "count": ("count: one less", "count: one more"),
    "destination": ("out: layout",),
    "device-differs": ("device: another", "device: none"),
    "division": ("i: no divisor",),
    "dtype": ("out: type", "x: type", "y: type"),
    "dynamic-smem": ("h: more than a block has",),
    "float-unfit": ("r: beyond a float",),
    "grid": ("g: too many blocks",),
    "integer-range": ("i8: range", "k: range"),
    "layout": ("x: layout",),
    "long-window": ("w: a window too long for the device",),
    "negative": ("k: a workspace s extent",),
    "no-boolean": ("b: int",),
    "no-buffer": ("u: int",),
    "no-integer": ("i8: float", "i8: text", "k: bool", "q: text"),
    "no-real": ("e: text", "f: text"),
    "no-tensor": ("out: none", "x: no tensor", "z: text"),
    "no-tensor-but-none": ("y: none",),
    "not-on-cuda-but-cpu": ("x: on the CPU",),
    "not-finite": ("r: a quotient that is not finite",),
    "null-address": ("q: null",),
    "offset": ("o: before the beginning", "o: beyond the end"),
    "other-device": ("x: on another device",),
    "out-count": ("out: number",),
    "rank": ("x: rank", "z: rank"),
    "real-range": ("e: zero", "f: range"),
    "size": ("w: more than any memory",),
    "smem-size": ("h: more than a number",),
    "stream-device": ("stream: of another device",),
    "symbol": ("g: negative", "k: greatest", "k: least", "k: multiple"),
    "unequal": ("out: shape", "x: another extent", "y: stride", "z: extent"),
    "unprepared": ("state: captured unprepared",),
    "value": ("v: another",),
    "wide-block": ("c: too many threads",),
    "window-in-capture": ("state: captured with a window on its stream",),
    "window-outside": ("k: a window beyond its memory",),
}
"""The mistakes of `twins.mistakes` that a row refuses."""

NO_ROW = {"device: text", "stream: text", "y: a map's rule"}
"""What `trunnion.arguments` reads before any launcher, and the rules of maps: tables of their own."""


def tensor(*shape, **said):
    return TensorSpec(dtype="float32", shape=shape, strides=(1,) * len(shape), **said)


def made(*params, **launch):
    """Return a program of parameters that one launch takes, with a scalar that gives ``n`` its value, if one does."""
    p = ProgramBuilder("p", DeviceCode("cuda", "//"))
    args = [param(p) for param in params]
    p.launch("k", [one for one in args if one is not None], **{"grid": 1, "block": 32} | launch)
    return p.build()


def x(**said):
    return lambda p: p.input("x", "float32", (N,), **said)


def y(*shape):
    return lambda p: p.output("y", "float32", shape)


def scalar(kind, symbol=None):
    return lambda p: p.scalar("s", kind, symbol=symbol)


def pointer(p):
    return p.pointer("q")


def view(p):
    return p.input("x", "int8", (N,), strides=(Symbol("t"),)).view()


def tile(p):
    return p.input("x", "float16", (16, 16), nullable=True).tiled((8, 16))


def moved_tile(p):
    p.scalar("s", "int64", symbol=N)
    return p.input("x", "float16", (16, 16)).tiled((8, 16), element_offset=N * 8)


HALVES = TensorSpec(dtype="float16", shape=(16, 16), strides=(16, 1))
BYTES = TensorSpec(dtype="int8", shape=(2**31,), strides=(0,))

CALLS = {
    "absent": (made(tile), CallSpec(args=(None,), device=0)),
    "cluster-extent": (made(scalar("int32", N), grid=N, cluster=N), CallSpec(args=(17,), device=0)),
    "foreign-number": (made(scalar("int32")), CallSpec(args=(RaiserSpec(),), device=0)),
    "map-outside": (made(moved_tile), CallSpec(args=(1, HALVES))),
    "no-address": (made(pointer), CallSpec(args=(None,), device=0)),
    "no-device": (made(scalar("int32")), CallSpec(args=(3,))),
    "output-device": (
        made(x(), y(N)),
        CallSpec(args=(tensor(4),), out=(tensor(4, device=1),)),
    ),
    "overlap": (
        made(x(), y(N), lambda p: p.output("z", "float32", (N,))),
        CallSpec(args=(tensor(4),), out=(tensor(4, shared=True), tensor(4, shared=True, offset=2))),
    ),
    "shift": (made(scalar("int64", N), grid=1 << N), CallSpec(args=(64,), device=0)),
    "tensor-for-address": (made(pointer), CallSpec(args=(tensor(1),), device=0)),
    "tensor-for-boolean": (made(scalar("bool")), CallSpec(args=(tensor(1),), device=0)),
    "tensor-for-integer": (made(scalar("int32")), CallSpec(args=(tensor(1),), device=0)),
    "tensor-for-real": (made(scalar("float32")), CallSpec(args=(tensor(1),), device=0)),
    "unbound": (made(x(nullable=True), grid=N), CallSpec(args=(None,), device=0)),
    "unfit": (made(scalar("int64", N), grid=N * N), CallSpec(args=(2**62,), device=0)),
    "view": (made(view), CallSpec(args=(BYTES,))),
    "wide-cluster": (made(scalar("int32", N), grid=(N, N), cluster=(N, N)), CallSpec(args=(5,), device=0)),
}
"""A program and a wrong call of it."""


def nested():
    with warnings.catch_warnings(action="ignore", category=UserWarning):  # it is a prototype, says torch
        return torch.nested.nested_tensor([torch.zeros(2), torch.zeros(3)])


GIVEN = {
    "no-memory": (made(x()), lambda: torch.zeros(4).to_sparse()),
    "scattered-buffer": (made(lambda p: p.struct("u", 8, 8)), lambda: memoryview(bytes(16))[::2]),
}
"""A program, and a wrong argument that nobody describes."""

LACKING = {
    "attribute-capability": {"arch": "sm_80"},
    "attribute-version": {"driver_version": 12000},
}
"""What a device or a driver is, on which a launch with every attribute is prepared."""

ON_CPU = {
    "not-on-cpu": {"args": ("meta",)},
    "not-on-cpu-but-cuda": {"args": (tensor(4),)},
    "output-on-cpu": {"args": (tensor(4, device=None),), "out": (tensor(4),)},
    "stream-on-cpu": {"args": (tensor(4, device=None),), "stream": 5},
}
"""Calls of a program on the CPU, where one backend launches."""

ALONE = ("close-within", "unreadable")
"""Rows that have tests of their own below."""

HANDED = "core/tests/codegen/cpp/test_handed_image.py"
FOREIGN = "plugins/tvm_ffi/tests/test_refusal_rows.py"
IN_JAX = "tests/other_tools/test_jax.py"
IN_A_TRACE = "core/tests/operators/test_fake.py"
HOSTILE = "core/tests/codegen/cpp/stubbed/test_hostile_calls.py"

ELSEWHERE = {
    # Two launchers say these; the simulator has no such tensor or device, or a process of its own is forked.
    "fact": "tests/differential/test_facts.py",
    "forked": "core/tests/test_forks.py",
    "null-tensor": "core/tests/launcher/test_torch_tensors.py",
    "storage": "core/tests/launcher/test_torch_tensors.py",
    "not-on-cuda": "core/tests/operators/test_fake.py",
    "old-driver": "tests/differential/test_refusals.py",
    # C++ launchers alone say these: to others than trunnion, of what is not there, or of what no framework makes.
    "empty-image": HANDED,
    "image-names": HANDED,
    "kernel-names": HANDED,
    "long-rank": HOSTILE,
    "loading-elsewhere": "core/tests/codegen/cpp/test_life.py",
    "loading-nested": "core/tests/test_first_load.py",
    "no-allocator": HOSTILE,
    "no-driver": "plugins/tvm_ffi/tests/test_exported_module.py",
    "no-image": HANDED,
    "not-loaded": "core/tests/codegen/cpp/test_windows_alone.py",
    "other-stream": "core/tests/codegen/cpp/test_neighbours.py",
    "other-stream-for-outputs": "core/tests/codegen/cpp/test_neighbours.py",
    "second-image": HANDED,
    "word": HOSTILE,
    # Modules of others, traces and JAX.
    "closed-module": FOREIGN,
    "filled-elsewhere": FOREIGN,
    "forked-module": "plugins/tvm_ffi/tests/test_streams.py",
    "narrowed-by-jax": IN_JAX,
    "no-place": FOREIGN,
    "other-place": FOREIGN,
    "out-is-argument": FOREIGN,
    "output-place": IN_A_TRACE,
    "own-outputs": FOREIGN,
    "stream-context": "tests/differential/test_contexts.py",
    "place-differs": FOREIGN,
    "several-streams": "plugins/tvm_ffi/tests/test_streams.py",
    "stream-of-host": FOREIGN,
    "traced-number": IN_JAX,
    "unexportable": FOREIGN,
    "unknown-stream": FOREIGN,
    "unwritable": FOREIGN,
    "word-in-jax": IN_JAX,
}
"""Where else a row is provoked."""

UNPROVOKED = {
    "no-bound-memory": "an allocation of the launcher's own fails, which no test makes fail",
    "no-own-memory": "an allocation of the launcher's own fails, which no test makes fail",
    "no-scratch": "the system has no memory for a block's scratch, which no test makes fail",
    "other-cpu": "the tests' CPU runs what is compiled for it",
}
"""Rows that no wrong call here provokes, and why; what C++ says of each is compared in `core/tests/codegen/cpp`."""


def told(loaded, *args, **words):
    return told_by(lambda: loaded.call(args, **words))


def told_by(call):
    with pytest.raises(TrunnionError) as caught:
        call()
    error = caught.value
    return type(error), str(error), vars(error), notes_of(error)


def assert_alike(row, said):
    assert len(said) > 1
    assert {one[2].get("refusal") for one in said} == {row}, said
    assert all(one == said[0] for one in said), said
    assert said[0][0] is REFUSALS[row].error


def test_every_row_is_provoked_or_says_why_not():
    places = (MISTAKES, CALLS, GIVEN, LACKING, ON_CPU, ALONE, ELSEWHERE, UNPROVOKED)
    assert sorted(row for place in places for row in place) == sorted(REFUSALS)


@pytest.mark.parametrize("row", ELSEWHERE)
def test_where_else_a_row_is_provoked_there_are_tests(row):
    assert "def test_" in (ROOT / ELSEWHERE[row]).read_text("utf-8")


def test_every_mistake_is_refused_by_its_row(with_sample, on_cpu):
    rows = {mistake: row for row, mistakes in MISTAKES.items() for mistake in mistakes}
    with staged((*with_sample.harnesses, on_cpu), NAMES) as stages:
        for variant in CUDA:
            stage = stages[variant]
            for mistake in stage.mistakes:
                if mistake.slot == "driver":  # of which the driver says what is wrong
                    continue
                (way, *_) = stage.ways((mistake,))
                found = stage.told((mistake,), way)[2].get("refusal")
                assert found == rows.get(str(mistake)), mistake
                assert found is not None or str(mistake) in NO_ROW


@pytest.mark.parametrize("row", CALLS)
def test_a_wrong_call_is_refused_by_the_row(every_backend, row):
    program, call = CALLS[row]
    with every_backend.loaded(program) as pair:
        first = pair.loaded[0][0]
        args = first.arguments(call.args)
        out = None if call.out is None else first.arguments(call.out)
        said = [told(loaded, *args, out=out, device=call.device) for _, loaded in pair.loaded]
    assert_alike(row, said)


@pytest.mark.parametrize("device", [9, -1, 2**31 - 1])
@pytest.mark.parametrize(("param", "args"), [(scalar("int32"), (3,)), (y(8), ())], ids=["number", "output"])
def test_a_device_that_is_not_there_is_refused_by_the_row(every_backend, param, args, device):
    """Before anything is allocated there, of which whoever allocates would say it in words of its own."""
    program = made(param)
    for ask in (
        lambda loaded: told(loaded, *args, device=device),
        lambda loaded: told(loaded, *args, device=device, stream=5),
        lambda loaded: told_by(lambda: loaded.bind(args, device=device)),
        lambda loaded: told_by(lambda: loaded.preload(device)),
    ):
        with every_backend.loaded(program) as pair:
            said = [ask(loaded) for _, loaded in pair.loaded]
            for _, loaded in pair.loaded:
                loaded.preload(0)
            said += [ask(loaded) for _, loaded in pair.loaded]
        assert_alike("integer-range", said)
        assert said[0][2]["argument"] == "device"


@pytest.mark.parametrize("row", GIVEN)
def test_a_wrong_argument_is_refused_by_the_row(every_backend, row):
    program, given = GIVEN[row]
    with every_backend.loaded(program) as pair:
        value = given()
        said = [told(loaded, value, device=0) for _, loaded in pair.loaded]
    assert_alike(row, said)


@pytest.mark.parametrize("row", LACKING)
def test_a_device_that_lacks_an_attribute_is_refused_by_the_row(every_backend, simulator, row):
    with every_backend.loaded(made(grid=4, cluster=(2, 1), preferred_cluster=(4, 1))) as pair:
        said = []
        for _, loaded in pair.loaded:
            with simulator.configured(**LACKING[row]), pytest.raises(TrunnionError) as caught:
                loaded.preload(1)
            error = caught.value
            said.append((type(error), str(error), vars(error), notes_of(error)))
    assert_alike(row, said)


@pytest.mark.parametrize(
    ("row", "blocks", "arch"),
    [
        ("cluster", 5, "sm_90a"),
        ("cluster-extent", 0, "sm_90a"),
        ("cluster-extent", 20, "sm_90a"),
        ("attribute-capability", 2, "sm_80"),
        ("cluster-extent", 20, "sm_80"),
    ],
)
def test_a_cluster_that_a_call_decides_is_refused_by_the_row(every_backend, simulator, row, blocks, arch):
    """What a constant cluster is refused for when it is made, before anything that a device lacks."""
    program = made(scalar("int32", N), grid=20, cluster=N, pdl=ge(N, 3))
    if row == "cluster":
        program = made(scalar("int32", N), grid=(20, 7), cluster=(1, N))
    with every_backend.loaded(program) as pair:
        said = []
        for _, loaded in pair.loaded:
            with simulator.configured(arch=arch):
                said.append(told(loaded, blocks, device=1))
    assert_alike(row, said)


def test_a_program_is_not_closed_within_its_launch(every_backend, simulator):
    said = []
    with every_backend.loaded(made(scalar("int32"))) as pair:
        for _, loaded in pair.loaded:

            def body(_, loaded=loaded):
                with pytest.raises(TrunnionError) as caught:
                    loaded.close()
                error = caught.value
                said.append((type(error), str(error), vars(error), notes_of(error)))

            simulator.register_body(kernel_symbol(0), body)
            loaded.call((3,), device=0)
    assert_alike("close-within", said)


def test_a_tensor_that_does_not_say_what_it_is_is_refused_by_the_row(every_backend):
    """What torch says of itself depends on what it is asked first: that is not compared."""
    with every_backend.loaded(made(x())) as pair:
        for _, loaded in pair.loaded:
            kind, _, said, _ = told(loaded, nested(), device=0)
            assert (kind, said["argument"], said["refusal"]) == (ArgumentTypeError, "x", "unreadable")


@pytest.mark.parametrize("row", ON_CPU)
def test_a_wrong_call_on_the_cpu_is_refused_by_the_row(on_cpu, twins, row):
    words = dict(ON_CPU[row])
    with on_cpu.loaded(made(x(), y(N))) as loaded:
        for word in ("args", "out"):
            given = words.get(word, ())
            words[word] = [
                torch.empty(4, device=one) if one == "meta" else twins.harnesses[0].arguments((one,))[0]
                for one in given
            ] or None
        assert told(loaded, *words.pop("args"), **words)[2]["refusal"] == row
