"""The registry, with plugins that are modules written for the test and entry points that name them."""

from __future__ import annotations

import errno
import importlib.metadata
import itertools
import os
import subprocess
import sys
import textwrap
import threading
from importlib.metadata import EntryPoint
from typing import TYPE_CHECKING, Any

import platformdirs
import pytest
import torch

from trunnion.contract.spec import Availability, BackendSpec, Capability, CompilerSpec
from trunnion.errors import (
    ArgumentTypeError,
    BackendUnavailableError,
    DeviceRequirementError,
    DuplicatePluginError,
    TrunnionError,
    UnknownBackendError,
)
from trunnion.registry import Registry, default_registry
from trunnion.storage import remembered

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    MakePlugin = Callable[..., EntryPoint]

HEAD = """
from trunnion.contract.spec import Availability, BackendSpec, CompilerSpec
from trunnion.hookspecs import hookimpl

def unreachable():
    raise AssertionError("a loader ran during discovery")

def backend(name, version=3, **more):
    return BackendSpec(name=name, contract_version=version, targets={"cuda": frozenset()}, accepts=("cubin",),
                       load_wrapper=unreachable, load_adapter=unreachable, **more)

def compiler(name, version=3, **more):
    return CompilerSpec(name=name, contract_version=version, languages=("cuda",), targets=("cuda",),
                        produces=("cubin",), load_compiler=unreachable, **more)
"""

GOOD = """
@hookimpl
def trunnion_register_backends():
    return [backend("{name}", auto_rank=3)]

@hookimpl
def trunnion_register_compilers():
    return [compiler("{name}")]
"""


class FakeDistribution(importlib.metadata.Distribution):
    def __init__(self, name: str, version: str) -> None:
        self._text = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"

    def read_text(self, filename: str) -> str | None:
        return self._text if filename == "METADATA" else None

    def locate_file(self, path: object) -> Path:
        raise NotImplementedError


@pytest.fixture
def make_plugin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> MakePlugin:
    monkeypatch.syspath_prepend(str(tmp_path))
    serial = itertools.count()

    def make(name: str, body: str = GOOD, distribution: str = "", version: str = "1.5") -> EntryPoint:
        module = f"plugin_{tmp_path.name.replace('-', '_')}_{next(serial)}"
        text = HEAD + textwrap.dedent(body).replace("{name}", name)
        (tmp_path / f"{module}.py").write_text(text, encoding="utf-8")
        point = EntryPoint(name, module, "trunnion")
        dist = FakeDistribution(distribution or f"{name}-dist", version)
        return point._for(dist)  # type: ignore[attr-defined]  # how importlib.metadata itself ties the two

    return make


def spec(name: str = "local", version: int = 3) -> BackendSpec:
    def absent() -> type:
        raise NotImplementedError

    return BackendSpec(
        name=name,
        contract_version=version,
        targets={"cuda": frozenset({Capability.PDL})},
        accepts=("cubin",),
        load_wrapper=absent,
        load_adapter=absent,
    )


def compiler_spec(name: str = "local") -> CompilerSpec:
    def absent() -> type:
        raise NotImplementedError

    return CompilerSpec(
        name=name,
        contract_version=3,
        languages=("cuda",),
        targets=("cuda",),
        produces=("cubin",),
        load_compiler=absent,
    )


def test_listing_loads_nothing(make_plugin: MakePlugin) -> None:
    points = [make_plugin("zeta"), make_plugin("acme"), make_plugin("boom", "1 / 0")]
    registry = Registry(points)
    assert registry.names() == ("acme", "boom", "zeta")
    assert not {point.value for point in points} & set(sys.modules)


def test_asking_for_one_loads_that_one_only(make_plugin: MakePlugin) -> None:
    acme, other = make_plugin("acme"), make_plugin("other")
    registry = Registry([acme, other])
    assert registry.backend("acme").auto_rank == 3
    assert registry.compiler("acme").languages == ("cuda",)
    assert acme.value in sys.modules
    assert other.value not in sys.modules


