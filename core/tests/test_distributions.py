"""What the metadata say, of distributions that are written for the test."""

from __future__ import annotations

from importlib import metadata
from typing import TYPE_CHECKING

import pytest

from trunnion.distributions import canonical, installation_hint, installed, requirements

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    Install = Callable[..., Path]

CORE = (
    'trunnion-cc[all]==1; extra == "c-c"',
    "trunnion-cc==1; extra == 'all'",
    "trunnion-acme-one (>=1.0) ; python_version > '3' and extra == 'acme-one'",
    "rich>=13; extra == 'cli'",
    "trunnion-other; extra == 'more'",
)


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Install:
    """Install a distribution that is nothing but its metadata, into a folder that is searched first."""
    monkeypatch.syspath_prepend(str(tmp_path))

    def write(name: str, *needs: str, version: str = "1.0") -> Path:
        folder = tmp_path / f"{name.replace('-', '_')}-{version}.dist-info"
        folder.mkdir()
        lines = ["Metadata-Version: 2.1", f"Name: {name}", f"Version: {version}"]
        text = "\n".join([*lines, *(f"Requires-Dist: {need}" for need in needs)])
        (folder / "METADATA").write_text(f"{text}\n", encoding="utf-8")
        return folder

    return write


def test_names_are_compared_in_one_form() -> None:
    assert canonical("Acme_One.Two--x") == "acme-one-two-x"


def test_the_first_of_two_distributions_is_the_one_that_python_imports(install: Install) -> None:
    before = metadata.version("pluggy")
    install("Pluggy", version="99.0")
    assert before != "99.0"
    assert installed()["pluggy"].version == "99.0"


def test_damaged_metadata_hurt_nobody(install: Install) -> None:
    (install("trunnion-broken") / "METADATA").write_text("\n", encoding="utf-8")
    assert "trunnion" in installed()


def test_requirements_are_names_and_the_extras_that_ask_for_them(install: Install) -> None:
    install(
        "acme-thing", "Foo.Bar[x]>=1,<2", "baz; extra == 'a'", "baz>1; extra == 'b'", "q; extra == 'a'", "q"
    )
    assert requirements(installed()["acme-thing"]) == {
        "foo-bar": frozenset(),
        "baz": {"a", "b"},
        "q": frozenset(),
    }
    install("acme-bare")
    assert requirements(installed()["acme-bare"]) == {}


@pytest.mark.parametrize("name", ["acme_one", "acme-one", "ACME_ONE", "acme_on"])
def test_a_plugin_of_this_project_is_installed_by_its_extra(install: Install, name: str) -> None:
    install("trunnion", *CORE)
    told = "trunnion-acme-one is not installed: pip install 'trunnion[acme-one]'"
    assert installation_hint(name, "backend") == told


def test_a_distribution_that_is_there_and_brings_none_is_told(install: Install) -> None:
    install("trunnion", *CORE)
    install("trunnion-acme-one")
    told = "trunnion-acme-one is installed and announces no backend of that name"
    assert installation_hint("acme_one", "backend") == told
    assert installation_hint("acme_on", "backend").startswith("for more: pip install 'trunnion[all]'")


@pytest.mark.parametrize("name", ["zeta", "cli", "more", "all", "", "a b\n"])
def test_of_any_other_name_the_rule_is_told(install: Install, name: str) -> None:
    """An extra of another name than what it installs brings no plugin of its name."""
    install("trunnion", *CORE)
    assert installation_hint(name, "backend").endswith("as a rule trunnion-<name>")
