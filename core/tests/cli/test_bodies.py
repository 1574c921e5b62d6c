"""Modules of bodies: found, wrong, missing, hostile."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from trunnion.cli.bodies import load_bodies
from trunnion.errors import ProgramError

if TYPE_CHECKING:
    from pathlib import Path


def test_bodies_of_a_file(tmp_path: Path) -> None:
    path = tmp_path / "bodies.py"
    path.write_text("BODIES = {'k': print}\n")
    assert load_bodies(str(path)) == {"k": print}
    assert load_bodies("") == {}


def test_bodies_of_a_module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a_module_of_bodies.py").write_text("BODIES = {'k': print}\n")
    monkeypatch.syspath_prepend(tmp_path)
    assert load_bodies("a_module_of_bodies") == {"k": print}


@pytest.mark.parametrize(
    "text",
    [
        "BODIES = [",
        "BODIES = []",
        "",
        "BODIES = {'k': 5}",
        "BODIES = {5: print}",
        "import no_such_module_anywhere",
        "from json import no_such_name",
        "\0",
    ],
)
def test_a_wrong_file_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "bodies.py"
    path.write_text(text)
    with pytest.raises(ProgramError) as caught:
        load_bodies(str(path))
    assert caught.value.field == "--bodies"


@pytest.mark.parametrize(
    "name",
    [
        "no_such_module",
        "json",
        "..",
        ".x",
        "a..b",
        "a-b",
        "\x1b[31m",
        "x" * 5000 + ".py",
        "a\0.py",
        "missing.py",
    ],
)
def test_a_wrong_name_is_refused(name: str) -> None:
    with pytest.raises(ProgramError) as caught:
        load_bodies(name)
    assert caught.value.field == "--bodies"
    assert "\x1b" not in str(caught.value)


def test_a_folder_is_no_module(tmp_path: Path) -> None:
    (tmp_path / "bodies.py").mkdir()
    with pytest.raises(ProgramError):
        load_bodies(str(tmp_path / "bodies.py"))


def test_what_a_module_raises_on_its_own_is_its_own(tmp_path: Path) -> None:
    path = tmp_path / "bodies.py"
    path.write_text("1 / 0\n")
    with pytest.raises(ZeroDivisionError):
        load_bodies(str(path))
