"""Module variables of a Python launcher: found and written once for each device, copied to in the stream's order."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, Any

import pytest

from trunnion.errors import CaptureError, DriverError, LifecycleError, VariableMismatchError
from trunnion.model.builder import ProgramBuilder
from trunnion.model.code import DeviceCode
from trunnion.model.expr import symbols

if TYPE_CHECKING:
    from trunnion.model.program import KernelProgram


def filtered() -> KernelProgram:
    """Return a program with a variable of each use: initialised, copied to, and passed by its address."""
    p = ProgramBuilder("filtered", DeviceCode("cuda", "//"))
    (n,) = symbols("n")
    x, taps = p.input("x", "float32", (n,)), p.input("taps", "float32", (n,))
    gain = p.variable("gain", "float32", (2,), init=[1.0, 2.0])
    filt = p.variable("ns::filter", "float32", (4,))
    p.launch("first", (x, gain), 1, 32)
    p.copy(filt, taps)
    p.launch("second", (filt, x), n - 4, 32)
    return p.build()


def written(r: Any) -> list[tuple[Any, ...]]:
    return [entry for entry in r.facade.log if entry[0] in {"variable", "write", "copy", "launch"}]


GAIN = b"\0\0\x80\x3f\0\0\0\x40"
PREPARED = [
    ("variable", "library", "gain"),
    ("variable", "library", "ns::filter"),
    ("write", (0x7000, GAIN)),
]


def test_a_device_is_prepared_once_and_copies_come_before_the_launches_that_follow_them(
    any_rig: Any, tensor: Any
) -> None:
    r = any_rig(filtered())
    x, taps = tensor("float32", 4), tensor("float32", 4)
    r.program.call((x, taps), stream=9)
    copied = ("copy", 0x7100, taps.address, 16, 9)
    # The second launch has an empty grid: it is skipped, and what is copied before it is not.
    assert written(r) == [*PREPARED, ("launch", "first"), copied]
    assert r.facade.launched[0].parameters[1] == (0x7000).to_bytes(8, "little")
    r.facade.log.clear()
    r.program.call((x, taps), stream=9)
    assert written(r) == [("launch", "first"), copied]
    r.facade.log.clear()
    r.program.preload(1)
    assert written(r) == PREPARED


def test_a_bound_launch_copies_each_time(any_rig: Any, tensor: Any) -> None:
    r = any_rig(filtered())
    bound = r.program.bind((tensor("float32", 4), tensor("float32", 4)), stream=9)
    r.facade.log.clear()
    bound(), bound()
    assert [entry[0] for entry in written(r)] == ["launch", "copy"] * 2


def test_a_context_is_current_where_something_is_copied(any_rig: Any, tensor: Any) -> None:
    r = any_rig(filtered())
    r.program.preload(1)
    r.facade.log.clear()
    r.program.call((tensor("float32", 4, ordinal=1), tensor("float32", 4, ordinal=1)))
    names = [entry[0] for entry in r.facade.log]
    assert names.index("enter") < names.index("copy") < names.index("leave")


def test_a_tensor_of_another_size_is_refused_before_anything_is_copied(any_rig: Any, tensor: Any) -> None:
    r = any_rig(filtered())
    with pytest.raises(ValueError, match="4 elements in 'taps', as variable 'ns::filter' has"):
        r.program.call((tensor("float32", 5), tensor("float32", 5)), stream=9)
    assert written(r) == []


def test_another_size_in_the_image_is_refused_by_the_variable_s_name(any_rig: Any) -> None:
    r = any_rig(filtered())
    r.facade.variables["ns::filter"] = (0x7100, 12)
    with pytest.raises(VariableMismatchError) as caught:
        r.program.preload(1)
    assert (caught.value.variable, caught.value.declared, caught.value.actual) == (
        "ns::filter",
        "16 bytes",
        "12 bytes on device 1",
    )
    assert r.facade.count("write") == 0
    r.facade.variables["ns::filter"] = (0x7100, 16)
    r.program.preload(1)  # which was not taken for prepared


def test_what_the_driver_does_not_find_is_named(any_rig: Any) -> None:
    r = any_rig(filtered())

    def fail(_library: str, symbol: str) -> None:
        if symbol == "ns::filter":
            raise DriverError("cuLibraryGetGlobal", 500, "CUDA_ERROR_NOT_FOUND", "named symbol not found")

    r.facade.on["variable"] = fail
    with pytest.raises(DriverError, match="the variable is 'ns::filter' on device 0"):
        r.program.preload(0)


def test_what_another_context_does_not_find_is_named(any_rig: Any, tensor: Any) -> None:
    r = any_rig(filtered())
    r.program.preload(0)

    def fail(*_: object) -> None:
        raise DriverError("cuLibraryGetGlobal", 500, "CUDA_ERROR_NOT_FOUND", "named symbol not found")

    r.facade.on["address_in"] = fail
    with pytest.raises(DriverError, match="device 1 is sm_90; the variable is 'gain' on device 0"):
        r.program.call((tensor("float32", 4), tensor("float32", 4)), stream=9)


@pytest.mark.parametrize("address", [0x7000, 0x9000])
def test_a_program_that_another_thread_closed_launches_nothing_in_another_context(
    any_rig: Any, tensor: Any, address: int
) -> None:
    """What was found out about the device is gone then, the variables' addresses too; close waits for the call."""
    r = any_rig(filtered())
    r.program.preload(0)
    closing = threading.Thread(target=r.program.close)

    def close(*_: object) -> None:
        closing.start()
        while r.program._context.closed_because is None:
            time.sleep(0.001)

    r.facade.elsewhere = address
    r.facade.on["address_in"] = close
    with pytest.raises(LifecycleError, match="closed"):
        r.program.call((tensor("float32", 4), tensor("float32", 4)), stream=9)
    closing.join(60)
    assert (r.facade.count("launch"), r.facade.count("unload")) == (0, 1)


def test_a_captured_first_call_is_refused_with_nothing_written(any_rig: Any, tensor: Any) -> None:
    r = any_rig(filtered())
    r.facade.captured.add(9)
    with pytest.raises(CaptureError, match=r"preload\(0\)"):
        r.program.call((tensor("float32", 4), tensor("float32", 4)), stream=9)
    assert written(r) == []


def test_the_text_of_a_program_without_variables_says_nothing_of_them(rig: Any) -> None:
    p = ProgramBuilder("plain", DeviceCode("cuda", "//"))
    p.launch("k", (p.input("x", "float32", (8,)),), 1, 32)
    assert "ariable" not in rig(p.build()).text
