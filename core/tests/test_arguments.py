"""What callers pass for ``device=`` and for ``stream=``."""

from __future__ import annotations

from enum import IntEnum

import numpy as np
import pytest
import torch

import trunnion
from trunnion.arguments import device_ordinal, stream_handle
from trunnion.errors import ArgumentError, ArgumentTypeError, ArgumentValueError
from trunnion.model.builder import ProgramBuilder
from trunnion.model.code import DeviceCode

KERNEL = 'extern "C" __global__ void k(int number) {}'
BEYOND = (2**31, 2**32, 2**63 - 1, 2**63, 2**70, -(2**31) - 1, -(2**70))


@pytest.mark.parametrize(
    ("device", "ordinal"),
    [
        (None, None),
        (0, 0),
        (np.int64(1), 1),
        (np.array(2), 2),
        (IntEnum("Card", {"SECOND": 1}).SECOND, 1),
        (7, 7),
        (-1, -1),
        ("cuda:3", 3),
        (torch.device("cuda:2"), 2),
    ],
)
def test_an_ordinal_or_what_names_a_device(device, ordinal):
    assert device_ordinal(device) == ordinal


@pytest.mark.parametrize("device", [*BEYOND, pytest.param(1 << 100_000, id="long")])
def test_an_integer_that_no_ordinal_could_be(device):
    with pytest.raises(
        ArgumentValueError, match=r"argument 'device': got .*, expected an integer, 0 to 2147483647"
    ):
        device_ordinal(device)


@pytest.mark.parametrize("text", ["01", "00", " 1", "1 ", "+1", "-0", "1_0", "\u0661", "0x1", "1.0"])
def test_a_number_that_torch_does_not_read_is_refused(text: str) -> None:
    with pytest.raises(RuntimeError):
        torch.device(f"cuda:{text}")
    with pytest.raises(ArgumentTypeError, match="a device such as 'cuda' or 'cuda:0'"):
        device_ordinal(f"cuda:{text}")


@pytest.mark.parametrize(
    "device",
    [
        True,
        np.True_,
        np.float64(1),
        torch.tensor(1),
        np.array([1, 2]),
        1.0,
        "cuda:",
        "cpu",
        "cpu:0",
        "cuda:-1",
        b"cuda:0",
        b"cuda",
    ],
)
def test_anything_else(device):
    with pytest.raises(
        ArgumentTypeError, match="expected None, an ordinal, or a device such as 'cuda' or 'cuda:0'"
    ):
        device_ordinal(device)


def test_a_number_whose_own_method_raises_says_what():
    class Card:
        def __index__(self):
            raise OSError

    with pytest.raises(
        ArgumentTypeError, match="'device': got Card, which raises OSError, expected an ordinal"
    ):
        device_ordinal(Card())


class Stream:
    """What says of itself which stream it is, whatever that comes to."""

    def __init__(self, answer):
        self.answer = answer

    def __cuda_stream__(self):
        return self.answer()


def test_a_stream_whose_own_method_raises_says_what():
    with pytest.raises(
        ArgumentTypeError, match="got Stream, which raises ZeroDivisionError, expected"
    ) as caught:
        stream_handle(Stream(lambda: 1 // 0))
    assert isinstance(caught.value.__cause__, ZeroDivisionError)


def test_a_stream_of_a_later_protocol_is_told_which_one_is_known():
    with pytest.raises(ArgumentTypeError, match=r"__cuda_stream__\(\) gives \(0, handle\)"):
        stream_handle(Stream(lambda: (1, 7)))


@pytest.fixture(scope="module", params=["nvrtc", "tvm_ffi"])
def program(request):
    builder = ProgramBuilder("numbers", DeviceCode("cuda", KERNEL))
    builder.launch("k", (builder.scalar("number", "int32"),), 1, 1)
    with trunnion.compile(builder.build(), request.param, target="sm_90a") as made:
        yield made


@pytest.mark.usefixtures("simulator")
@pytest.mark.parametrize("device", BEYOND)
def test_every_way_in_tells_such_an_integer_as_it_was_given(program, device):
    ways = (
        lambda: program(1, device=device),
        lambda: program.bind(1, device=device),
        lambda: program.preload(device),
        lambda: program.entry(1, device=device),
    )
    for way in ways:
        with pytest.raises(
            ArgumentValueError, match=f"argument 'device': got {device}, expected an integer, 0 to "
        ):
            way()


@pytest.mark.usefixtures("simulator")
@pytest.mark.parametrize("kind", ["cuda", torch.device("cuda")])
def test_a_kind_alone_is_its_current_device(program, kind):
    for way in (program, program.entry):
        way(1, device=kind)
    assert program.bind(1, device=kind).device == device_ordinal(kind) == 0


def test_the_current_device_is_the_one_that_torch_tells(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_initialized", lambda: True)
    monkeypatch.setattr(torch.cuda, "current_device", lambda: 3)
    assert device_ordinal("cuda") == 3
    assert device_ordinal(torch.device("cuda")) == 3


@pytest.mark.usefixtures("simulator")
def test_a_number_of_another_class_is_an_ordinal(program):
    """A loop over a range of NumPy's gives such."""
    for way in (program, program.entry, program.bind):
        way(1, device=np.int64(0))
        with pytest.raises(ArgumentValueError, match="got 99, expected an integer, 0 to "):
            way(1, device=np.int64(99))
        with pytest.raises(ArgumentTypeError, match="'device': got bool"):
            way(1, device=np.True_)
    program.preload(np.int64(0))


@pytest.mark.usefixtures("simulator")
def test_preload_takes_what_a_call_takes(program):
    program.preload("cuda:0")
    program.preload("cuda")
    with pytest.raises(ArgumentValueError, match="got 99, expected an integer, 0 to "):
        program.preload("cuda:99")
    program.preload(None)  # the thread's current one, as a call has it
    for wrong in (True, "cpu", 1.5):
        with pytest.raises(
            ArgumentError,
            match=r"argument 'device': got (bool 'True'|'cpu'|float '1.5'), expected an ordinal",
        ):
            program.preload(wrong)
