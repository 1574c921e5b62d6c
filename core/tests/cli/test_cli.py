"""The command as a process: exit statuses, streams, and what it imports."""

from __future__ import annotations

import json
import subprocess
import sys
from importlib.metadata import version

import pytest

_COMMAND = "import sys; from trunnion.cli import main; status = main({words!r}); {after}; sys.exit(status)"


def trunnion(*words: str, before: str = "pass", after: str = "pass") -> subprocess.CompletedProcess[str]:
    """Run the command in a fresh process, between two statements."""
    source = f"{before}\n" + _COMMAND.format(words=list(words), after=after)
    return subprocess.run(
        [sys.executable, "-c", source], capture_output=True, text=True, check=False, timeout=120
    )


@pytest.mark.parametrize("library", ["typer", "rich"])
def test_a_missing_library_is_named_with_what_to_install(library: str) -> None:
    done = trunnion("backends", before=f"import sys; sys.modules[{library!r}] = None")
    assert done.returncode == 2
    assert library in done.stderr
    assert "pip install 'trunnion[cli]'" in done.stderr
    assert "Traceback" not in done.stderr


def test_another_missing_module_is_not_hidden() -> None:
    done = trunnion("backends", before="import sys; sys.modules['trunnion.cli.demo'] = None")
    assert "ModuleNotFoundError" in done.stderr


def test_backends_imports_no_tensor_library() -> None:
    heavy = "assert not {'torch', 'numpy', 'cuda', 'tvm_ffi', 'cutlass'} & set(sys.modules)"
    done = trunnion("backends", "--json", after=heavy)
    assert done.returncode == 0, done.stderr
    assert isinstance(json.loads(done.stdout), list)


def test_the_version_is_the_packages() -> None:
    done = trunnion("--version")
    assert done.returncode == 0, done.stderr
    assert done.stdout == f"trunnion {version('trunnion')}\n"


def test_help_lists_the_commands() -> None:
    done = trunnion("--help")
    assert done.returncode == 0
    assert all(command in done.stdout for command in ("backends", "run", "demo", "--traceback"))


@pytest.mark.parametrize("words", [["nonsense"], ["run"], ["demo", "--nonsense"]])
def test_a_mistyped_command_exits_with_2(words: list[str]) -> None:
    done = trunnion(*words)
    assert done.returncode == 2
    assert "Traceback" not in done.stderr
