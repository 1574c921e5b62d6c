"""`Recognition`: whether a call's tensors are like those of an earlier call that was checked in full."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from trunnion.codegen.python.recall import Recall

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
        self._remember = Recall(runtime.guard)
        self._guard: Callable[..., bool] | None = None
        self._addresses: set[tuple[int, ...]] = set()

    def __call__(self, args: Sequence[Any]) -> bool:
        """Whether the tensors need not be checked again: the launcher checks all that they show by themselves."""
        guard = self._guard
        if guard is None or len(args) != self._count:
            return False
        tensors = [args[place] for place in self._places]
        for tensor in tensors:
            # torch ends the process where a guard reads the strides of a nested tensor.
            if type(tensor) is not self._class or tensor.is_nested:
                return False
        return guard(*tensors) and tuple([tensor.data_ptr() for tensor in tensors]) in self._addresses

    def learn(self, args: Sequence[Any]) -> None:
        """Take note of the tensors of a call that was checked in full."""
        if not self._possible:
            return
        tensors = tuple(args[place] for place in self._places)
        found = tuple((tuple(tensor.shape), tensor.stride(), tensor.get_device()) for tensor in tensors)
        guard = self._guard
        if guard is None or not guard(*tensors):
            recalled = self._remember(tensors, found)
            self._guard = None if recalled is None else recalled[0]
            self._addresses.clear()
        if len(self._addresses) >= _MOST_ADDRESSES:
            self._addresses.clear()
        self._addresses.add(tuple(tensor.data_ptr() for tensor in tensors))
