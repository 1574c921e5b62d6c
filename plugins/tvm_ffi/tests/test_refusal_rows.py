"""The rows of the table of refusals that calls of somebody else's functions say: each is provoked by a wrong call."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from trunnion.errors import TrunnionError
from trunnion.model.params import Signature, TensorParam
from trunnion.model.plan.refusals import REFUSALS

pytestmark = pytest.mark.tvm_ffi_abi

READ = Signature((TensorParam("x", "float32", (3,)),))
WRITTEN = Signature((TensorParam("x", "float32", (3,), access="read_write"),))
TWO = Signature((TensorParam("x", "float32", (3,)), TensorParam("y", "float32", (3,))))
OUT = Signature((), (TensorParam("y", "float32", (3,)),))
FILLED = Signature((), (TensorParam("y", "float32", (3,), fill=0),))


def numbers():
    return np.zeros(3, np.float32)


def read_only():
    array = numbers()
    array.flags.writeable = False
    return array


class Elsewhere:
    """An array where nothing is launched."""

    def __dlpack_device__(self):
        return 8, 1

    def __dlpack__(self, **_):
        raise AssertionError


class Gone(Elsewhere):
    """An array that was deleted."""

    def __dlpack_device__(self):
        raise RuntimeError("it was deleted")


def closed(function):
    program = function("nothing", READ)
    program.close()
    program(numbers())


CALLS = {
    "closed-module": closed,
    "no-place": lambda function: function("nothing", READ)(Elsewhere()),
    "out-is-argument": lambda function: function("nothing")(out=(numbers(),)),
    "own-outputs": lambda function: function("nothing", OUT, returns="callee")(out=numbers(), device="cpu"),
    "place-differs": lambda function: function("nothing")(numbers(), device=1),
    "stream-of-host": lambda function: function("nothing")(numbers(), stream=5),
    "unexportable": lambda function: function("nothing", READ)(Gone()),
    "unwritable": lambda function: function("nothing", WRITTEN)(read_only()),
    "no-tensor": lambda function: function("nothing", READ)([1.0]),
    "dtype": lambda function: function("nothing", READ)(np.zeros(3, np.int32)),
    "rank": lambda function: function("nothing", READ)(np.zeros((3, 1), np.float32)),
    "unequal": lambda function: function("nothing", READ)(np.zeros(4, np.float32)),
    "no-device": lambda function: function("nothing", OUT)(),
    "no-memory": lambda function: function("nothing", READ)(torch.zeros(3).to_sparse()),
    "layout": lambda function: function("nothing", READ)(np.zeros(6, np.float32)[::2]),
}
"""On the host."""

ON_DEVICE = {
    "other-place": lambda function, array: function("nothing", TWO)(numbers(), array, stream=7),
    "filled-elsewhere": lambda function, array: function("nothing", FILLED)(out=array, device=0, stream=7),
    "unknown-stream": lambda function, array: function("nothing", READ)(array),
}
"""With an array on a simulated device, of a library that tells no stream."""


def assert_refused(row, call, *given):
    with pytest.raises(TrunnionError) as caught:
        call(*given)
    assert caught.value.refusal == row
    assert type(caught.value) is REFUSALS[row].error


@pytest.mark.parametrize("row", CALLS)
def test_a_wrong_call_is_refused_by_the_row(function, row):
    assert_refused(row, CALLS[row], function)


@pytest.mark.parametrize("row", ON_DEVICE)
def test_a_wrong_call_on_a_device_is_refused_by_the_row(function, simulator, producer, row):
    assert_refused(row, ON_DEVICE[row], function, producer(simulator.tensor(torch.zeros(3), 0)))
