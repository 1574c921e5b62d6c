"""A library's module variables, in the memory of each device.

Source: CUDA Driver API, Library Management. Each context has its own, but a green one has those of its primary one
(measured on an H100, driver 580). Those of primary contexts take their memory when the library is loaded, as under
``CUDA_MODULE_LOADING=EAGER``, those of other contexts when they are first asked for. What PTX puts there is not
simulated: it holds zeros.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from trunnion.messages import quoted
from trunnion.sim.objects import DeviceVariable
from trunnion.sim.status import Refusal, Status

if TYPE_CHECKING:
    from trunnion.sim.objects import Context, Library
    from trunnion.sim.state import DriverState

__all__ = ["place_variables", "variable_in"]


def place_variables(state: DriverState, library: Library) -> None:
    """Give a library's variables their memory on each device on which it runs.

    Parameters
    ----------
    state
        What the driver remembers.
    library
        The library.

    Raises
    ------
    Refusal
        ``CUDA_ERROR_OUT_OF_MEMORY``, if a device has no room.
    """
    known = [one.name for one in library.info.variables if one.nbytes is not None and not one.managed]
    for device in state.devices if known else ():
        if library.runs_on(device):
            for name in known:
                variable_in(state, library, name, state.contexts[device.ordinal])


def variable_in(state: DriverState, library: Library, name: str, context: Context) -> DeviceVariable:
    """Return a variable of a library as it is in a context.

    Parameters
    ----------
    state
        What the driver remembers.
    library
        The library.
    name
        The exact symbol name.
    context
        The context.

    Raises
    ------
    Refusal
        ``CUDA_ERROR_NOT_FOUND`` if it has none of that name, ``CUDA_ERROR_OUT_OF_MEMORY`` if the device has no room.
    """
    device, key = context.device.ordinal, (name, context.home.handle)
    with state.lock:
        known = library.variables.get(key)
        if known is not None:
            return known
        info = library.info.variable(name)
        if info is None:
            there = ", ".join(one.name for one in library.info.variables) or "none"
            raise Refusal(Status.NOT_FOUND, f"no variable {quoted(name)} (there are: {there})")
        if info.nbytes is None or info.managed:
            what = "managed" if info.managed else "of a size that its PTX does not say"
            raise Refusal(Status.NOT_SUPPORTED, f"variable {quoted(name)} is {what}, which is not simulated")
        allocation, buffer = state.memory.allocate(max(info.nbytes, 1), device, of_image=True)
        found = DeviceVariable(name, device, allocation.address, info.nbytes, buffer)
        state.memory.on(device).write(allocation.address, info.init or bytes(info.nbytes))
        library.variables[key] = found
        return found