def test_all_are_listed_by_name(make_plugin: MakePlugin) -> None:
    body = "@hookimpl\ndef trunnion_register_compilers():\n    yield compiler('{name}')\n"
    registry = Registry([make_plugin("zeta"), make_plugin("acme"), make_plugin("cc", body)])
    assert [found.name for found in registry.backends()] == ["acme", "zeta"]
    assert [found.name for found in registry.compilers()] == ["acme", "cc", "zeta"]
    assert registry.unavailable() == ()


BROKEN = {
    "an import that fails": ("import module_that_is_not_there", "ModuleNotFoundError", True),
    "any exception at import": ("raise KeyError('odd')", "KeyError", True),
    "a hook that raises": (
        "@hookimpl\ndef trunnion_register_backends():\n    1 / 0",
        "ZeroDivisionError",
        True,
    ),
    "a generator that raises": (
        "@hookimpl\ndef trunnion_register_backends():\n    yield backend('{name}')\n    1 / 0",
        "ZeroDivisionError",
        True,
    ),
    "a misspelt hook": (
        "@hookimpl\ndef trunnion_register_backend():\n    return [backend('{name}')]",
        "trunnion_register_backend",
        True,
    ),
    "a hook with a parameter": ("@hookimpl\ndef trunnion_register_backends(x):\n    return []", "x", True),
    "no hook at all": ("", "announces neither", False),
    "hooks that are not marked": (
        "def trunnion_register_backends():\n    return [backend('{name}')]",
        "announces neither",
        False,
    ),
    "empty lists": (
        "@hookimpl\ndef trunnion_register_backends():\n    return []",
        "announces neither",
        False,
    ),
    "another's name": (
        "@hookimpl\ndef trunnion_register_backends():\n    return [backend('good')]",
        "'good'",
        False,
    ),
    "another's name beside its own": (
        "@hookimpl\ndef trunnion_register_backends():\n    return [backend('{name}'), backend('good')]",
        "'good'",
        False,
    ),
    "a name that is not allowed": (
        "@hookimpl\ndef trunnion_register_backends():\n    return [backend('Bad Name')]",
        "ProgramError",
        True,
    ),
    "twice the same": (
        "@hookimpl\ndef trunnion_register_backends():\n    return [backend('{name}')] * 2",
        "more than one BackendSpec",
        False,
    ),
    "a compiler among backends": (
        "@hookimpl\ndef trunnion_register_backends():\n    return [compiler('{name}')]",
        "announced CompilerSpec, expected BackendSpec",
        False,
    ),
    "a bare spec": (
        "@hookimpl\ndef trunnion_register_backends():\n    return backend('{name}')",
        "expected an iterable",
        False,
    ),
    "a newer contract": (
        "@hookimpl\ndef trunnion_register_backends():\n    return [backend('{name}', version=4)]",
        "contract version 4",
        False,
    ),
    "an older contract, of a compiler": (
        "@hookimpl\ndef trunnion_register_compilers():\n    return [compiler('{name}', version=0)]",
        "contract version 0",
        False,
    ),
}


@pytest.mark.parametrize("case", BROKEN)
def test_a_broken_plugin_hurts_itself_only(make_plugin: MakePlugin, case: str) -> None:
    body, reason, traced = BROKEN[case]
    registry = Registry([make_plugin("broken", body, "broken-dist", "0.3"), make_plugin("good")])
    assert registry.backend("good").name == "good"
    (failure,) = registry.unavailable()
    assert (failure.name, failure.distribution, failure.version) == ("broken", "broken-dist", "0.3")
    assert reason in failure.reason
    assert bool(failure.traceback) is traced
    assert [found.name for found in registry.backends()] == ["good"]
    for ask in (registry.backend, registry.compiler):
        with pytest.raises(BackendUnavailableError) as caught:
            ask("broken")
        assert caught.value.distribution == "broken-dist"
        assert caught.value.reason == failure.reason
        assert caught.value.details == failure.traceback


@pytest.mark.parametrize("value", ["", "a b", ":x"])
def test_an_entry_point_that_names_nothing_is_a_failure_that_says_so(value: str) -> None:
    (failure,) = Registry([EntryPoint("acme", value, "trunnion")]).unavailable()
    assert failure.reason.startswith(f"its entry point has the value {value!r}, expected 'module'")
    assert failure.traceback == ""


