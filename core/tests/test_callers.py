"""A warning names the user's line, whatever stands between it and the place that warns."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import pytest

from trunnion.callers import warn


class Ours:
    """Code as that of a module of trunnion's."""

    def __init__(self, module: str) -> None:
        self.names: dict[str, Any] = {"__name__": module, "warn": warn, "cached_property": cached_property}
        exec(
            "def direct(): warn('it is told', UserWarning)\n"
            "def deep(): direct()\n"
            "class Program:\n    kernels = cached_property(lambda self: deep())\n",
            self.names,
        )


@pytest.mark.parametrize("module", ["trunnion", "trunnion.artifacts.store", "trunnion_acme.backend"])
def test_a_warning_names_the_first_line_outside_of_trunnion(module: str) -> None:
    names = Ours(module).names
    for way in (names["direct"], names["deep"], lambda: names["Program"]().kernels):
        with pytest.warns(UserWarning, match="it is told") as told:
            way()
        assert told[0].filename == __file__


@pytest.mark.parametrize("module", ["torch._ops", "functools", "contextlib"])
def test_who_calls_for_trunnion_is_no_user(module: str) -> None:
    """An operator's call comes through torch."""
    between: dict[str, Any] = {"__name__": module, "direct": Ours("trunnion").names["direct"]}
    exec("def call(): direct()", between)
    with pytest.warns(UserWarning, match="it is told") as told:
        between["call"]()
    assert told[0].filename == __file__


def test_a_module_that_is_called_alike_is_the_user_s() -> None:
    with pytest.warns(UserWarning, match="it is told") as told:
        Ours("trunnions").names["direct"]()
    assert told[0].filename == "<string>"
