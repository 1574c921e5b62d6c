"""What one kernel of the corpus says of itself, and how it is lowered."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tilelang_corpus.drawing import Draw

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

__all__ = ["TARGET", "Entry"]

TARGET = "sm_90a"
"""What the corpus is lowered for: clusters, TMA and WGMMA are in the architectures from here."""


@dataclass(frozen=True, kw_only=True)
class Entry:
    """One kernel program written in TileLang's language, with what it is called with and what then comes out."""

    name: str
    """Unique in the corpus, and a Python identifier."""

    covers: str
    """The feature that it is there for: one phrase."""

    make: Callable[[], Any]
    """Returns the PrimFunc, a new one each time."""

    inputs: Callable[[Draw], tuple[Any, ...]]
    """Draws the arguments of a call: those that are not outputs, in the PrimFunc's order."""

    reference: Callable[..., tuple[Any, ...]]
    """Returns, from those arguments as they were before the call, what shall come out: see `results`."""

    out_idx: tuple[int, ...] = ()
    """Which of the PrimFunc's parameters the callee allocates and returns, as TileLang's ``out_idx``."""

    written: tuple[int, ...] = ()
    """Which arguments of the call hold results afterwards."""

    pointers: tuple[int, ...] = ()
    """Which arguments are passed as the address of the tensor that is drawn for them."""

    pass_configs: Mapping[str, Any] = field(default_factory=dict)
    """What TileLang's passes are given."""

    tolerance: float = 0.0
    """How far an element may be off: absolute, and relative to the reference; 0: equal."""

    refused: str = ""
    """Why nothing but TileLang's own host code can launch this; empty: everything can."""

    def arguments(self, seed: int, device: str = "cpu") -> tuple[Any, ...]:
        """Return the drawn arguments of one call, the same for the same seed.

        Parameters
        ----------
        seed
            Any number; dynamic sizes differ from one to the next.
        device
            Where the tensors lie, as torch writes it.
        """
        return self.inputs(Draw(seed, device))

    def passed(self, arguments: Sequence[Any]) -> tuple[Any, ...]:
        """Return drawn arguments as a call takes them: addresses in the place of tensors that are passed as such."""
        return tuple(
            value.data_ptr() if index in self.pointers else value for index, value in enumerate(arguments)
        )

    def results(self, arguments: Sequence[Any], returned: Any) -> tuple[Any, ...]:
        """Return the tensors that `reference` speaks of: what was returned, then what was written to.

        Parameters
        ----------
        arguments
            The drawn arguments, after the call.
        returned
            What the call returned: None, a tensor, or a tuple or list of tensors.
        """
        many = isinstance(returned, tuple | list)
        outputs = tuple(returned) if many else () if returned is None else (returned,)
        return (*outputs, *(arguments[index] for index in self.written))

    def lower(self, kind: str = "cuda") -> Any:
        """Return what ``tilelang.lower`` makes of the kernel, with no GPU and no compiler.

        Parameters
        ----------
        kind
            The target: ``"cuda"`` for CUDA C++, ``"cutedsl"`` for CuTeDSL.
        """
        import tilelang
        from tilelang import tvm
        from tilelang.backend.target import determine_target

        target = determine_target({"kind": kind, "arch": TARGET}, return_object=True)
        with target, tvm.transform.PassContext(opt_level=3, config=dict(self.pass_configs)):
            return tilelang.lower(self.make(), target=target)
