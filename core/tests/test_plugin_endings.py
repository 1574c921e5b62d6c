"""A plugin that would end the process, at its import or in a hook, is unavailable by name, and hurts nobody else."""

from __future__ import annotations

import sys
from importlib.metadata import EntryPoint
from typing import TYPE_CHECKING

import pytest

from trunnion.errors import BackendUnavailableError
from trunnion.registry import Registry

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    MakePlugin = Callable[..., EntryPoint]

HEAD = """
import sys, asyncio
from trunnion.contract.spec import BackendSpec
from trunnion.hookspecs import hookimpl
{body}
def backend():
    return BackendSpec(name="{name}", contract_version=3, targets={{"cuda": frozenset()}}, accepts=("cubin",),
                       load_wrapper=backend, load_adapter=backend)

@hookimpl
def trunnion_register_backends():
    {hook}
"""
ENDINGS = ("SystemExit", "SystemExit(0)", "GeneratorExit", "BaseException('no')", "asyncio.CancelledError")


@pytest.fixture
def make_plugin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> MakePlugin:
    monkeypatch.syspath_prepend(str(tmp_path))

    def make(name: str, body: str = "", hook: str = "return [backend()]") -> EntryPoint:
        module = f"{name}_of_{tmp_path.name.replace('-', '_')}"
        (tmp_path / f"{module}.py").write_text(HEAD.format(name=name, body=body, hook=hook))
        return EntryPoint(name, module, "trunnion")

    return make


@pytest.mark.parametrize("ending", ENDINGS)
def test_a_plugin_has_no_say_in_the_end_of_the_process(make_plugin: MakePlugin, ending: str) -> None:
    """Not at its import, not in a hook, not while what a hook returned is read."""
    points = [
        make_plugin("importing", body=f"raise {ending}"),
        make_plugin("hooking", hook=f"raise {ending}"),
        make_plugin("yielding", hook=f"yield backend()\n    raise {ending}"),
        make_plugin("good"),
    ]
    registry = Registry(points)
    assert [found.name for found in registry.backends()] == ["good"]
    assert len(registry.unavailable()) == 3
    for failure in registry.unavailable():
        assert ending.partition("(")[0].rpartition(".")[2] in failure.reason, failure
        assert f"raise {ending}" in failure.traceback
        with pytest.raises(BackendUnavailableError, match=failure.name):
            registry.backend(failure.name)


def test_an_interrupt_passes_and_the_plugin_is_imported_when_it_is_asked_for_again(
    make_plugin: MakePlugin,
) -> None:
    body = "if not hasattr(sys, 'interrupted'):\n    sys.interrupted = True\n    raise KeyboardInterrupt"
    registry = Registry([make_plugin("acme", body)])
    try:
        with pytest.raises(KeyboardInterrupt):
            registry.backend("acme")
        assert registry.backend("acme").name == "acme"
    finally:
        del sys.interrupted  # type: ignore[attr-defined]  # the plugin has no other way to know


def test_a_name_asked_for_loads_no_other_plugin(make_plugin: MakePlugin) -> None:
    registry = Registry([make_plugin("acme"), make_plugin("poison", "sys.poisoned = True")])
    assert registry.backend("acme").name == "acme"
    assert not hasattr(sys, "poisoned")
