"""Several processes build one program at once, and some die in the middle: what is kept is whole, nothing else is."""

from __future__ import annotations

import fcntl
import os
import shutil
import signal
import subprocess
import sys

import pytest

from trunnion.artifacts.store import ArtifactStore

BUILD = """
import sys, trunnion
from dataclasses import replace
from trunnion import examples
from trunnion_cutedsl.examples.cutedsl_vector_add import EXAMPLE
cache, language, waiting = sys.argv[1:]
program = EXAMPLE.program if language == "cutedsl" else examples.load("vector_add").program
if waiting:
    (code,) = program.code
    text = f"import time; door = open({waiting!r}, 'w'); time.sleep(600)\\n{code.source}"
    program = replace(program, code=(replace(code, source=text),))
built = trunnion.compile(program, "cutedsl", target="sm_90a", cache=cache, trust=True)
print(built.artifact.digest, built.artifact.manifest.key)
"""
KILLER = """#!/bin/sh
for word in "$@"; do
  case "$word" in launcher.cc) kill -9 "$PPID"; exit 1;; esac
done
exec "{compiler}" "$@"
"""


def start(folder, language="cuda", *, waiting="", **environment):
    return subprocess.Popen(
        [sys.executable, "-c", BUILD, str(folder), language, str(waiting)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path)), **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def finish(child):
    said, errors = child.communicate(timeout=240)
    assert child.returncode == 0, errors
    return said.split()


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "cache"


@pytest.fixture
def killing(tmp_path):
    """Return a compiler that kills whoever has it compile a launcher."""
    compiler = shutil.which(os.environ.get("CXX", "g++"))
    script = tmp_path / "g++"
    script.write_text(KILLER.format(compiler=compiler), "utf-8")
    script.chmod(0o755)
    return {"CXX": str(script)}


def check(folder, key, digest):
    """The artifact is whole, nobody holds its lock, and nothing lies about."""
    store = ArtifactStore(folder)
    found = store.get(key)
    assert found is not None
    assert found.digest == digest
    assert [one.name for one in (folder / "entries").iterdir()] == [key]
    assert list((folder / "staging").iterdir()) == []
    assert list((folder / "corrupt").iterdir()) == []
    assert store.get_or_build(key, lambda _: pytest.fail("it is built again")).digest == digest


def test_eight_processes_make_one_artifact(folder):
    said = [finish(child) for child in [start(folder, "cutedsl") for _ in range(8)]]
    ((digest, key),) = {tuple(one) for one in said}
    check(folder, key, digest)


def test_killed_in_the_middle_of_a_build_it_frees_the_key(folder, killing):
    dead = start(folder, **killing)
    dead.communicate(timeout=240)
    assert dead.returncode == -signal.SIGKILL
    assert list((folder / "entries").iterdir()) == []
    assert list((folder / "staging").iterdir()) == [], (
        "it is built elsewhere, and lies there to be published alone"
    )
    digest, key = finish(start(folder))
    check(folder, key, digest)


def test_of_eight_that_begin_four_are_killed(folder, killing):
    children = [start(folder, **(killing if index % 2 else {})) for index in range(8)]
    said = []
    for child in children:
        out, errors = child.communicate(timeout=240)
        assert child.returncode in (0, -signal.SIGKILL), errors
        if child.returncode == 0:
            said.append(tuple(out.split()))
    assert len(said) >= 4
    ((digest, key),) = set(said)
    check(folder, key, digest)


def test_killed_while_cutedsl_compiles_it_leaves_no_process_and_no_folder(folder, tmp_path):
    """The text opens a pipe, which stays open as long as the process that compiles it lives."""
    pipe, scratch = tmp_path / "pipe", tmp_path / "scratch"
    os.mkfifo(pipe)
    scratch.mkdir()
    child = start(folder, "cutedsl", waiting=pipe, TMPDIR=str(scratch))
    with pipe.open() as opened:  # returns once the text runs
        (staging,) = scratch.glob("trunnion-cutedsl-*")
        with (staging / "lock").open() as lock:
            child.kill()
            child.communicate(timeout=240)
            assert opened.read() == "", "whoever compiled is dead"
            fcntl.flock(lock, fcntl.LOCK_EX)  # and so is whoever cleans up after it
        assert not staging.exists()
    assert list((folder / "staging").iterdir()) == [], (
        "it is built elsewhere, and lies there to be published alone"
    )
    digest, key = finish(start(folder, "cutedsl", TMPDIR=str(scratch)))
    check(folder, key, digest)
    assert not list(scratch.glob("trunnion-cutedsl-*"))
