"""Launches with conditions, attributes and windows, and launches that are bound."""

from __future__ import annotations

import struct
import threading
import time
import weakref
from typing import Any

import pytest

from trunnion.contract.adapter import BoundLaunch
from trunnion.errors import (
    ArgumentError,
    ArgumentValueError,
    DriverError,
    ExprError,
    LifecycleError,
    TensorMapError,
)
from trunnion.model.builder import ProgramBuilder
from trunnion.model.expr import gt, symbols
from trunnion.model.program import DeviceCode

CODE = DeviceCode("cuda", "//")


def kernels(r: Any) -> list[str]:
    return [launch.kernel for launch in r.facade.launched]


def test_a_launch_happens_where_its_condition_holds_and_else_nothing_of_it_is_computed(
    rig: Any, tensor: Any
) -> None:
    p = ProgramBuilder("p", CODE)
    n, m = symbols("n m")
    x = p.input("x", "float32", (n, 64))
    p.scalar("m", "int32", symbol=m)
    p.launch("always", (x,), 1, 32)
    p.launch("small", (x, 100 // m), 100 // m, 32, when=gt(m, 0), dynamic_smem_bytes=100 // m)
    p.launch("large", (x.tiled((8, 64)),), 1, 32, when=gt(n, 10))
    r = rig(p.build())
    r.program.entry(tensor("float32", 5, 64), 0)
    assert kernels(r) == ["always"]
    assert r.facade.count("encode") == 0
    r.facade.launched.clear()
    r.program.entry(tensor("float32", 11, 64), 3)
    assert kernels(r) == ["always", "small", "large"]
    assert r.facade.launched[1].shape == (33, 1, 1, 32, 1, 1, 33)
    p = ProgramBuilder("p", CODE)
    p.scalar("m", "int32", symbol=m)
    p.launch("k", (), 100 // m, 32)
    unconditional = rig(p.build())
    with pytest.raises(ExprError):
        unconditional.program.call((0,), device=0)


def test_attributes_reach_the_configuration_and_the_kernel(rig: Any, tensor: Any) -> None:
    p = ProgramBuilder("p", CODE)
    (n,) = symbols("n")
    x = p.input("x", "float32", (n,))
    p.launch("k", (x,), n, 32, cluster=(16, 1, 1), cooperative=True, priority=-3, scheduling_policy="spread")
    p.launch("l", (x,), 1, 32, pdl=True, cluster=1)
    r = rig(p.build())
    r.program.entry(tensor("float32", 32))
    assert r.facade.launched[0].attributes == ((4, (16, 1, 1)), (2, (1,)), (8, (-3,)), (5, (1,)))
    assert r.facade.launched[1].attributes == ((4, (1, 1, 1)), (6, (1,)))
    set_for = [entry[1:] for entry in r.facade.log if entry[0] == "set_kernel_attribute"]
    assert set_for == [("k", 0, 14, 1)], "more than 8 blocks: the non-portable attribute"
    with pytest.raises(ArgumentValueError, match="a multiple of the cluster's 16"):
        r.program.entry(tensor("float32", 33))
    assert len(r.facade.launched) == 2


def test_a_call_whose_map_breaks_a_rule_has_filled_nothing(rig: Any, tensor: Any) -> None:
    p = ProgramBuilder("p", CODE)
    (n,) = symbols("n")
    x, y = p.input("x", "float32", (n, 64)), p.output("y", "float32", (n,), fill=0.0)
    scratch = p.workspace("scratch", "float32", (n,), zeroed=True)
    p.launch("k", (y, scratch), 1, 32)
    p.launch("l", (x.tiled((8, 64)), scratch.tiled((8,))), 1, 32)
    r = rig(p.build())
    for args in ((tensor("float32", 5, 64, address=8),), (tensor("float32", 0, 64),)):
        with pytest.raises(TensorMapError):
            r.program.entry(*args)
    assert {entry[0] for entry in r.facade.log}.isdisjoint({"fill", "launch"})
    r.program.entry(tensor("float32", 5, 64))
    steps = [entry[0] for entry in r.facade.log if entry[0] in {"encode", "fill", "launch"}]
    assert steps == ["encode", "encode", "fill", "fill", "launch", "launch"]


# Bound launches ---------------------------------------------------------------------------------------------------


def scaled(*, fill: float | None = None) -> Any:
    p = ProgramBuilder("p", CODE)
    (n,) = symbols("n")
    x = p.input("x", "float32", (n, 64))
    k = p.scalar("k", "int32")
    y = p.output("y", "float32", (n,), fill=fill)
    scratch = p.workspace("scratch", "float32", (n,))
    p.launch("k", (x.tiled((8, 32)), k, y, scratch, n), n, 32, dynamic_smem_bytes=n * 8)
    return p.build()


def test_a_bound_launch_launches_the_same_again(rig: Any, tensor: Any) -> None:
    r = rig(scaled(fill=0.0))
    x = tensor("float32", 6, 64)
    plain = r.program.call((x, 5), stream=9)
    bound = r.program.bind((x, 5), stream=9)
    assert len(r.facade.launched) == 1, "nothing is launched yet"
    first, second = bound(), bound.entry()
    assert first is second is not plain
    once, again, third = r.facade.launched
    assert (once.shape, once.stream, once.kernel) == (again.shape, again.stream, again.kernel)
    assert again == third
    assert once.parameters[0] == again.parameters[0]
    assert again.parameters[2] == struct.pack("<Q", first.address)
    assert r.facade.count("fill") == 3
    assert [stream for _, stream in r.runtime.allocated] == [9, 9, 9, 9]


def test_a_bound_launch_says_where_it_goes(rig: Any, tensor: Any) -> None:
    r = rig(scaled())
    bound = r.program.bind((tensor("float32", 6, 64, ordinal=1), 5))
    assert (bound.device, bound.stream) == (1, 101)
    assert repr(bound) == "<BoundLaunch on stream 0x65 of device 1>"
    assert repr(BoundLaunch(bound.entry, name="p")) == "<BoundLaunch of 'p' on the current stream>"


def test_a_bound_launch_keeps_its_memory(rig: Any, tensor: Any) -> None:
    r = rig(scaled())
    x = tensor("float32", 6, 64)
    bound = r.program.bind((x, 5))
    held = [weakref.ref(one) for one in (x, *(made for made, _ in r.runtime.allocated))]
    del x
    r.runtime.allocated.clear()
    r.runtime.guarded_with.clear()
    assert len(held) == 3
    assert all(one() is not None for one in held)
    del bound
    assert all(one() is None for one in held)


def test_binding_checks_what_a_call_checks(rig: Any, tensor: Any) -> None:
    r = rig(scaled())
    for args, how in (
        ((tensor("float16", 6, 64), 5), {}),
        ((tensor("float32", 6, 65), 5), {}),
        ((tensor("float32", 6, 64), 1 << 40), {}),
        ((tensor("float32", 6, 64),), {}),
        ((tensor("float32", 6, 64), 5), {"out": (tensor("float32", 7),)}),
        ((tensor("float32", 6, 64), 5), {"device": 1}),
    ):
        with pytest.raises(ArgumentError):
            r.program.bind(args, **how)
    assert r.facade.launched == []


def test_calls_between_do_not_disturb_a_bound_launch(rig: Any, tensor: Any) -> None:
    r = rig(scaled())
    x, other = tensor("float32", 6, 64), tensor("float32", 9, 64)
    bound = r.program.bind((x, 5))
    bound()
    r.program.call((other, 6), stream=3)
    r.program.bind((other, 7))()
    bound()
    assert r.facade.launched[0] == r.facade.launched[3]


def test_a_bound_launch_ends_with_its_program(rig: Any, tensor: Any) -> None:
    r = rig(scaled())
    bound = r.program.bind((tensor("float32", 6, 64), 5))
    bound()
    r.program.close()
    with pytest.raises(LifecycleError, match="closed"):
        bound()
    assert len(r.facade.launched) == 1


def test_close_waits_for_a_bound_launch_under_way(rig: Any, tensor: Any) -> None:
    r = rig(scaled())
    bound = r.program.bind((tensor("float32", 6, 64), 5))
    inside, go = threading.Event(), threading.Event()
    r.facade.on["launch"] = lambda _: (inside.set(), go.wait(60))
    caller = threading.Thread(target=bound)
    caller.start()
    inside.wait(60)
    closer = threading.Thread(target=r.program.close)
    closer.start()
    time.sleep(0.05)
    assert r.facade.count("unload") == 0
    go.set()
    closer.join(60)
    caller.join(60)
    assert [entry[0] for entry in r.facade.log][-1] == "unload"


def test_a_bound_launch_that_fails_can_be_repeated(rig: Any, tensor: Any) -> None:
    r = rig(scaled())
    bound = r.program.bind((tensor("float32", 6, 64, ordinal=1), 5))

    def refuse(*_: object) -> None:
        raise DriverError("cuAny", 1, "CUDA_ERROR_INVALID_VALUE")

    r.facade.on["launch"] = refuse
    for _ in range(3):
        with pytest.raises(DriverError):
            bound()
    r.facade.on.clear()
    bound()
    entered = [entry[0] for entry in r.facade.log if entry[0] in {"enter", "leave"}]
    assert entered.count("leave") == sum(e[0] == "enter" and e[1] == 1 for e in r.facade.log)
    r.program.close()


def test_threads_may_share_a_bound_launch(rig: Any, tensor: Any) -> None:
    r = rig(scaled())
    bound = r.program.bind((tensor("float32", 6, 64), 5))
    threads = [threading.Thread(target=lambda: [bound() for _ in range(200)]) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(r.facade.launched)) == 1
    assert len(r.facade.launched) == 800


def test_bytes_that_changed_under_the_same_object_are_delivered(rig: Any) -> None:
    p = ProgramBuilder("p", CODE)
    p.launch("k", (p.struct("u", 4, 1), p.scalar("s", "int32")), 1, 1)
    r = rig(p.build())
    data = bytearray(b"abcd")
    for value in (b"abcd", b"efgh"):
        data[:] = value
        r.program.call((data, 1), device=0)
        assert r.facade.launched[-1].parameters == (value, struct.pack("<i", 1))
