"""One at a time, with a message for who waits, an end to waiting, and none that has no end."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from trunnion.errors import LifecycleError
from trunnion.storage import turns as subject
from trunnion.storage.turns import DeadlockError, Rank, turn
from trunnion.testing.forked import told_by_a_child
from trunnion.turns import Turns

PATIENCE = 60.0  # seconds: a wait that should not be is as long


def taken(place: Path, seconds: float = PATIENCE, rank: Rank = Rank.ARTIFACT) -> str:
    """Take a turn; tell what came of it."""
    try:
        with turn(place, "it", seconds, rank=rank):
            return "taken"
    except DeadlockError:
        return "not waited for"
    except TimeoutError as error:
        return str(error)


@pytest.fixture
def other() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(1)


@pytest.mark.parametrize("kind", ["file", "folder"])
def test_the_second_waits_for_the_first(
    tmp_path: Path, kind: str, caplog: pytest.LogCaptureFixture, other: ThreadPoolExecutor
) -> None:
    place = tmp_path / "place"
    if kind == "folder":
        place.mkdir()
    with turn(place, "it"):
        said = other.submit(taken, place, 0).result(PATIENCE)
        assert f"process {os.getpid()} has held the lock" in said
        waiting = other.submit(taken, place)
        with pytest.raises(TimeoutError):
            waiting.result(0.05)
    assert waiting.result(PATIENCE) == "taken"
    assert caplog.text == ""


def test_threads_take_turns(tmp_path: Path) -> None:
    inside, most = 0, 0

    def work() -> None:
        nonlocal inside, most
        for _ in range(20):
            with turn(tmp_path / "lock", "it"):
                inside += 1
                most = max(most, inside)
                inside -= 1

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (inside, most) == (0, 1)
    assert list(tmp_path.iterdir()) == [], "no lock's file is left"


PROCESS = """
    import sys
    from pathlib import Path
    from trunnion.storage.turns import turn

    for _ in range(200):
        with turn(Path(sys.argv[1]), "it"):
            Path(sys.argv[2]).mkdir()  # which fails if another process is in its turn
            Path(sys.argv[2]).rmdir()
"""


def test_processes_take_turns_though_each_removes_the_file(tmp_path: Path) -> None:
    words = [
        sys.executable,
        "-c",
        textwrap.dedent(PROCESS),
        str(tmp_path / "lock"),
        str(tmp_path / "occupied"),
    ]
    children = [subprocess.Popen(words) for _ in range(4)]
    assert [child.wait() for child in children] == [0] * 4
    assert list(tmp_path.iterdir()) == []


# Within a turn of one's own ------------------------------------------------------------------------------------------


def test_a_handler_does_not_wait_for_the_turn_that_it_interrupted(tmp_path: Path) -> None:
    said: list[str] = []
    before = signal.signal(signal.SIGALRM, lambda *_: said.append(taken(tmp_path / "lock")))
    try:
        with turn(tmp_path / "lock", "it"):
            signal.raise_signal(signal.SIGALRM)
            assert said == ["not waited for"]
    finally:
        signal.signal(signal.SIGALRM, before)
    assert taken(tmp_path / "lock") == "taken"


def test_a_thread_that_the_holder_joins_does_not_wait_for_it_for_long(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """As a handler does that starts a pool: nobody sees that the one waits for the other."""
    monkeypatch.setattr(subject, "_OWN_SECONDS", 0.1)
    monkeypatch.setattr(subject, "_QUIET_SECONDS", 0.0)
    said: list[str] = []
    thread = threading.Thread(target=lambda: said.append(taken(tmp_path / "lock")))
    with turn(tmp_path / "lock", "it"):
        thread.start()
        thread.join(PATIENCE / 2)
        assert said == ["not waited for"]
    assert f"which this very process {os.getpid()} builds; it is waited for up to 0.1 s" in caplog.text


def test_a_handler_does_not_wait_for_the_turn_that_it_keeps_from_coming(
    tmp_path: Path, other: ThreadPoolExecutor
) -> None:
    """What it interrupts is a wait."""
    lock, said = tmp_path / "lock", []

    def handle(*_: object) -> None:
        said.append(taken(lock))
        leave.set()

    inside, leave = threading.Event(), threading.Event()

    def hold() -> None:
        with turn(lock, "it"):
            inside.set()
            leave.wait(PATIENCE)

    before = signal.signal(signal.SIGALRM, handle)
    try:
        other.submit(hold)
        assert inside.wait(PATIENCE)
        signal.setitimer(signal.ITIMER_REAL, 0.05)
        assert taken(lock) == "taken"
    finally:
        signal.signal(signal.SIGALRM, before)
    assert said == ["not waited for"]


def test_what_a_builder_needs_is_waited_for_and_nothing_else(
    tmp_path: Path, other: ThreadPoolExecutor
) -> None:
    """Else two of them, who have one each, would wait for the other's: in one process or in two."""
    held, leave = threading.Barrier(2), threading.Event()

    def hold(rank: Rank) -> None:
        with turn(tmp_path / rank.name, "it", rank=rank):
            held.wait(PATIENCE)
            leave.wait(PATIENCE)

    for mine, theirs, said in (
        (Rank.ARTIFACT, Rank.PART, "has held the lock"),
        (Rank.ARTIFACT, Rank.ARTIFACT, "not waited for"),
        (Rank.PART, Rank.PART, "not waited for"),
        (Rank.PART, Rank.ARTIFACT, "not waited for"),
    ):
        done = other.submit(hold, theirs)
        held.wait(PATIENCE)
        with turn(tmp_path / "mine", "it", rank=mine):
            assert said in taken(tmp_path / theirs.name, 0.05, theirs), (mine, theirs)
            assert taken(tmp_path / "free", PATIENCE, theirs) == "taken"
        leave.set()
        done.result(PATIENCE)
        leave.clear()


