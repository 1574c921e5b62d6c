"""The command as a process: exit statuses, streams, and what it imports."""

from __future__ import annotations

import json
import os
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


@pytest.mark.parametrize("library", ["typer", "rich"])
def test_a_missing_library_is_a_document_too(library: str) -> None:
    done = trunnion("backends", "--json", before=f"import sys; sys.modules[{library!r}] = None")
    assert done.returncode == 2
    assert "pip install 'trunnion[cli]'" in json.loads(done.stdout)["error"]["message"]


@pytest.mark.parametrize(
    ("library", "words"),
    [
        ("platformdirs", ["backends"]),
        ("platformdirs", ["doctor"]),
        ("torch", ["run", "vector_add", "--simulate"]),
        ("torch", ["demo"]),
    ],
)
def test_every_library_that_is_missing_is_one_message(library: str, words: list[str]) -> None:
    missing = f"import sys; sys.modules[{library!r}] = None"
    done = trunnion(*words, before=missing)
    assert (done.returncode, done.stdout) == (2, "")
    assert f"this command needs {library}; install it: pip install" in done.stderr
    assert len(done.stderr.splitlines()) == 1
    done = trunnion(*words, "--json", before=missing)
    assert done.returncode == 2
    assert library in json.loads(done.stdout)["error"]["message"]


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
    assert all(
        command in done.stdout
        for command in ("backends", "doctor", "inspect", "run", "demo", "--traceback", "--json")
    )


@pytest.mark.parametrize("words", [["nonsense"], ["run"], ["demo", "--nonsense"]])
def test_a_mistyped_command_exits_with_2(words: list[str]) -> None:
    done = trunnion(*words)
    assert done.returncode == 2
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    "words", [["inspect", "hopper_gemm"], ["inspect", "hopper_gemm", "--json"], ["doctor"]]
)
def test_a_reader_who_has_seen_enough_gets_no_traceback(words: list[str]) -> None:
    source = _COMMAND.format(words=words, after="pass")
    with subprocess.Popen(
        [sys.executable, "-c", source], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        process.stdout.close()
        assert process.stderr is not None
        said = process.stderr.read()
    assert process.returncode == 1
    assert said == ""


def test_a_terminal_without_a_character_shows_its_code() -> None:
    source = _COMMAND.format(words=["inspect", "\u00fc\u4e2d"], after="pass")
    for encoding in ("ascii", "latin-1"):
        done = subprocess.run(
            [sys.executable, "-c", source],
            capture_output=True,
            check=False,
            env={**os.environ, "PYTHONIOENCODING": encoding},
        )
        assert done.returncode == 1
        assert done.stderr.startswith(b"ProgramError: got '\\xfc\\u4e2d'")


def test_the_package_can_be_run_as_a_module() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "trunnion", "--version", "--json"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert json.loads(done.stdout) == {"trunnion": version("trunnion")}