def test_the_traceback_names_the_line_that_failed(make_plugin: MakePlugin) -> None:
    point = make_plugin("broken", "def helper():\n    return 1 / 0\nhelper()\n")
    (failure,) = Registry([point]).unavailable()
    assert f"{point.value}.py" in failure.traceback
    assert "in helper" in failure.traceback


def test_a_failed_plugin_is_not_imported_again(make_plugin: MakePlugin) -> None:
    body = "import sys\nsys.attempts = getattr(sys, 'attempts', 0) + 1\nraise OSError('no')\n"
    registry = Registry([make_plugin("broken", body)])
    for _ in range(3):
        with pytest.raises(BackendUnavailableError):
            registry.backend("broken")
    attempts = sys.__dict__.pop("attempts")
    assert attempts == 1


def test_a_plugin_that_asks_for_itself_is_unavailable(make_plugin: MakePlugin) -> None:
    point = make_plugin("loop", "import sys\nsys.registry_of_test.backend('{name}')\n")
    registry = Registry([point, make_plugin("good")])
    sys.registry_of_test = registry  # type: ignore[attr-defined]  # the plugin has no other way to find it
    try:
        (failure,) = registry.unavailable()
    finally:
        del sys.registry_of_test  # type: ignore[attr-defined]  # as above
    assert "while being imported" in failure.reason
    assert [found.name for found in registry.backends()] == ["good"]


def test_a_plugin_that_asks_for_another_while_it_announces_mixes_nothing(make_plugin: MakePlugin) -> None:
    inner = make_plugin("inner")
    asking = """
        import trunnion.registry
        @hookimpl
        def trunnion_register_backends():
            assert ASKED.backend("inner").name == "inner"
            return [backend("{name}")]
    """
    outer = make_plugin("outer", asking)
    found = Registry([inner, outer, make_plugin("broken", "raise OSError"), make_plugin("last")])
    vars(importlib.import_module(outer.value))["ASKED"] = found
    assert [one.name for one in found.backends()] == ["inner", "last", "outer"]
    assert [one.name for one in found.compilers()] == ["inner", "last"]
    again = Registry([outer])  # with a manager that the others are out of
    assert [one.name for one in again.backends()] == ["outer"]
    assert not again.compilers()


def test_a_plugin_that_compares_itself_to_nothing_is_one_like_any(make_plugin: MakePlugin) -> None:
    body = """
        class Plugin:
            def __eq__(self, other):
                raise ArithmeticError
            __hash__ = object.__hash__
            @hookimpl
            def trunnion_register_backends(self):
                return [backend("{name}")]
        plugin = Plugin()
    """
    point = make_plugin("object", body)
    found = Registry([EntryPoint("object", f"{point.value}:plugin", "trunnion"), make_plugin("other")])
    assert [one.name for one in found.backends()] == ["object", "other"]


def test_one_name_from_two_distributions_is_refused_naming_both(make_plugin: MakePlugin) -> None:
    points = [make_plugin("acme", distribution=owner) for owner in ("acme-one", "acme-two")]
    registry = Registry([*points, make_plugin("good")])
    for ask in (registry.backend, registry.compiler):
        with pytest.raises(DuplicatePluginError) as caught:
            ask("acme")
        assert caught.value.distributions == ("acme-one", "acme-two")
    assert not {point.value for point in points} & set(sys.modules)
    assert [found.name for found in registry.backends()] == ["good"]
    (failure,) = registry.unavailable()
    assert failure.distribution == "acme-one and acme-two"
    assert [info.name for info in registry.plugins()] == ["acme", "good"]
    with pytest.raises(DuplicatePluginError):
        registry.backend("acme")


COMPILER_ALONE = "@hookimpl\ndef trunnion_register_compilers():\n    return (compiler('{name}'),)\n"


def test_an_unknown_name_is_told_what_there_is(make_plugin: MakePlugin) -> None:
    with pytest.raises(UnknownBackendError) as caught:
        Registry([make_plugin("acme"), make_plugin("zeta")]).backend("acne")
    assert (caught.value.available, caught.value.role) == (("acme", "zeta"), "backend")
    assert str(caught.value).endswith("'acne'; did you mean 'acme'? installed: acme, zeta")


