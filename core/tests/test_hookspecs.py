from __future__ import annotations

import pluggy
import pytest

from trunnion import hookspecs
from trunnion.hookspecs import hookimpl


def manager() -> pluggy.PluginManager:
    made = pluggy.PluginManager(hookspecs.PROJECT)
    made.add_hookspecs(hookspecs)
    return made


def test_the_hooks_are_these_two() -> None:
    hooks = manager().hook.__dict__
    assert {name for name in hooks if not name.startswith("_")} == {
        "trunnion_register_backends",
        "trunnion_register_compilers",
    }


def test_an_implementation_is_called_without_arguments() -> None:
    class Plugin:
        @hookimpl
        def trunnion_register_backends(self) -> list[str]:
            return ["spec"]

    made = manager()
    made.register(Plugin())
    made.check_pending()
    assert made.hook.trunnion_register_backends() == [["spec"]]
    assert made.hook.trunnion_register_compilers() == []


def test_an_implementation_that_wants_an_argument_is_refused() -> None:
    class Plugin:
        @hookimpl
        def trunnion_register_compilers(self, config: object) -> list[str]:
            return []

    with pytest.raises(pluggy.PluginValidationError):
        manager().register(Plugin())
