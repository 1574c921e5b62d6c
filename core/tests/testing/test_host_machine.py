"""The CPU as laws see it: what a call is told of, in which order, and what cannot be asked."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from trunnion import DeviceCode, ProgramBuilder
from trunnion.errors import LifecycleError, ProgramError
from trunnion.registry import default_registry
from trunnion.sim.trace import Allocated, Launched
from trunnion.testing import host_machine
from trunnion.testing.harness import Harness
from trunnion.testing.host_machine import HostMachine
from trunnion.testing.laws import catalogue
from trunnion.testing.machine import KINDS, MemorySeen
from trunnion.testing.observed import observe
from trunnion.testing.symbols import kernel_symbol


@pytest.fixture(scope="module")
def harness():
    spec = next(spec for spec in default_registry().backends() if "cpu" in spec.targets)
    return Harness(spec=spec, machine=HostMachine())


def program(grid=(3, 2)):
    p = ProgramBuilder("p", DeviceCode("cuda", "no text is compiled"))
    x, s = p.input("x", "float32", (4,)), p.scalar("s", "int16")
    y = p.output("y", "int32", (5,), fill=3)
    w = p.workspace("w", "uint8", (9,), zeroed=True)
    p.launch("any name; #", args=(x, s, y, w), grid=grid, block=7, dynamic_smem_bytes=48)
    p.launch("k", args=(w,), grid=1, block=1)
    return p.build()


def seen(events, address):
    pieces = (one for one in events if isinstance(one, MemorySeen) and one.address <= address)
    return next(one.data[address - one.address :] for one in pieces if address < one.address + len(one.data))


def test_it_is_the_machine_of_a_tier():
    machine = HostMachine()
    assert KINDS[machine.tier] == machine.kind == "cpu"
    assert (machine.alike, machine.attribute(0, 1), machine.runtime.only_device) == ((0,), 0, 0)
    assert machine.current() == ()


def test_a_call_is_told_in_order(harness):
    x = harness.storage(16, 0).view(torch.float32)
    with harness.loaded(program()) as loaded:
        got = observe(harness, lambda: loaded.call([x, -2]))
    kinds = [type(event) for event in got.events if not isinstance(event, MemorySeen)]
    assert kinds == [Allocated, Allocated, Launched, Launched]
    first, second = got.launches
    assert (first.kernel, second.kernel) == (kernel_symbol(0), kernel_symbol(1))
    assert (first.grid, first.block, first.dynamic_smem_bytes) == ((3, 2, 1), (7, 1, 1), 48)
    addresses = [int.from_bytes(one, "little") for one in first.parameters]
    assert addresses[:3] == [x.data_ptr(), 2**16 - 2, got.result.data_ptr()]
    assert second.parameters == first.parameters[3:]
    before = got.events[: got.events.index(first)]
    assert seen(before, addresses[2])[:20] == bytes((3, 0, 0, 0)) * 5
    assert seen(before, addresses[3])[:9] == bytes(9)
    after = got.events[got.events.index(second) :]
    assert seen(after, addresses[2])[:20] == bytes((3, 0, 0, 0)) * 5


def test_what_was_set_in_an_earlier_launch_is_seen_only_if_it_is_set_again(harness):
    x = harness.storage(16, 0).view(torch.float32)
    with harness.loaded(program()) as loaded:
        bound = loaded.bind([x, 1])
        harness.machine.call(bound)
        harness.machine.clear_trace()
        assert bound is not None
        assert all(set(one.data) == {0xA5} for one in harness.machine.trace if isinstance(one, MemorySeen))


def test_two_programs_are_told_apart(harness):
    one, other = program(), program(grid=1)
    with harness.loaded(one) as first, harness.loaded(other) as second:
        x = harness.storage(16, 0).view(torch.float32)
        assert observe(harness, lambda: first.call([x, 1])).launches[0].grid == (3, 2, 1)
        assert observe(harness, lambda: second.call([x, 1])).launches[0].grid == (1, 1, 1)


@pytest.mark.parametrize(
    "ask",
    [
        lambda m: m.set_aside(0, 1),
        lambda m: m.new_stream(0),
        lambda m: m.stream(0, 0),
        lambda m: m.capture(0, 0),
    ],
)
def test_it_has_no_streams(ask):
    with pytest.raises(LifecycleError, match="no streams"):
        ask(HostMachine())


def test_h3_asks_no_python_of_a_kernel_and_no_option_of_a_compiler_without_it(harness, monkeypatch):
    asked, compile_probes = [], host_machine.compile_probes

    def compiled(*given, options):
        asked.append(dict(options))
        if "threads" in options:
            raise ProgramError("no such option", field="options.threads")
        return compile_probes(*given, options=options)

    def never(_self, begins):
        assert begins is None

    monkeypatch.setattr(host_machine, "compile_probes", compiled)
    log = type(harness.machine._log)
    monkeypatch.setattr(log, "begins", log.begins.setter(never))
    catalogue()["H3"].check(harness, shrink=False)
    assert asked == [{}, {}, {"threads": 3}]  # a program each for calls that differ, and for turns


def test_of_kernels_that_call_no_python_what_memory_held_is_seen_before_the_call(harness):
    apart = replace(harness, machine=harness.machine.apart(threads=3))
    x = apart.storage(16, 0).view(torch.float32)
    with apart.loaded(program()) as loaded:
        got = observe(apart, lambda: loaded.call([x, -2]))
    first, second = got.launches
    assert seen(got.events[: got.events.index(first)], x.data_ptr())[:16] == apart.contents(x)
    assert second.parameters == first.parameters[3:]
