"""One bound launch of a C++ launcher from two threads at once, on the simulated driver."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

import pytest
import torch

from trunnion.model.builder import ProgramBuilder
from trunnion.model.program import DeviceCode
from trunnion.sim.trace import Launched, MemorySet

if TYPE_CHECKING:
    from collections.abc import Callable

    from trunnion.model.program import KernelProgram

pytestmark = pytest.mark.tvm_ffi_abi


def program(*, zeroed: bool) -> KernelProgram:
    p = ProgramBuilder("p", DeviceCode("cuda", "//"))
    p.launch("k", (p.input("x", "float32", (4,)), p.workspace("w", "float32", (4,), zeroed=zeroed)), 1, 32)
    return p.build()


def meanwhile(call: Callable[[], Any]) -> Callable[..., Any]:
    """Make `call` in another thread, to its end, before the first launch goes on."""
    first = threading.Event()

    def intercept(proceed: Callable[..., Any], *arguments: Any) -> Any:
        if not first.is_set():
            first.set()
            other = threading.Thread(target=call)
            other.start()
            other.join(30)
            assert not other.is_alive()
        return proceed(*arguments)

    return intercept


@pytest.mark.parametrize(
    ("zeroed", "steps"), [(False, "Launched Launched"), (True, "MemorySet MemorySet Launched Launched")]
)
def test_steps_of_two_calls_are_whole_but_may_alternate(
    simulator: Any, launcher: Any, zeroed: bool, steps: str
) -> None:
    side = simulator.new_stream(0)
    bound = launcher(program(zeroed=zeroed)).bind((torch.zeros(4, device="cuda:0"),), stream=side)
    bound()
    once = [event for event in simulator.trace if isinstance(event, (Launched, MemorySet))]
    simulator.clear_trace()
    with simulator.intercept("cuLaunchKernelEx", meanwhile(bound)):
        bound()
    events = [event for event in simulator.trace if isinstance(event, (Launched, MemorySet))]
    assert " ".join(type(event).__name__ for event in events) == steps
    assert {event.stream for event in events} == {side}
    parameters = [event.parameters for event in (*once, *events) if isinstance(event, Launched)]
    assert parameters[1:] == parameters[:1] * 2
