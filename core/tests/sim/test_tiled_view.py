import math

import pytest
import torch

from trunnion.errors import ArgumentValueError, DriverError, UnsupportedFeatureError
from trunnion.sim.tensormap import Interleave, OobFill, TensorMapDataType, TiledRequest
from trunnion.sim.tiled_view import TiledView


def view_of(simulator, tensor, box, **changes):
    """A map over a row-major tensor; box outermost first, the request innermost first."""
    kinds = {torch.float32: TensorMapDataType.FLOAT32, torch.uint8: TensorMapDataType.UINT8}
    fields = {
        "address": tensor.data_ptr(),
        "data_type": kinds.get(tensor.dtype, TensorMapDataType.UINT8),
        "dims": tuple(reversed(tensor.shape)),
        "strides": tuple(step * tensor.element_size() for step in reversed(tensor.stride()[:-1])),
        "box": tuple(reversed(box)),
        "element_strides": (1,) * tensor.dim(),
    }
    return TiledView(TiledRequest(**(fields | changes)), simulator.memory.on(0))


@pytest.fixture
def grid(simulator):
    return simulator.tensor(torch.arange(5 * 8, dtype=torch.float32).reshape(5, 8))


def test_coordinates_are_innermost_first_and_the_box_outermost_first(simulator, grid):
    box = view_of(simulator, grid, (2, 4)).load((4, 1))
    assert torch.equal(box, grid.cpu()[1:3, 4:8])


@pytest.mark.parametrize("fill", OobFill)
def test_outside_is_filled(simulator, grid, fill):
    box = view_of(simulator, grid, (4, 4), oob_fill=fill).load((-2, 3))
    outside = math.nan if fill is OobFill.NAN_REQUEST_ZERO_FMA else 0.0
    expected = torch.full((4, 4), outside)
    expected[:2, 2:] = grid.cpu()[3:5, :2]
    torch.testing.assert_close(box, expected, equal_nan=True)
    assert torch.equal(torch.isnan(box), torch.isnan(expected))


@pytest.mark.parametrize("kind", ["int32", "uint32"])
def test_nan_is_filled_in_the_map_s_own_type_whatever_it_is_read_as(simulator, grid, kind):
    view = view_of(simulator, grid, (4, 4), oob_fill=OobFill.NAN_REQUEST_ZERO_FMA)
    assert torch.equal(view.load((-2, 3), kind), view.load((-2, 3)).view(getattr(torch, kind)))


def test_a_box_wholly_outside(simulator, grid):
    view = view_of(simulator, grid, (2, 4))
    for corner in ((8, 0), (0, 5), (-4, 0), (1 << 20, 0)):
        assert torch.equal(view.load(corner), torch.zeros(2, 4))


def test_element_strides_step_and_the_innermost_is_ignored(simulator, grid):
    view = view_of(simulator, grid, (5, 4), element_strides=(2, 2))
    assert view.box_shape == (3, 4)
    assert torch.equal(view.load((0, 0)), grid.cpu()[0:5:2, 0:4])
    expected = torch.cat((torch.zeros(1, 4), grid.cpu()[1:5:2, 0:4]))
    assert torch.equal(view.load((0, -1)), expected)


def test_three_dimensions(simulator):
    cube = simulator.tensor(torch.arange(3 * 4 * 8, dtype=torch.float32).reshape(3, 4, 8))
    box = view_of(simulator, cube, (2, 2, 4)).load((4, 1, 1))
    assert torch.equal(box, cube.cpu()[1:3, 1:3, 4:8])


def test_another_type_of_the_same_size(simulator):
    data = torch.arange(32, dtype=torch.float32).reshape(2, 16).to(torch.float8_e4m3fn)
    tensor = simulator.tensor(data)
    view = view_of(simulator, tensor, (2, 16))
    assert torch.equal(view.load((0, 0), "float8_e4m3fn").float(), data.float())
    with pytest.raises(ArgumentValueError):
        view.load((0, 0), "float16")


def test_what_is_stored_outside_is_dropped(simulator, grid):
    before = grid.cpu()
    view_of(simulator, grid, (4, 4)).store((-2, 3), -torch.ones(4, 4))
    before[3:5, :2] = -1
    assert torch.equal(grid.cpu(), before)
    with pytest.raises(ArgumentValueError):
        view_of(simulator, grid, (4, 4)).store((0, 0), torch.ones(4, 5))


def test_memory_outside_an_allocation_is_an_error(simulator, grid):
    with pytest.raises(DriverError) as caught:
        view_of(simulator, grid, (2, 4), dims=(8, 9999)).load((0, 2000))
    assert caught.value.code_name == "CUDA_ERROR_ILLEGAL_ADDRESS"


def test_refused(simulator, grid):
    with pytest.raises(ArgumentValueError):
        view_of(simulator, grid, (2, 4)).load((0,))
    with pytest.raises(UnsupportedFeatureError):
        view_of(simulator, grid, (2, 4), interleave=Interleave.B16).load((0, 0))
    with pytest.raises(UnsupportedFeatureError):
        view_of(simulator, grid, (2, 4), data_type=TensorMapDataType.PACKED_16U4_ALIGN8B).load((0, 0))
