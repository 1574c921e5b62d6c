"""The manual's page of the command line names every command, every option, and every key of every document."""

from __future__ import annotations

import io
import json
import re
import subprocess
import sys
from contextlib import redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from trunnion.cli import main
from trunnion.cli.application import application
from trunnion.cli.cache import cache_commands
from trunnion.cli.export import export_commands
from trunnion.cli.run_result import Outcome

if TYPE_CHECKING:
    from forked_python.client import ForkedPython

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "cli.md").read_text("utf-8")


def _section(command: str) -> str:
    found = re.search(rf"^## trunnion {command}$(.*?)(?=^## |\Z)", PAGE, re.MULTILINE | re.DOTALL)
    assert found is not None, f"no section for trunnion {command}"
    return found[1]


def _named(command: str) -> set[str]:
    return set(re.findall(r"`(\w+)`", _section(command)))


def _document(*words: str) -> object:
    done = subprocess.run(
        [sys.executable, "-m", "trunnion", *words, "--json"], capture_output=True, text=True, check=True
    )
    return json.loads(done.stdout)


def _help(*words: str) -> str:
    with redirect_stdout(io.StringIO()) as said:
        assert main([*words, "--help"]) == 0
    return said.getvalue()


COMMANDS = [command.name for command in application().registered_commands]
EXPORT_COMMANDS = [command.name for command in export_commands("").registered_commands]
CACHE_COMMANDS = [command.name for command in cache_commands("").registered_commands]


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_its_section_and_a_block_that_runs(command: str) -> None:
    assert re.search(rf'^```python\n.*?trunnion\(\s*"{command}"', _section(command), re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("command", COMMANDS)
def test_every_option_is_named(command: str) -> None:
    said = _help(command)
    options = set(re.findall(r"^\s+(--[a-z-]+)", said, re.MULTILINE)) - {"--help", "--json"}
    assert options <= set(re.findall(r"--[a-z-]+", _section(command)))


@pytest.mark.parametrize("command", CACHE_COMMANDS)
def test_every_command_of_the_cache_is_named_with_its_options(command: str) -> None:
    said = _help("cache", command)
    options = set(re.findall(r"^\s+(--[a-z-]+)", said, re.MULTILINE)) - {"--help", "--json"}
    assert "--folder" in options
    assert options <= set(re.findall(r"--[a-z-]+", _section("cache")))
    assert re.search(rf"^\| `{command}\b", _section("cache"), re.MULTILINE)


@pytest.mark.parametrize("command", EXPORT_COMMANDS)
def test_every_exporter_is_named_with_its_options(command: str) -> None:
    said = _help("export", command)
    options = set(re.findall(r"^\s+(?:-\w, |)(--[a-z-]+)", said, re.MULTILINE)) - {"--help", "--json"}
    assert "--name" in options
    assert options <= set(re.findall(r"--[a-z-]+", _section("export")))
    assert re.search(rf"^`trunnion export {command} ", _section("export"), re.MULTILINE)


def test_the_groups_of_commands_are_those_that_this_page_is_tested_for() -> None:
    assert [group.name for group in application().registered_groups] == ["cache", "export"]


@pytest.mark.parametrize(("command", "words"), [("doctor", []), ("inspect", ["vector_add"])])
def test_every_key_is_named(command: str, words: list[str]) -> None:
    document = _document(command, *words)
    assert isinstance(document, dict)
    assert set(document) <= _named(command)


def test_every_key_of_a_run_is_named(forked_python: ForkedPython) -> None:
    words = ["run", "vector_add", "--simulate", "--json"]
    done = forked_python(f"from trunnion.cli import main\nraise SystemExit(main({words}))")
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    assert isinstance(document, dict)
    assert set(document) <= _named("run") | _named("demo")


@pytest.mark.parametrize("words", [["info"], ["explain", "vector_add", "--target", "sm_90a"]])
def test_every_key_of_the_cache_is_named(words: list[str]) -> None:
    document = _document("cache", *words)
    assert isinstance(document, dict)
    assert set(document) <= _named("cache")


def test_every_key_of_a_row_is_named() -> None:
    (row, *_) = _document("backends")
    assert set(row) <= _named("backends")
    assert set(Outcome.__slots__) <= _named("demo")
