"""What a launcher allocates: traced, and where a planted fault can strike."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from trunnion.arguments import unallocatable
from trunnion.model.interval import INT64_MAX
from trunnion.sim.interception import ALLOCATE
from trunnion.sim.memory import allocation_error
from trunnion.sim.status import Refusal
from trunnion.sim.trace import Allocated

if TYPE_CHECKING:
    from collections.abc import Sequence

    import torch

    from trunnion.sim.simulator import Simulator
    from trunnion.sim.tensor import SimTensor

__all__ = ["allocate"]


def allocate(
    simulator: Simulator, shape: Sequence[int], dtype: torch.dtype, ordinal: int, stream: int
) -> SimTensor:
    """Return a tensor in fresh device memory for a launcher, and trace it with its stream.

    Parameters
    ----------
    simulator
        Whose memory.
    shape
        Elements along each dimension.
    dtype
        The element type.
    ordinal
        The ordinal of the device.
    stream
        The stream that will use it first.

    Raises
    ------
    ArgumentValueError
        If there is no such device, or no memory is that large.
    torch.OutOfMemoryError
        If the device has too little memory, or a planted fault says so.
    DriverError
        If a planted fault or an interceptor refuses for another reason.
    """
    from trunnion.sim.tensor import empty  # noqa: PLC0415 - imports torch

    made: list[SimTensor] = []
    nbytes = math.prod(shape) * dtype.itemsize
    if nbytes > INT64_MAX:
        raise unallocatable(tuple(shape))
    try:
        simulator.state.interceptions.run(
            ALLOCATE, lambda *_: made.append(empty(simulator, shape, dtype, ordinal)), nbytes, ordinal, stream
        )
    except Refusal as refusal:
        raise allocation_error(refusal, ALLOCATE) from refusal
    simulator.state.trace.add(Allocated(made[0].data_ptr(), nbytes, ordinal, stream))
    simulator.state.keep_for_capture(stream, made[0])
    return made[0]
