"""What a backend gives back for a call whose arguments are bound."""

from __future__ import annotations

from typing import Any

import pytest

from trunnion.contract.adapter import BoundLaunch
from trunnion.errors import ArgumentTypeError


@pytest.mark.parametrize(("given", "named"), [((1,), {}), ((), {"self": 1}), ((1, 2), {"out": None})])
def test_a_bound_launch_takes_nothing(given: tuple[int, ...], named: dict[str, Any]) -> None:
    calls: list[int] = []
    bound = BoundLaunch(lambda: calls.append(1))
    with pytest.raises(ArgumentTypeError, match=f"got {len(given) + len(named)} arguments, expected none"):
        bound(*given, **named)
    assert not calls
    bound()
    assert calls == [1]
