"""What a backend inherits that does not write it itself: `LoadedProgram.bind`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from trunnion.contract.adapter import LoadedProgram
from trunnion.errors import LifecycleError
from trunnion.testing.forked import CAN_FORK, told_by_a_child

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


class Plain(LoadedProgram):
    """A loaded program with no `bind` of its own, that allocates an object for each output."""

    def __init__(self, outputs: int) -> None:
        self._outputs = outputs
        self.calls: list[tuple[Any, ...]] = []

    @property
    def entry(self) -> Callable[..., Any]:
        return lambda *args: self.call(args)

    def call(
        self,
        args: Sequence[Any],
        *,
        out: Sequence[Any] | None = None,
        stream: int | None = None,
        device: int | None = None,
    ) -> Any:
        self.calls.append((tuple(args), out, stream, device))
        made = tuple(object() for _ in range(self._outputs)) if out is None else tuple(out)
        return made if len(made) > 1 else made[0] if made else None

    def preload(self, device: int) -> None:
        del device

    def close(self) -> None: ...


@pytest.mark.parametrize("outputs", [0, 1, 2])
def test_a_bound_launch_returns_the_same_outputs_each_time(outputs: int) -> None:
    bound = Plain(outputs).bind([1])
    first, second = bound(), bound()
    assert first is second or all(a is b for a, b in zip(first, second, strict=True))


def test_it_launches_nothing_by_itself_and_then_the_same_call() -> None:
    program, args, out = Plain(1), [1, 2], (object(),)
    bound = program.bind(args, out=out, stream=7, device=1)
    args.clear()
    assert not program.calls
    assert [bound(), bound()] == [out[0]] * 2
    assert program.calls == [((1, 2), out, 7, 1)] * 2
    assert (bound.stream, bound.device) == (7, 1)


@pytest.mark.skipif(not CAN_FORK, reason="the system has no fork")
def test_in_a_forked_child_nothing_can_be_bound() -> None:
    program = Plain(1)

    def refused() -> str:
        try:
            program.bind([1])
        except LifecycleError as error:
            return str(error)
        return "bound"

    assert "forked after the program was loaded" in told_by_a_child(refused)
    program.bind([1])
