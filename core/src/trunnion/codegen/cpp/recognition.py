"""`Recognition`: whether a call's tensors are like those of an earlier call that was checked in full."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from trunnion.codegen.python.recall import ReadingRecall

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from trunnion.codegen.cpp.facts import ParamFacts
    from trunnion.contract.runtime import Runtime

__all__ = ["Recognition"]

_MOST_ADDRESSES = 1024


class Recognition:
    """Knows tensors by class, type, device, extents, strides and address; holds none of them.

    Parameters
    ----------
    params
        The parameters of a call.
    runtime
        The tensor library.
    """

    def __init__(self, params: Sequence[ParamFacts], runtime: Runtime) -> None:
        self._places = tuple(place for place, param in enumerate(params) if param.kind == "tensor")
        self._count = len(params)
        self._possible = bool(self._places) and not any(param.nullable for param in params)
        self._class: Any = runtime.tensor_type
        self._remember = ReadingRecall(runtime.guard, runtime.reader)
        # What knows tensors, and their addresses: replaced together, as another thread may be looking.
        self._known: _Known | None = None

    def __call__(self, args: Sequence[Any]) -> bool:
        """Whether the tensors need not be checked again: the launcher checks all that they show by themselves."""
        known = self._known
        if known is None or len(args) != self._count:
            return False
        _, reader, addresses = known
        tensors = [args[place] for place in self._places]
        # None is no address, and so not among them.
        return reader(*tensors) in addresses if reader is not None else self._guarded(tensors, known)

    def _guarded(self, tensors: list[Any], known: _Known) -> bool:
        """Whether the tensors are known, without a reader."""
        for tensor in tensors:
            # torch ends the process where a guard reads the strides of a nested tensor.
            if type(tensor) is not self._class or tensor.is_nested:
                return False
        return _alike(known, tensors) and tuple([tensor.data_ptr() for tensor in tensors]) in known[2]

    def learn(self, args: Sequence[Any]) -> None:
        """Take note of the tensors of a call that was checked in full."""
        if not self._possible:
            return
        tensors = tuple(args[place] for place in self._places)
        known = self._known
        if known is None or not _alike(known, tensors):
            found = tuple((tuple(tensor.shape), tensor.stride(), tensor.get_device()) for tensor in tensors)
            recalled = self._remember(tensors, found)
            self._known = known = None if recalled is None else (recalled[0], recalled[1], set())
        if known is not None:
            if len(known[2]) >= _MOST_ADDRESSES:
                known[2].clear()
            known[2].add(tuple(tensor.data_ptr() for tensor in tensors))


_Known = tuple[
    "Callable[..., bool] | None", "Callable[..., tuple[int, ...] | None] | None", set[tuple[int, ...]]
]
"""A guard or a reader, and the addresses of tensors that it lets pass and that were checked in full."""


def _alike(known: _Known, tensors: Sequence[Any]) -> bool:
    """Whether tensors, none of them nested, differ from the known ones in their addresses at the most."""
    guard, reader, _ = known
    return reader(*tensors) is not None if reader is not None else guard is not None and guard(*tensors)
