"""`Example`: a program, inputs for it, and two independent ways to know what must come out."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.resources import files
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from trunnion.model.program import DeviceCode

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    import torch

    from trunnion.model.program import KernelProgram
    from trunnion.sim.bodies import KernelBody

__all__ = ["Example", "device_code"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Example:
    """One example."""

    name: str
    """Its name in `trunnion.examples.EXAMPLES`."""

    summary: str
    """One line."""

    program: KernelProgram
    """The program."""

    inputs: Callable[[torch.Generator, str], tuple[Any, ...]]
    """Makes the arguments of a call: random tensors from a CPU generator, on a device such as ``"cuda:0"``."""

    reference: Callable[..., torch.Tensor]
    """Computes in torch, from the same arguments, what the program must give."""

    bodies: Mapping[str, KernelBody]
    """For the simulator: a Python body for each kernel, by the name that the program uses."""

    tolerance: float
    """The largest error allowed, relative to the greatest magnitude of the reference; 0: equal to the last bit."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "bodies", MappingProxyType(dict(self.bodies)))


def device_code(filename: str, **fields: Any) -> DeviceCode:
    """Return the CUDA C++ source that lies beside the examples.

    Parameters
    ----------
    filename
        The file's name.
    **fields
        Further fields of `DeviceCode`.
    """
    source = files("trunnion.examples").joinpath(filename).read_text(encoding="utf-8")
    return DeviceCode("cuda", source, name=filename, **fields)
