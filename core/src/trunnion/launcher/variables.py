"""What a Python launcher does for module variables: it finds them on each device, and writes what they hold first."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from trunnion.errors import VariableMismatchError
from trunnion.launcher.driver_status import naming_variable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from trunnion.launcher.facade import VariableFacade

__all__ = ["VariableSpec", "prepare_variables"]


@dataclass(frozen=True, slots=True)
class VariableSpec:
    """What is known of a module variable before any call."""

    name: str
    """The name, as the program spells it."""

    nbytes: int
    """How many bytes it has, as the program says."""

    init: bytes | None
    """What it holds before the first launch on a device; None: what the image says."""


def prepare_variables(
    named: Iterable[tuple[VariableSpec, str]],
    facade: VariableFacade,
    find: Callable[[Any, str], tuple[int, int]],
    where: tuple[Any, int],
) -> tuple[int, ...]:
    """Return the address of each variable on the current device, once all that a program says they hold is there.

    Parameters
    ----------
    named
        What is known of each, and its exact name in the image.
    facade
        The driver; a context of the device is current.
    find
        Its `VariableFacade.variable`.
    where
        The image's handle, and the device's ordinal, for messages.

    Raises
    ------
    VariableMismatchError
        If the driver knows one by another size.
    DriverError
        If the image has none of a name, or cannot be written to.
    """
    library, device = where
    addresses, writes = [], []
    for spec, symbol in named:
        with naming_variable(symbol, device):
            address, nbytes = find(library, symbol)
        if nbytes != spec.nbytes:
            raise VariableMismatchError(
                spec.name, f"{spec.nbytes} bytes", f"{nbytes} bytes on device {device}"
            )
        addresses.append(address)
        if spec.init is not None:
            writes.append((address, spec.init))
    if writes:
        facade.write(writes)
    return tuple(addresses)