def test_a_plugin_without_the_role_is_not_offered(make_plugin: MakePlugin) -> None:
    """Which roles a plugin plays it says itself, when it is loaded; one that cannot be loaded may play any."""
    plugins = [make_plugin("cc", COMPILER_ALONE), make_plugin("acme"), make_plugin("boom", "1 / 0")]
    registry = Registry(plugins)
    for name in ("cd", "cc"):
        with pytest.raises(UnknownBackendError) as caught:
            registry.backend(name)
        assert caught.value.available == ("acme", "boom")
    registry.register(spec())
    with pytest.raises(UnknownBackendError) as caught:
        registry.compiler("local")
    assert (caught.value.available, caught.value.role) == (("acme", "boom", "cc"), "device compiler")


def test_threads_load_a_plugin_once(make_plugin: MakePlugin) -> None:
    body = "import sys, time\nsys.calls = getattr(sys, 'calls', 0) + 1\ntime.sleep(0.05)\n" + GOOD
    registry = Registry([make_plugin("acme", body)])
    barrier = threading.Barrier(8)
    found: list[BackendSpec] = []

    def ask() -> None:
        barrier.wait()
        found.append(registry.backend("acme"))

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sys.__dict__.pop("calls") == 1
    assert len({id(one) for one in found}) == 1
    assert len(found) == 8


def test_plugins_are_described_with_what_their_probes_say(make_plugin: MakePlugin) -> None:
    body = """
    def missing():
        return Availability(usable=False, detail="pip install it")
    def wrong():
        raise OSError("no such thing")
    @hookimpl
    def trunnion_register_backends():
        return [backend("{name}", probe=missing)]
    @hookimpl
    def trunnion_register_compilers():
        return [compiler("{name}", probe=wrong)]
    """
    registry = Registry([make_plugin("acme", body, version="2.0"), make_plugin("broken", "1 / 0")])
    acme, broken = registry.plugins()
    assert (acme.name, acme.distribution, acme.version, acme.failure) == ("acme", "acme-dist", "2.0", None)
    assert acme.backend is registry.backend("acme")
    assert acme.backend_availability == Availability(usable=False, detail="pip install it")
    assert acme.compiler_availability is not None
    assert not acme.compiler_availability.usable
    assert "no such thing" in acme.compiler_availability.detail
    assert broken.failure in registry.unavailable()
    assert (broken.backend, broken.compiler, broken.backend_availability) == (None, None, None)


def test_an_entry_point_without_a_distribution_works(make_plugin: MakePlugin) -> None:
    point = make_plugin("acme")
    (info,) = Registry([EntryPoint("acme", point.value, "trunnion")]).plugins()
    assert (info.distribution, info.version) == ("unknown", "")
    assert info.backend is not None


def test_a_spec_of_this_process_can_be_registered(make_plugin: MakePlugin) -> None:
    registry = Registry([make_plugin("acme")])
    mine = spec()
    registry.register(mine, distribution="my tests")
    assert registry.backend("local") is mine
    assert registry.names() == ("acme", "local")
    registry.register(compiler_spec(), distribution="my tests")
    info = registry.plugins()[1]
    assert (info.name, info.distribution) == ("local", "my tests")
    assert info.backend is mine
    assert info.compiler is not None


def test_registering_a_taken_name_is_refused(make_plugin: MakePlugin) -> None:
    point = make_plugin("acme")
    registry = Registry([point])
    with pytest.raises(DuplicatePluginError) as caught:
        registry.register(spec("acme"), "mine")
    assert caught.value.distributions == ("acme-dist", "mine")
    assert point.value not in sys.modules
    registry.register(spec(), "mine")
    for second, owner in ((spec(), "mine"), (compiler_spec(), "yours")):
        with pytest.raises(DuplicatePluginError) as caught:
            registry.register(second, owner)
        assert caught.value.distributions == ("mine", owner)


