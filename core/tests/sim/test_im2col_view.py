import itertools
import math

import pytest
import torch

from trunnion.errors import ArgumentValueError, DriverError, UnsupportedFeatureError
from trunnion.sim.im2col_view import Im2colView
from trunnion.sim.tensormap import Im2colRequest, Interleave, OobFill, TensorMapDataType

KINDS = {torch.float32: TensorMapDataType.FLOAT32, torch.uint8: TensorMapDataType.UINT8}


def view_of(simulator, tensor, lower, upper, **changes):
    """A map over an N...WC tensor; corners as the driver takes them, along W, H, D."""
    fields = {
        "address": tensor.data_ptr(),
        "data_type": KINDS.get(tensor.dtype, TensorMapDataType.UINT8),
        "dims": tuple(reversed(tensor.shape)),
        "strides": tuple(step * tensor.element_size() for step in reversed(tensor.stride()[:-1])),
        "lower": lower,
        "upper": upper,
        "channels": tensor.shape[-1],
        "pixels": 4,
        "element_strides": (1,) * tensor.dim(),
    }
    return Im2colView(Im2colRequest(**(fields | changes)), simulator.memory.on(0))


def image(simulator, *shape):
    return simulator.tensor(torch.randn(shape, generator=torch.Generator().manual_seed(0)))


@pytest.mark.parametrize(
    "case",  # extents, filter, padding before and after, stride, dilation
    [
        ((7,), (3,), (1,), (1,), (1,), (1,)),
        ((7,), (3,), (2,), (0,), (2,), (1,)),
        ((5, 6), (3, 3), (1, 1), (1, 1), (1, 1), (1, 1)),
        ((5, 6), (3, 2), (0, 2), (2, 1), (1, 1), (1, 1)),
        ((9, 8), (3, 3), (1, 2), (2, 0), (2, 3), (1, 1)),
        ((9, 8), (2, 3), (1, 1), (0, 2), (1, 2), (2, 1)),
        ((4, 5, 3), (2, 3, 1), (1, 0, 0), (0, 2, 0), (1, 2, 1), (1, 1, 1)),
    ],
)
def test_columns_are_those_of_a_convolution(simulator, case):
    """Against a padded tensor, cut by hand; all axes are given outermost first, as tensors are."""
    extents, filters, before, after, stride, dilation = case
    batch, channels = 2, 4
    tensor = image(simulator, batch, *extents, channels)
    spans = [(count - 1) * step for count, step in zip(filters, dilation, strict=True)]
    view = view_of(
        simulator,
        tensor,
        tuple(-pad for pad in reversed(before)),
        tuple(pad - span for pad, span in zip(reversed(after), reversed(spans), strict=True)),
        pixels=5,
        element_strides=(1, *reversed(stride), 1),
    )
    pads = [pad for pair in zip(reversed(before), reversed(after), strict=True) for pad in pair]
    padded = torch.nn.functional.pad(tensor.cpu(), (0, 0, *pads))
    outputs = [
        range(0, extent + low + high - span, step)
        for extent, low, high, span, step in zip(extents, before, after, spans, stride, strict=True)
    ]
    positions = [(n, *place) for n in range(batch) for place in itertools.product(*outputs)]
    for position in itertools.product(*(range(count) for count in filters)):
        away = [at * step for at, step in zip(position, dilation, strict=True)]
        expected = torch.stack(
            [padded[(n, *(a + b for a, b in zip(place, away, strict=True)))] for n, *place in positions]
        )
        for first in range(0, len(positions), 5):
            n, *place = positions[first]
            start = [at - low for at, low in zip(place, before, strict=True)]
            column = view.load((0, *reversed(start), n), tuple(reversed(away)))
            wanted = torch.zeros(5, channels)
            part = expected[first : first + 5]
            wanted[: len(part)] = part
            assert torch.equal(column, wanted)


def test_outside_is_filled(simulator):
    tensor = image(simulator, 1, 3, 4)
    view = view_of(simulator, tensor, (-1,), (0,), oob_fill=OobFill.NAN_REQUEST_ZERO_FMA, pixels=6)
    column = view.load((2, -1, 0))
    expected = torch.full((6, 4), math.nan)
    expected[1:4, :2] = tensor.cpu()[0, :, 2:]
    assert torch.equal(column.isnan(), expected.isnan())
    assert torch.equal(column.nan_to_num(), expected.nan_to_num())
    channels = view.load((-1, 0, 0))
    assert torch.equal(channels[:3, 1:], tensor.cpu()[0, :, :3])
    assert channels[:, 0].isnan().all()
    read_as_bits = view.load((2, -1, 0), dtype_="int32")
    assert torch.equal(read_as_bits, column.view(torch.int32))


def test_what_is_stored_lands_where_it_is_loaded_from(simulator):
    tensor = image(simulator, 2, 3, 3, 4)
    view = view_of(simulator, tensor, (0, 0), (0, 0), pixels=12)
    values = torch.arange(48.0).reshape(12, 4)
    view.store((0, 1, 1, 1), values)
    expected = image(simulator, 2, 3, 3, 4).cpu()
    expected[1, 1, 1:] = values[:2]
    expected[1, 2] = values[2:5]
    assert torch.equal(tensor.cpu(), expected)
    assert torch.equal(view.load((0, 1, 1, 1))[:5], values[:5])


def test_other_types_are_read_as_their_bytes(simulator):
    tensor = simulator.tensor(torch.arange(32, dtype=torch.uint8).view(torch.float8_e5m2).reshape(1, 2, 16))
    view = view_of(simulator, tensor, (0,), (0,), pixels=2, data_type=TensorMapDataType.UINT8)
    column = view.load((0, 0, 0), dtype_="float8_e5m2")
    assert torch.equal(column.view(torch.uint8).flatten(), torch.arange(32, dtype=torch.uint8))


@pytest.mark.parametrize(
    ("coordinates", "offsets"), [((0, 0), None), ((0, 0, 0), (1, 1)), ((0, 0, 0), (-1,))]
)
def test_wrong_coordinates_are_refused(simulator, coordinates, offsets):
    with pytest.raises(ArgumentValueError):
        view_of(simulator, image(simulator, 1, 3, 4), (0,), (0,)).load(coordinates, offsets)


def test_wrong_values_and_modes_are_refused(simulator):
    tensor = image(simulator, 1, 3, 4)
    view = view_of(simulator, tensor, (0,), (0,))
    with pytest.raises(ArgumentValueError):
        view.store((0, 0, 0), torch.zeros(3, 4))
    with pytest.raises(ArgumentValueError):
        view.load((0, 0, 0), dtype_="float16")
    with pytest.raises(UnsupportedFeatureError):
        view_of(simulator, tensor, (0,), (0,), interleave=Interleave.B16).load((0, 0, 0))


def test_memory_outside_of_an_allocation_is_not_read(simulator):
    tensor = image(simulator, 1, 3, 4)
    with pytest.raises(DriverError):
        view_of(simulator, tensor, (0,), (0,), dims=(4, 30, 1), pixels=30).load((0, 0, 0))
