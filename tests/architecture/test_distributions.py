"""The manifests agree, and importing core stays light."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from typing import TYPE_CHECKING, Any

import pytest
from architecture_rules.source import ROOT, pyprojects

if TYPE_CHECKING:
    from pathlib import Path

LIGHT = "assert not {'torch', 'numpy', 'cuda', 'tvm_ffi', 'cutlass'} & set(sys.modules), sorted(sys.modules)"


def _manifest(path: Path) -> dict[str, Any]:
    return tomllib.loads(path.read_text("utf-8"))


def version_conflicts(manifests: list[dict[str, Any]]) -> list[str]:
    """Return versions that differ from the first manifest's, and pins of one of ours to another version."""
    version = manifests[0]["project"]["version"]
    conflicts = []
    for manifest in manifests:
        project = manifest["project"]
        if project["version"] != version:
            conflicts.append(f"{project['name']} is {project['version']}, not {version}")
        extras = project.get("optional-dependencies", {}).values()
        for requirement in (*project.get("dependencies", ()), *(item for extra in extras for item in extra)):
            pin = re.fullmatch(r"trunnion(?:-[a-z-]+)?(?:\[.*\])?==(.*)", requirement)
            if pin and pin[1] != version:
                conflicts.append(f"{project['name']} asks for {requirement}")
    return conflicts


def test_every_distribution_has_the_same_version() -> None:
    assert len(pyprojects()) > 1
    assert not version_conflicts([_manifest(path) for path in pyprojects()])


def test_version_conflicts_are_seen() -> None:
    core = {
        "project": {"name": "trunnion", "version": "1.0", "optional-dependencies": {"x": ["trunnion-x==1.1"]}}
    }
    other = {"project": {"name": "trunnion-x", "version": "1.1", "dependencies": ["trunnion==1.1"]}}
    assert len(version_conflicts([core, other])) == 3
    assert not version_conflicts([core | {"project": core["project"] | {"optional-dependencies": {}}}])


@pytest.mark.parametrize("path", pyprojects(), ids=lambda path: path.parent.name)
def test_a_distribution_brings_its_licence_and_its_types(path: Path) -> None:
    assert (path.parent / "LICENSE").read_text("utf-8") == (ROOT / "LICENSE").read_text("utf-8")
    assert list(path.parent.glob("src/*/py.typed"))


def test_the_root_installs_nothing() -> None:
    assert "project" not in _manifest(ROOT / "pyproject.toml")


def test_everything_that_is_needed_is_pinned() -> None:
    pinned = {
        re.split(r"[=<>~]", line)[0].lower().replace("_", "-")
        for line in (ROOT / "constraints.txt").read_text("utf-8").splitlines()
        if "==" in line
    }
    root = _manifest(ROOT / "pyproject.toml")
    wanted = [item for group in root["dependency-groups"].values() for item in group if isinstance(item, str)]
    for path in pyprojects():
        project = _manifest(path)["project"]
        wanted += project["dependencies"]
        wanted += [item for extra in project.get("optional-dependencies", {}).values() for item in extra]
    names = {re.split(r"[\[=<>~ ]", item)[0].lower() for item in wanted}
    assert {name for name in names if not name.startswith("trunnion")} <= pinned


def _python(code: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=120
    )


@pytest.mark.parametrize(
    "use",
    [
        "import trunnion",
        "import trunnion; trunnion.compile; trunnion.load",
        "import trunnion; trunnion.default_registry()",
        "import trunnion; trunnion.default_registry().plugins()",
        "import trunnion; [getattr(trunnion, name) for name in trunnion.__all__]",
        "import trunnion.examples; trunnion.examples.EXAMPLES",
    ],
)
def test_core_loads_nothing_heavy(use: str) -> None:
    done = _python(f"import sys\n{use}\n{LIGHT}")
    assert done.returncode == 0, done.stderr


def test_the_light_check_can_fail() -> None:
    assert (
        _python(f"import sys, types\nsys.modules['torch'] = types.ModuleType('torch')\n{LIGHT}").returncode
        != 0
    )


@pytest.mark.parametrize("order", ["sorted", "reversed"])
def test_a_public_name_means_the_same_whatever_was_used_before_it(order: str) -> None:
    """Importing a submodule binds its name in the package; none may bear the name of something public."""
    done = _python(
        f"import trunnion, types\nfor name in {order}(trunnion.__all__): getattr(trunnion, name)\n"
        "modules = [n for n in trunnion.__all__ if isinstance(getattr(trunnion, n), types.ModuleType)]\n"
        "assert not modules, modules"
    )
    assert done.returncode == 0, done.stderr


def test_importing_the_package_loads_no_part_of_it() -> None:
    done = _python(
        "import sys, trunnion\n"
        "loaded = {name for name in sys.modules if name.startswith('trunnion.')}\n"
        "assert loaded <= {'trunnion.errors', 'trunnion.messages'}, loaded"
    )
    assert done.returncode == 0, done.stderr