def test_registering_another_contract_is_refused() -> None:
    registry = Registry([])
    with pytest.raises(BackendUnavailableError) as caught:
        registry.register(spec(version=7), "mine")
    assert "contract version 7" in caught.value.reason
    assert isinstance(caught.value, TrunnionError)
    assert registry.names() == ()


def test_the_default_registry_is_one_and_imports_nothing_heavy() -> None:
    assert default_registry() is default_registry()
    code = """
        import sys
        from trunnion.registry import default_registry
        default_registry()
        assert not {"pluggy", "importlib.metadata", "torch", "cuda"} & set(sys.modules)
        names = default_registry().names()
        assert not {"pluggy", "torch", "cuda"} & set(sys.modules)
        assert names == tuple(sorted(names))
    """
    subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)], check=True, env={"PYTHONPATH": ":".join(sys.path)}
    )


@pytest.mark.parametrize("ask", ["plugin", "backend", "compiler"])
def test_a_name_that_nobody_has_is_a_typed_error_whatever_it_is(ask):
    wanted = getattr(default_registry(), ask)
    for name in ("nowhere", "\ud800", ""):
        with pytest.raises(UnknownBackendError):
            wanted(name)
    for other in (3, None, b"nvrtc", ["nvrtc"]):
        with pytest.raises(ArgumentTypeError, match="'name'"):
            wanted(other)


@pytest.mark.parametrize(
    "given", [5, "acme", [5], {"acme": 1}, torch.ones(3), (point for point in [object()])]
)
def test_what_is_no_entry_point_is_refused_at_once(given: Any) -> None:
    with pytest.raises(ArgumentTypeError, match="entry_points"):
        Registry(given)


def test_a_generator_of_entry_points_will_do(make_plugin: MakePlugin) -> None:
    assert Registry(make_plugin(name) for name in ("acme", "zeta")).names() == ("acme", "zeta")


ASKED: dict[str, Callable[[Registry], object]] = {
    "names": Registry.names,
    "backend": lambda registry: registry.backend("acme"),
    "compiler": lambda registry: registry.compiler("acme"),
    "backends": Registry.backends,
    "compilers": Registry.compilers,
    "unavailable": Registry.unavailable,
    "owner": lambda registry: registry.owner("acme"),
    "plugin": lambda registry: registry.plugin("acme"),
    "plugins": Registry.plugins,
    "register": lambda registry: registry.register(spec("acme")),
}


def refuse(*_: object, **__: object) -> Any:
    raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))


@pytest.mark.parametrize("method", ASKED)
def test_what_the_system_refuses_while_plugins_are_listed_is_typed(
    method: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(platformdirs, "user_cache_path", lambda name: tmp_path / name)  # where nobody knows
    remembered._memory.cache_clear()
    monkeypatch.setattr(os, "open", refuse)
    with pytest.raises(DeviceRequirementError, match=r"Too many open files.*ulimit -n"):
        ASKED[method](Registry())


@pytest.mark.parametrize("method", ["plugins", "owner"])
def test_what_the_system_refuses_while_an_owner_is_read_is_typed(
    method: str, make_plugin: MakePlugin, monkeypatch: pytest.MonkeyPatch
) -> None:
    registry = Registry([make_plugin("acme")])
    monkeypatch.setattr(importlib.metadata.Distribution, "metadata", property(refuse))
    monkeypatch.setattr(importlib.metadata.Distribution, "name", property(refuse), raising=False)
    with pytest.raises(DeviceRequirementError, match=r"Too many open files.*ulimit -n"):
        ASKED[method](registry)


def test_what_the_system_refuses_while_a_hint_is_sought_is_typed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.metadata, "distributions", refuse)
    with pytest.raises(DeviceRequirementError, match=r"Too many open files.*ulimit -n"):
        Registry([]).backend("nowhere")


def test_a_plugin_that_is_uninstalled_while_all_are_loaded_hurts_no_other(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    registry = Registry()
    names = registry.names()
    monkeypatch.setattr(Registry, "_names", lambda _: ("vanished", *names))
    assert {spec.name for spec in registry.backends()} <= set(names)
    (gone,) = (one for one in registry.unavailable() if one.name == "vanished")
    assert "uninstalled" in gone.reason
