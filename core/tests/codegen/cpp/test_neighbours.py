"""Launchers that one process holds at once: each shows its exports alone, and none knows of another."""

from __future__ import annotations

import ctypes
import subprocess

import pytest
import torch
import tvm_ffi

from trunnion.model.builder import ProgramBuilder
from trunnion.model.code import DeviceCode
from trunnion.model.expr import Symbol
from trunnion.model.tensormap import TiledTensorMap
from trunnion.model.window import AccessPolicyWindow
from trunnion.sim.trace import Launched, LibraryLoaded, LibraryUnloaded

pytestmark = pytest.mark.tvm_ffi_abi

EXPORTED = "__tvm_ffi_"


def small():
    builder = ProgramBuilder("small", DeviceCode("cuda", "//"))
    n = Symbol("n", max=1000)
    builder.launch("k", (builder.input("a", "float32", (n,)), builder.scalar("s", "int32")), 1, 1)
    return builder.build()


def large():
    """Return a program that needs every part of what launchers share."""
    builder = ProgramBuilder("large", DeviceCode("cuda", "//"))
    n = Symbol("n")
    a = builder.input("a", "float32", (n, 64), nullable=True)
    out = builder.output("out", "float32", (n, 64), fill=1.5)
    scratch = builder.workspace("scratch", "float32", (n,), zeroed=True)
    numbers = [builder.scalar(f"s{kind}", kind) for kind in ("int8", "uint64", "float16")]
    places = [builder.pointer("p"), builder.struct("u", 24, 8)]
    builder.launch(
        "k", (TiledTensorMap(a, (8, 16)), out, scratch, *numbers, *places), n, 32, cooperative=True
    )
    builder.launch("l", (a,), n, 1, window=AccessPolicyWindow(a, policy="stream"))
    return builder.build()


def listed(path, *options):
    """Return what nm lists of a library: the letter of each dynamic symbol, and its name."""
    said = subprocess.run(["nm", "-D", *options, path], capture_output=True, text=True, check=True).stdout
    return [line.split()[-2:] for line in said.splitlines()]


@pytest.fixture
def library(built, tmp_path):
    """Write a program's launcher to a file of its own."""

    def write(program, name):
        path = tmp_path / name
        path.write_bytes(built(program))
        return path

    return write


@pytest.mark.parametrize("program", [small, large])
def test_it_shows_its_exports_and_asks_nothing_of_the_driver_by_name(library, program) -> None:
    path = library(program(), "launcher.so")
    shown = listed(path, "--defined-only")
    assert {name for _, name in shown} >= {f"{EXPORTED}{name}" for name in ("main", "main_out", "close")}
    # Neither a name that others could find in its place, nor a unique one (u), which all libraries of a process share.
    assert {(letter, name.startswith(EXPORTED)) for letter, name in shown} == {("T", True)}
    missing = {name for _, name in listed(path, "--undefined-only")}
    assert {"TVMFFIErrorSetRaised", "dlopen"} <= {name.partition("@")[0] for name in missing}
    assert not [name for name in missing if name.startswith(("cu", "_Z")) or "CUDA" in name]


def test_a_program_has_its_own_exports_although_all_can_see_those_of_others(simulator, library) -> None:
    paths = [library(program, f"{index}.so") for index, program in enumerate((small(), large()))]
    held = [ctypes.CDLL(str(path), ctypes.RTLD_GLOBAL) for path in paths]
    few, many = (tvm_ffi.load_module(path)["open"]() for path in paths)
    assert len(held) == 2
    assert few(b"set_hook") is None
    assert many(b"set_hook") is not None


def test_neighbours_share_nothing_although_all_can_see_their_names(simulator, library) -> None:
    programs = [small(), small(), large()]
    paths = [library(program, f"{index}.so") for index, program in enumerate(programs)]
    held = [ctypes.CDLL(str(path), ctypes.RTLD_GLOBAL) for path in paths]
    one, other, third = (tvm_ffi.load_module(path) for path in paths)
    tensor = simulator.tensor(torch.ones(4))
    wide = simulator.tensor(torch.ones(4, 64))
    with simulator.torch_mode():
        for number in (1, 2):
            one["main"](tensor, number)
            other["main"](tensor, -number)
            third["main"](wide, 5, 6, 0.5, 4096, bytes(24))
        one["close"]()
        with pytest.raises(RuntimeError, match="closed"):
            one["main"](tensor, 3)
        with pytest.raises(ValueError, match="extent"):
            other["main"](simulator.tensor(torch.ones(1001)), 3)
        other["main"](tensor, -3)
        other["close"]()
        third["close"]()
    assert len(held) == 3
    loaded = [event.library for event in simulator.trace if isinstance(event, LibraryLoaded)]
    assert len(set(loaded)) == 3, "each has an image of its own"
    assert [event.library for event in simulator.trace if isinstance(event, LibraryUnloaded)] == loaded
    numbers = [
        (loaded.index(event.library), int.from_bytes(event.parameters[1], "little", signed=True))
        for event in simulator.trace
        if isinstance(event, Launched) and len(event.parameters) == 2
    ]
    assert numbers == [(0, 1), (1, -1), (0, 2), (1, -2), (1, -3)]