def test_threads_that_wait_for_each_other_by_another_turn_are_told(
    tmp_path: Path, other: ThreadPoolExecutor
) -> None:
    """As a program that is built at its first call, by one thread, and called by a handler of another, which builds."""
    program, both = Turns("the program is being built"), threading.Barrier(2)

    def build() -> str:
        with program.turn():
            both.wait(PATIENCE)
            return taken(tmp_path / "lock")

    with turn(tmp_path / "lock", "it"):
        building = other.submit(build)
        both.wait(PATIENCE)
        try:
            with program.turn():
                mine = "taken"
        except LifecycleError:
            mine = "not waited for"
    said = {mine, building.result(PATIENCE)}
    assert "not waited for" in said


# Forks ---------------------------------------------------------------------------------------------------------------


def test_a_forked_child_keeps_nobody_waiting(tmp_path: Path, other: ThreadPoolExecutor) -> None:
    reading, writing = os.pipe()
    with turn(tmp_path / "lock", "it"):
        child = other.submit(forked, reading, writing).result(PATIENCE)
    os.close(reading)
    try:
        assert taken(tmp_path / "lock", 0) == "taken"
    finally:
        os.close(writing)
        os.waitpid(child, 0)


def forked(reading: int, writing: int) -> int:
    """Fork a child that stays until the parent closes its end."""
    child = os.fork()
    if child == 0:
        os.close(writing)
        os.read(reading, 1)
        os._exit(0)
    return child


@pytest.mark.filterwarnings(
    "ignore:This process:DeprecationWarning"
)  # forking beside threads is what is tested
def test_a_child_keeps_nobody_waiting_for_a_parent_that_was_killed(tmp_path: Path) -> None:
    """It has closed what it inherited: nobody is left who could unlock it."""
    text = """
        import os, sys, signal
        from pathlib import Path
        from trunnion.storage.turns import turn
        with turn(Path(sys.argv[1]), "it"):
            if os.fork() == 0:
                sys.stdin.read()
                os._exit(0)
            print("forked", flush=True)
            os.kill(os.getpid(), signal.SIGKILL)
    """
    words = [sys.executable, "-c", textwrap.dedent(text), str(tmp_path / "lock")]
    parent = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    with parent:
        assert parent.stdout is not None
        assert parent.stdout.readline() == "forked\n"
        parent.wait()
        assert taken(tmp_path / "lock", 30) == "taken"


def test_a_child_leaves_the_turn_to_its_parent(tmp_path: Path, other: ThreadPoolExecutor) -> None:
    """It leaves the block, as an exception does, and neither unlocks it nor closes what has its number now."""
    place = tmp_path / "lock"

    def leave() -> str:
        mine.__exit__(None, None, None)
        os.fstat(opened)
        return str(place.exists())

    mine = turn(place, "it")
    held = mine.__enter__()
    held.confirm()

    def in_child() -> str:
        nonlocal opened
        opened = os.open("/", os.O_RDONLY)  # the number of what was closed in the child
        with pytest.raises(DeadlockError):
            held.confirm()
        return leave()

    opened = -1
    assert told_by_a_child(in_child) == "True"
    assert "has held the lock" in other.submit(taken, place, 0).result(PATIENCE)
    held.confirm()
    mine.__exit__(None, None, None)
    assert other.submit(taken, place, 0).result(PATIENCE) == "taken"


def test_a_child_does_not_wait_for_a_parent_that_waits_for_it(tmp_path: Path) -> None:
    with turn(tmp_path / "lock", "it"):
        assert told_by_a_child(lambda: taken(tmp_path / "lock")) == "not waited for"


def test_a_child_waits_for_another_thread_of_its_parent(tmp_path: Path, other: ThreadPoolExecutor) -> None:
    inside, leave = threading.Event(), threading.Event()

    def hold() -> None:
        with turn(tmp_path / "lock", "it"):
            inside.set()
            leave.wait(PATIENCE)

    done = other.submit(hold)
    assert inside.wait(PATIENCE)
    threading.Timer(0.2, leave.set).start()
    assert told_by_a_child(lambda: taken(tmp_path / "lock")) == "taken"
    done.result(PATIENCE)


def test_a_child_has_none_of_its_parents_descriptors(tmp_path: Path, other: ThreadPoolExecutor) -> None:
    def held() -> list[str]:
        links = [str(link.resolve()) for link in Path("/proc/self/fd").iterdir()]
        return [link for link in links if link.startswith(str(tmp_path))]

    with turn(tmp_path / "lock", "it"):
        assert len(held()) == 1
        assert told_by_a_child(lambda: str(held())) == "[]"
