"""Saboteurs of what stands beside a call: captures of others, tensors that are the same, numbers of a symbol."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from trunnion import sim
from trunnion.errors import LifecycleError
from trunnion.sim.trace import Launched
from trunnion.testing.refusal_saboteurs import of_row, unrefused
from trunnion.testing.saboteur import Changed, Saboteur, in_trace, saboteur

if TYPE_CHECKING:
    from trunnion.contract.adapter import LoadedProgram

__all__ = ["BESIDE_SABOTEURS"]

_MAP_BYTES: Final = 128


class _AloneInCaptures(Changed):
    """A loaded program that launches on no named stream while another one is captured."""

    def call(self, args: Any, *, stream: int | None = None, **how: Any) -> Any:
        """Launch, or not."""
        simulator = sim.active()
        captured = () if simulator is None else simulator.state.captures.standing
        if stream is not None and captured and f"{stream:#x}" not in captured:
            raise LifecycleError("a stream is being captured")
        return self._true.call(args, stream=stream, **how)


class _SameMaps:
    """Launches with the maps of the call before where a call is given the same tensors, laid out as they were."""

    def __init__(self) -> None:
        self.same = False
        self._maps: dict[tuple[str, int], bytes] = {}

    def loaded(self, program: LoadedProgram) -> Any:
        """Forget the maps of other programs."""
        self.same = False
        self._maps.clear()
        return _NotesTensors(program)

    def __call__(self, event: Launched) -> Launched:
        parameters = list(event.parameters)
        for ordinal, data in enumerate(parameters):
            if len(data) == _MAP_BYTES:
                kept = self._maps.setdefault((event.kernel, ordinal), data)
                parameters[ordinal] = kept if self.same else data
                self._maps[event.kernel, ordinal] = parameters[ordinal]
        return replace(event, parameters=tuple(parameters))


class _NotesTensors(Changed):
    """A loaded program that notes whether a call is given the tensors of the call before."""

    _last: Any = None

    def call(self, args: Any, **how: Any) -> Any:
        """Launch."""
        from torch.multiprocessing.reductions import StorageWeakRef  # noqa: PLC0415 - tensors are torch's

        now = [
            (StorageWeakRef(one.untyped_storage()), one.data_ptr(), one.dtype, one.shape, one.stride())  # type: ignore[no-untyped-call]  # torch's
            for one in args
            if hasattr(one, "data_ptr")
        ]
        _SAME_MAPS.same = bool(now) and now == self._last
        self._last = now
        return self._true.call(args, **how)


_SAME_MAPS = _SameMaps()


BESIDE_SABOTEURS: tuple[Saboteur, ...] = (
    saboteur(
        "alone-in-captures",
        "Says that a program is gone while others' streams are captured.",
        "G4",
        stage="lifecycle",
        loaded=_AloneInCaptures,
    ),
    saboteur(
        "same-layouts",
        "Keeps tensor maps where the tensors are the same, and lie as before.",
        "T7",
        stage="driver",
        loaded=_SAME_MAPS.loaded,
        trace=in_trace(_SAME_MAPS, Launched),
    ),
    saboteur(
        "wide-symbols",
        "Does nothing where a number is one too great for a symbol.",
        "V8",
        stage="lifecycle",
        loaded=unrefused(of_row("symbol", str(2**63))),
    ),
)
"""The saboteurs."""
