"""The interpreter of host functions, against the C code that TileLang itself makes of them, compiled and called.

What that code calls are functions of ours, under the names of the kernels and of the runtime's own functions: nothing
is launched, and no driver is there. Only what allocates device memory for itself is left out, since that needs one.
"""

from __future__ import annotations

import ctypes

import pytest
import torch
import tvm_ffi
from tilelang.backend.module import create_backend_context
from tilelang.backend.target import determine_target
from tilelang.engine.lower import host_codegen
from tilelang_corpus.corpus import CORPUS, TARGET
from tilelang_host.bench import kernels_of, on_device
from tilelang_host.interpreter import packed_calls
from tilelang_host.mistakes import mistakes
from tilelang_host.values import HostAssertion, Slot
from tvm_ffi.registry import remove_global_func

SEEDS = range(4)
RUNTIME = (
    "__tvm_set_device",
    "__tvm_tensormap_create_tiled",
    "__tvm_tensormap_create_im2col",
    "__tvm_cuda_stream_set_access_policy_window",
    "__tvm_cuda_stream_reset_access_policy_window",
)
NEEDS_A_DEVICE = {"split_k", "workspaces", "workspace_if_large"}
DOES_NOT_COMPILE = {"float_scalars": "half"}
"""TileLang's host code for a scalar of float16 is no C, so that its own launcher never takes one."""


@pytest.fixture
def recorded():
    """Return what makes functions of these names, and a list of their calls; all is undone at the end."""
    calls, before = [], {}

    def record(names):
        for name in names:
            before[name] = tvm_ffi.get_global_func(name, allow_missing=True)
            tvm_ffi.register_global_func(
                name, lambda *args, name=name: calls.append((name, *args)), override=True
            )
        return calls

    yield record
    for name, function in before.items():
        remove_global_func(name)
        if function is not None:
            tvm_ffi.register_global_func(name, function)


def built(artifact, folder):
    """Return TileLang's own host function, compiled."""
    (host,) = artifact.host_mod.functions.values()
    target = determine_target({"kind": "cuda", "arch": TARGET}, return_object=True)
    with target:
        module = host_codegen(artifact.host_mod, create_backend_context(target, None, "auto"))
    module.export_library(str(folder / "host.so"), cc="gcc")
    return tvm_ffi.load_module(str(folder / "host.so"), keep_module_alive=False)[
        str(host.attrs["global_symbol"]).removeprefix("__tvm_ffi_")
    ]


def whole(entry, given, harness, seed):
    """Return a call's arguments on the simulated device, with outputs as the call with this seed has them."""
    outputs = [torch.zeros_like(x) for x in entry.reference(*entry.arguments(seed))[: len(entry.out_idx)]]
    count = len(given) + len(outputs)
    places = dict(zip((index % count for index in entry.out_idx), outputs, strict=True))
    rest = iter(given)
    every = [places[index] if index in places else next(rest) for index in range(count)]
    return [on_device(harness, value, 0) for value in every]


def plain(call, slots):
    """Return a call with numbers for pointers, and for each descriptor's room its place among all."""
    operands = (value.value if isinstance(value, ctypes.c_void_p) else value for value in call[1:])
    if call[0].startswith("__tvm_tensormap"):
        first = next(operands)
        slots.setdefault(first, f"map {len(slots)}")
        operands = (first, *operands)
    return (
        call[0],
        *(slots.get(value, value) if isinstance(value, int | Slot) else value for value in operands),
    )


def outcome(function, error):
    """Return the calls that a function makes, or the text with which it ends."""
    try:
        calls = function()
    except error as raised:
        return str(raised)
    slots = {}
    return [plain(call, slots) for call in calls]


def calls_of(entry):
    """Yield arguments of good calls, and of calls with one mistake, each with its seed."""
    for seed in SEEDS:
        yield entry.arguments(seed), seed
    good = entry.arguments(1)
    for place, value in enumerate(good):
        for wrong in mistakes(value):
            if not isinstance(wrong, str) and not (isinstance(wrong, int) and abs(wrong) >= 2**63):
                yield (*good[:place], wrong, *good[place + 1 :]), 1


@pytest.mark.parametrize(
    "name", [name for name in CORPUS if name not in NEEDS_A_DEVICE | DOES_NOT_COMPILE.keys()]
)
def test_the_compiled_host_function_says_the_same(name, lowered, recorded, harnesses, tmp_path):
    """The same calls with the same operands, or the same assertion."""
    entry, artifact = CORPUS[name], lowered(name)
    calls = recorded([*RUNTIME, *kernels_of(artifact)])
    compiled = built(artifact, tmp_path)

    def called(arguments):
        calls.clear()
        compiled(*arguments)
        return list(calls)

    texts = set()
    for given, seed in calls_of(entry):
        arguments = whole(entry, given, harnesses[0], seed)
        passed = [
            value.data_ptr() if index in entry.pointers and isinstance(value, torch.Tensor) else value
            for index, value in enumerate(arguments)
        ]
        theirs = outcome(lambda now=passed: called(now), RuntimeError)
        ours = outcome(lambda now=passed: packed_calls(artifact, now), HostAssertion)
        assert ours == theirs or (isinstance(theirs, str) and ours in theirs)
        texts.add(ours if isinstance(ours, str) else "")
    assert "" in texts
    assert len(texts) > 2


@pytest.mark.parametrize("name", DOES_NOT_COMPILE)
def test_what_tilelang_cannot_compile(name, lowered, tmp_path):
    with pytest.raises(RuntimeError, match=DOES_NOT_COMPILE[name]):
        built(lowered(name), tmp_path)
