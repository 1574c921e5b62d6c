"""`Example`: a program, inputs for it, and two independent ways to know what must come out."""

from __future__ import annotations

import math
from dataclasses import dataclass
from importlib.resources import files
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeAlias

from trunnion.model.code import DeviceCode

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    import torch

    from trunnion.model.program import KernelProgram
    from trunnion.sim.bodies import KernelBody

    Inputs: TypeAlias = Callable[[torch.Generator, str], tuple[Any, ...]]
    Results: TypeAlias = torch.Tensor | tuple[torch.Tensor, ...]

__all__ = ["Example", "device_code", "text_beside"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Example:
    """One example."""

    name: str
    """Its name in `trunnion.examples.EXAMPLES` or `CPU_EXAMPLES`."""

    summary: str
    """One line."""

    program: KernelProgram
    """The program."""

    kind: str = "cuda"
    """The kind of device that it runs on."""

    inputs: Inputs
    """Makes the arguments of a call: random tensors from a CPU generator, on a device such as ``"cuda:0"``."""

    edges: tuple[Inputs, ...] = ()
    """Makes further arguments in the same way: ragged sizes, the smallest ones, what may be left out."""

    reference: Callable[..., Results]
    """Computes in torch, from the same arguments, what the program must give."""

    bodies: Mapping[str, KernelBody]
    """For the simulator: a Python body for each kernel, by the name that the program uses. None on the CPU: kernels
    truly run there."""

    tolerance: float
    """The largest error allowed, relative to the greatest magnitude of the reference; 0: equal to the last bit."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "bodies", MappingProxyType(dict(self.bodies)))

    def largest_error(self, results: Results, arguments: tuple[Any, ...]) -> float:
        """Return how far results are from the reference, which is computed from the arguments on the host.

        Parameters
        ----------
        results
            What the program gave: a tensor, or a tuple of them.
        arguments
            What it was given.

        Returns
        -------
        float
            Of each result, the largest difference over the reference's greatest magnitude; of all results, the
            largest. NaN if a result is not a number where the reference is one, infinite if they cannot be compared.
        """
        expected = _members(self.reference(*(_on_host(value) for value in arguments)))
        given = _members(results)
        if len(given) != len(expected):
            return math.inf
        errors = [_error(_on_host(got), want) for got, want in zip(given, expected, strict=True)]
        return math.nan if any(map(math.isnan, errors)) else max(errors, default=0.0)


def text_beside(filename: str) -> str:
    """Return the text of a file that lies beside the examples."""
    return files("trunnion.examples").joinpath(filename).read_text(encoding="utf-8")


def device_code(filename: str, *, headers: tuple[str, ...] = (), **fields: Any) -> DeviceCode:
    """Return the source that lies beside the examples: CUDA C++, or C++ for the CPU.

    Parameters
    ----------
    filename
        The file's name.
    headers
        The names of the headers that it includes; they lie beside it.
    **fields
        Further fields of `DeviceCode`.
    """
    includes = tuple((name, text_beside(name)) for name in headers)
    language = "cuda" if filename.endswith(".cu") else "c++"
    return DeviceCode(language, text_beside(filename), name=filename, includes=includes, **fields)


def _members(results: Results) -> tuple[torch.Tensor, ...]:
    return results if isinstance(results, tuple) else (results,)


def _on_host(value: Any) -> Any:
    import torch  # noqa: PLC0415 - describing a program must not import torch

    return value.cpu() if isinstance(value, torch.Tensor) else value


def _error(result: torch.Tensor, reference: torch.Tensor) -> float:
    if result.shape != reference.shape or result.dtype != reference.dtype:
        return math.inf
    if not reference.numel():
        return 0.0
    expected = reference.double()
    magnitude = float(expected.abs().max())
    return float((result.double() - expected).abs().max()) / (magnitude or 1.0)
