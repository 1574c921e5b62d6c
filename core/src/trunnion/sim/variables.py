"""A library's module variables, in the memory of each device.

Source: CUDA Driver API, Library Management. A variable exists on a device from the first look at it on, which nobody
can tell from its having existed before. What PTX puts there is not simulated: it holds zeros.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from trunnion.messages import quoted
from trunnion.sim.objects import DeviceVariable
from trunnion.sim.status import Refusal, Status

if TYPE_CHECKING:
    from trunnion.sim.objects import Library
    from trunnion.sim.state import DriverState

__all__ = ["variable_on"]


def variable_on(state: DriverState, library: Library, name: str, device: int) -> DeviceVariable:
    """Return a variable of a library as it is on a device.

    Parameters
    ----------
    state
        What the driver remembers.
    library
        The library.
    name
        The exact symbol name.
    device
        The device's ordinal.

    Raises
    ------
    Refusal
        ``CUDA_ERROR_NOT_FOUND`` if it has none of that name, ``CUDA_ERROR_OUT_OF_MEMORY`` if the device has no room.
    """
    with state.lock:
        known = library.variables.get((name, device))
        if known is not None:
            return known
        info = library.info.variable(name)
        if info is None:
            there = ", ".join(one.name for one in library.info.variables) or "none"
            raise Refusal(Status.NOT_FOUND, f"no variable {quoted(name)} (there are: {there})")
        if info.nbytes is None or info.managed:
            what = "managed" if info.managed else "of a size that its PTX does not say"
            raise Refusal(Status.NOT_SUPPORTED, f"variable {quoted(name)} is {what}, which is not simulated")
        allocation, buffer = state.memory.allocate(max(info.nbytes, 1), device)
        found = DeviceVariable(name, device, allocation.address, info.nbytes, buffer)
        state.memory.on(device).write(allocation.address, info.init or bytes(info.nbytes))
        library.variables[name, device] = found
        return found
