"""The processes that compile: many at once, killed in the middle, gone when whoever started them is."""

from __future__ import annotations

import contextlib
import dataclasses
import errno
import itertools
import os
import resource
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

import trunnion
from trunnion.artifacts.store import ArtifactStore
from trunnion.errors import BackendUnavailableError, CompileError
from trunnion.storage.kernel_mark import kernel_mark
from trunnion.testing.interruption import interrupting
from trunnion_cutedsl import release
from trunnion_cutedsl.compiler import messages, staging, worker, workers
from trunnion_cutedsl.compiler.compiler import CuteDslCompiler
from trunnion_cutedsl.examples.cutedsl_vector_add import EXAMPLE

BUILD = """
import sys, trunnion
from trunnion_cutedsl.examples.cutedsl_vector_add import EXAMPLE
program = trunnion.compile(EXAMPLE.program, "cutedsl", target="sm_90a", cache=sys.argv[1], trust=True)
assert "cutlass" not in sys.modules
print(program.artifact.digest)
"""
HANG = """
import dataclasses, sys, trunnion
from trunnion_cutedsl.examples.cutedsl_vector_add import EXAMPLE
text = "print('running', file=open({place!r}, 'w'))\\nwhile True:\\n    pass\\n"
code = dataclasses.replace(EXAMPLE.program.code[0], source=text)
program = dataclasses.replace(EXAMPLE.program, code=(code,))
trunnion.compile(program, "cutedsl", target="sm_90a", cache=sys.argv[1], trust=True)
"""


def start(text, *arguments, temporary):
    temporary.mkdir(exist_ok=True)
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
        "TMPDIR": str(temporary),
    }
    return subprocess.Popen(
        [sys.executable, "-c", text, *map(str, arguments)],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def finish(child):
    said, errors = child.communicate(timeout=240)
    assert child.returncode == 0, errors
    return said.strip()


def gone(check):
    """Wait until something holds that a dying process brings about."""
    ticks = threading.Event()
    for _ in range(600):
        if check():
            return True
        ticks.wait(0.05)
    return False


def test_processes_that_build_one_program_at_once_end_with_one_artifact(tmp_path):
    cache, temporary = tmp_path / "cache", tmp_path / "tmp"
    children = [start(BUILD, cache, temporary=temporary) for _ in range(8)]
    assert len({finish(child) for child in children}) == 1
    store = ArtifactStore(cache)
    assert (
        len(list((store.root / "entries").glob("*"))) == 1
        or len(list(store.root.rglob("manifest.json"))) == 1
    )
    assert not list((store.root / "staging").iterdir())
    assert gone(lambda: not list(temporary.glob("trunnion-cutedsl-*")))


def test_threads_that_compile_at_once_get_the_same_image():
    images = []
    threads = [
        threading.Thread(
            target=lambda: images.append(
                trunnion.compile(EXAMPLE.program, "nvrtc", target="sm_90a", trust=True).image("cubin")
            )
        )
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(images) == 4
    assert len(set(images)) == 1


def test_a_builder_that_is_killed_leaves_nothing_and_the_next_one_builds(tmp_path):
    cache, temporary, place = tmp_path / "cache", tmp_path / "tmp", tmp_path / "running"
    child = start(HANG.format(place=str(place)), cache, temporary=temporary)
    assert gone(place.exists), child.poll()
    assert list(temporary.glob("trunnion-cutedsl-*"))
    os.kill(child.pid, signal.SIGKILL)
    child.communicate(timeout=60)
    assert gone(lambda: not list(temporary.glob("trunnion-cutedsl-*")))  # its worker saw it die
    assert finish(start(BUILD, cache, temporary=temporary))
    store = ArtifactStore(cache)
    assert not list((store.root / "staging").iterdir())


def test_the_folder_of_processes_that_were_all_killed_is_removed_by_the_next_worker(tmp_path, monkeypatch):
    monkeypatch.setattr(staging.tempfile, "tempdir", str(tmp_path))
    folder, lock = staging.make_staging()
    staging.sweep()
    assert folder.exists()  # somebody holds its lock
    os.close(lock)
    (folder / "work").mkdir()
    staging.sweep()
    assert not folder.exists()


@pytest.mark.parametrize("stays", [True, False])
def test_a_folder_that_is_swept_before_it_is_locked_is_made_again(tmp_path, monkeypatch, stays):
    """Whoever sweeps may have its lock still, or be done."""
    monkeypatch.setattr(staging.tempfile, "tempdir", str(tmp_path))
    flock, swept = staging.fcntl.flock, []

    def lock(descriptor, how):
        if not swept:
            monkeypatch.setattr(staging.fcntl, "flock", flock)
            (folder,) = tmp_path.iterdir()
            swept.append(staging.claim(folder))
            staging.discard(folder)
            if not stays:
                os.close(swept[0])
        flock(descriptor, how)

    monkeypatch.setattr(staging.fcntl, "flock", lock)
    folder, descriptor = staging.make_staging()
    assert swept[0] is not None
    assert staging.claim(folder) is None, "its lock is held"
    os.close(descriptor)
    if stays:
        os.close(swept[0])


@pytest.mark.parametrize("where", ["os", "fcntl"])
def test_a_folder_that_cannot_be_locked_is_removed(tmp_path, monkeypatch, where):
    opened = os.open

    def full(path, *arguments, **named):
        if where == "fcntl" or Path(path).name == "lock":
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return opened(path, *arguments, **named)

    monkeypatch.setattr(staging.tempfile, "tempdir", str(tmp_path))
    before = len(list(Path("/proc/self/fd").iterdir()))
    monkeypatch.setattr(getattr(staging, where), {"os": "open", "fcntl": "flock"}[where], full)
    with pytest.raises(OSError, match="No space left"):
        staging.make_staging()
    monkeypatch.undo()
    assert list(tmp_path.iterdir()) == []
    assert len(list(Path("/proc/self/fd").iterdir())) == before


def test_where_there_are_no_locks_a_folder_is_nobody_s_to_sweep(tmp_path, monkeypatch):
    def none(*_):
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr(staging.tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(staging.fcntl, "flock", none)
    folder, descriptor = staging.make_staging()
    staging.sweep()
    assert folder.exists()
    os.close(descriptor)


def test_nothing_is_left_among_temporary_files(tmp_path):
    temporary = tmp_path / "tmp"
    finish(start(BUILD, tmp_path / "cache", temporary=temporary))
    assert list(temporary.iterdir()) == []


@pytest.mark.parametrize("text", ["", "import os\nos.chdir('/')\n"], ids=["", "text that goes elsewhere"])
def test_the_folder_for_temporary_files_may_have_any_name(tmp_path, monkeypatch, pool, text):
    folder = tmp_path / os.fsdecode(b'it\'s "a"\\ttab \\ back\\slash, $HOME %s # gr\xc3\xb6\xc3\x9fe \xff')
    folder.mkdir()
    monkeypatch.setattr(staging.tempfile, "tempdir", str(folder))
    plan = EXAMPLE.program.plan()
    (code,) = EXAMPLE.program.code
    code = dataclasses.replace(code, source=f"{text}{code.source}")
    request = trunnion.CompileRequest(
        code=(code,), kernels=plan.kernels, target=trunnion.Target("cuda", "sm_90a"), plan=plan
    )
    assert CuteDslCompiler(pool).compile(request).kernels[0].symbol == "vector_add_0"


def test_what_is_not_ours_is_not_swept(tmp_path, monkeypatch):
    monkeypatch.setattr(staging.tempfile, "tempdir", str(tmp_path))
    target = tmp_path / "precious"
    target.mkdir()
    link = tmp_path / f"trunnion-cutedsl-{os.getuid()}-{kernel_mark()}-link"
    link.symlink_to(target)
    fresh = tmp_path / f"trunnion-cutedsl-{os.getuid()}-{kernel_mark()}-fresh"
    fresh.mkdir()  # whose maker has not made its lock yet
    staging.sweep()
    assert target.exists()
    assert fresh.exists()


def test_a_worker_that_has_nothing_to_do_lets_go_of_cutedsl_and_takes_the_next_job():
    """It does not end: nobody would take up a dead one before the next job."""
    pool = workers.Workers(seconds=0.05)
    try:
        for _ in range(2):
            answer, _ = pool.run("sm_90a", job("raise KeyError"), 60)
            assert answer["failed"]["kind"] == "KeyError"
            (worker,) = pool._workers.values()
            place = Path("/proc", str(worker.process.pid))
            assert gone(lambda place=place: "cutlass" not in (place / "maps").read_text())
            assert "\nState:\tZ" not in (place / "status").read_text()
            assert worker.is_fresh()
            assert [one.name for one in worker.folder.iterdir()] == ["lock"]
        assert pool.run("sm_90a", job("raise KeyError"), 60)[0]["failed"]["kind"] == "KeyError"
        assert pool._workers == {"sm_90a": worker}
    finally:
        pool.close()
    assert worker.process.returncode is not None
    assert not worker.folder.exists()


PARENT = """
import os, sys
from trunnion_cutedsl.compiler.workers import workers
answer, _ = workers().run("sm_90a", {job!r}, 60)
assert answer["failed"]["kind"] == "KeyError"
(worker,) = workers()._workers.values()
if os.fork() == 0:
    sys.stdin.read()
    os._exit(0)
print(worker.process.pid, flush=True)
os.kill(os.getpid(), 9)
"""


def test_a_worker_ends_with_a_parent_that_was_killed_though_a_forked_child_lives(tmp_path):
    words = [sys.executable, "-W", "ignore", "-c", PARENT.format(job=job("raise KeyError"))]
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
        "TMPDIR": str(tmp_path),
    }
    with subprocess.Popen(
        words, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as child:
        assert int(child.stdout.readline())
        assert gone(lambda: not list(tmp_path.glob("trunnion-cutedsl-*")))
        child.stdin.close()


def job(source):
    return {
        "arch": "sm_90a",
        "options": [],
        "modules": [],
        "file_name": "k.py",
        "source": source,
        "kernels": [],
    }


@pytest.fixture
def pool():
    found = workers.Workers()
    yield found
    found.close()


def test_a_stopped_worker_is_waited_for_no_longer_than_agreed_and_replaced(pool):
    assert pool.run("sm_90a", job("raise KeyError"), 60)[0]["failed"]["kind"] == "KeyError"
    (stopped,) = pool._workers.values()
    os.kill(stopped.process.pid, signal.SIGSTOP)
    with pytest.raises(workers.TooSlowError):
        pool.run("sm_90a", job("raise KeyError"), 0.2)
    assert pool.run("sm_90a", job("raise KeyError"), 60)[0]["failed"]["kind"] == "KeyError"
    pool.close()
    assert stopped.process.returncode == -signal.SIGKILL
    assert not stopped.folder.exists()


@pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning")  # one that goes with its frame
def test_a_child_ends_with_its_job_wherever_that_is_interrupted(pool):
    """One whose connection somebody keeps would wait for its job for ever."""
    codes = [workers.Workers._child.__wrapped__, workers.Workers._open, workers._Worker.child]

    def of_the_job(frame):
        return frame.f_code in [one.__code__ for one in codes]

    assert pool.run("sm_90a", job("raise KeyError"), 60)[0]["failed"]["kind"] == "KeyError"
    (worker,), place, struck = pool._workers.values(), 0, True
    while struck:
        place += 1
        with contextlib.suppress(KeyboardInterrupt), interrupting(of_the_job, place) as interruption:
            pool.run("sm_90a", job("raise KeyError"), 60)
        assert not worker.jobs, place
        struck = interruption.struck
    assert place > 15
    assert pool._workers == {"sm_90a": worker}


@pytest.fixture
def under_way(pool, tmp_path):
    """Give the worker of a job that runs; the job must come to its own end."""
    started, go, said = tmp_path / "started", tmp_path / "go", []
    os.mkfifo(started)
    os.mkfifo(go)
    text = f"open({str(started)!r}, 'w').close()\nopen({str(go)!r}).close()\nraise KeyError\n"

    def compile_it():
        try:
            said.append(pool.run("sm_90a", job(text), 60)[0]["failed"]["kind"])
        except workers.WorkerDiedError as error:
            said.append(error)

    thread = threading.Thread(target=compile_it)
    thread.start()
    started.open().close()  # returns once the text runs
    (worker,) = pool._workers.values()
    yield worker
    os.close(os.open(go, os.O_RDWR))  # which waits for no reader
    thread.join()
    assert said == ["KeyError"]


def test_what_a_stopped_worker_has_under_way_is_finished(pool, under_way):
    """Its children do not need it: whoever waits for one is answered, though others gave up the worker."""
    os.kill(under_way.process.pid, signal.SIGSTOP)
    with pytest.raises(workers.TooSlowError):
        pool.run("sm_90a", job("raise KeyError"), 0.2)


def leave_descriptors(worker, count):
    """Let a worker open so many descriptors more; return the limit that it had."""
    number = worker.process.pid
    taken = {int(one.name) for one in Path("/proc", str(number), "fd").iterdir()}
    free = (one for one in itertools.count() if one not in taken)
    most = next(itertools.islice(free, count, None))
    usual = resource.prlimit(number, resource.RLIMIT_NOFILE)
    return resource.prlimit(number, resource.RLIMIT_NOFILE, (most, usual[1]))


def test_a_job_for_which_the_worker_has_no_descriptor_hurts_itself_alone(pool, under_way):
    usual = leave_descriptors(under_way, 1)
    with pytest.raises(BackendUnavailableError, match="Too many open files"):
        pool.run("sm_90a", job("raise KeyError"), 60)
    resource.prlimit(under_way.process.pid, resource.RLIMIT_NOFILE, usual)
    assert pool.run("sm_90a", job("raise KeyError"), 60)[0]["failed"]["kind"] == "KeyError"
    assert pool._workers == {"sm_90a": under_way}


def test_a_job_that_does_not_reach_the_worker_is_given_to_another(pool, under_way):
    leave_descriptors(under_way, 0)
    assert pool.run("sm_90a", job("raise KeyError"), 60)[0]["failed"]["kind"] == "KeyError"
    assert under_way not in pool._workers.values()


def test_a_worker_whose_folder_was_removed_is_replaced(pool):
    assert pool.run("sm_90a", job("raise KeyError"), 60)[0]["failed"]["kind"] == "KeyError"
    (old,) = pool._workers.values()
    assert gone(lambda: staging.discard(old.folder) or not old.folder.exists())
    assert pool.run("sm_90a", job("raise KeyError"), 60)[0]["failed"]["kind"] == "KeyError"
    assert old not in pool._workers.values()


def test_without_a_descriptor_for_a_connection_a_worker_is_not_blamed(pool, monkeypatch):
    def none_left():
        raise OSError(errno.EMFILE, "none left")

    worker = pool._worker("sm_90a")
    monkeypatch.setattr(workers.socket, "socketpair", none_left)
    with pytest.raises(BackendUnavailableError, match="none left"):
        pool.run("sm_90a", job("raise KeyError"), 60)
    assert pool._workers == {"sm_90a": worker}


def fail(*_, **__):
    raise OSError(errno.ENOSPC, "none left")


@pytest.mark.parametrize("what", ["tempfile.mkdtemp", "socket.socketpair"])
def test_without_room_for_a_worker_it_says_so(pool, monkeypatch, what):
    monkeypatch.setattr(what, fail)
    before = len(list(Path("/proc/self/fd").iterdir()))
    with pytest.raises(BackendUnavailableError, match="none left"):
        pool.run("sm_90a", job("raise KeyError"), 60)
    assert len(list(Path("/proc/self/fd").iterdir())) == before


@pytest.mark.parametrize("what", ["tempfile.mkdtemp", "os.fork", "os.pidfd_open"])
def test_a_worker_tells_why_a_job_cannot_be_started_and_goes_on(monkeypatch, tmp_path, what):
    with subprocess.Popen(["sleep", "600"], start_new_session=True) as child, contextlib.ExitStack() as stack:
        control, its_control, ours, theirs = map(
            stack.enter_context, (*socket.socketpair(), *socket.socketpair())
        )
        stack.callback(child.kill)
        loop = worker.Worker(its_control, tmp_path, 60)
        stack.callback(loop._selector.close)
        loop._awake = True  # nothing is imported here
        monkeypatch.setattr(worker.os, "fork", lambda: child.pid)
        monkeypatch.setattr(f"trunnion_cutedsl.compiler.worker.{what}", fail)
        socket.send_fds(control, [b"j"], [theirs.fileno()])
        theirs.close()
        assert loop._accept()
        assert "none left" in messages.receive(ours)[0]["unstarted"]
        assert ours.recv(1) == b""
        assert (list(tmp_path.iterdir()), loop._children) == ([], {})
        socket.send_fds(control, [b"j"], [])
        assert loop._accept(), "its descriptor is lost"
        control.close()
        assert not loop._accept()


def test_a_child_that_finds_no_room_for_its_log_says_so(tmp_path):
    ours, theirs = socket.socketpair()
    text = (
        "import pathlib, socket, sys; from trunnion_cutedsl.compiler import worker;"
        "worker._serve(socket.socket(fileno=int(sys.argv[1])), pathlib.Path(sys.argv[2]))"
    )
    with ours, theirs:
        words = [sys.executable, "-c", text, str(theirs.fileno()), str(tmp_path / "nowhere")]
        environment = {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
        with subprocess.Popen(words, env=environment, pass_fds=[theirs.fileno()]):
            theirs.close()
            assert "nowhere" in messages.receive(ours)[0]["unstarted"]


def test_a_child_that_stops_before_it_takes_its_job_is_waited_for_no_longer_than_agreed(pool, monkeypatch):
    def receive(connection, deadline=None):
        answer = messages.receive(connection, deadline)
        if "pid" in answer[0]:
            os.kill(answer[0]["pid"], signal.SIGSTOP)
        return answer

    monkeypatch.setattr(workers, "receive", receive)
    with pytest.raises(workers.TooSlowError):
        pool.run("sm_90a", job("#" * (1 << 24)), 0.2)


FORK = """
import os, sys, trunnion
from trunnion_cutedsl.examples.cutedsl_vector_add import EXAMPLE

def build():
    return trunnion.compile(EXAMPLE.program, "nvrtc", target="sm_90a", trust=True).image("cubin")

mine = build()
child = os.fork()
if child == 0:
    os._exit(0 if build() == mine else 1)
assert os.waitpid(child, 0)[1] == 0
assert build() == mine
print("done")
"""


def test_a_forked_child_compiles_by_itself(tmp_path):
    assert finish(start(FORK, temporary=tmp_path / "tmp")) == "done"
    assert gone(lambda: not list((tmp_path / "tmp").glob("trunnion-cutedsl-*")))


def test_without_an_interpreter_it_says_so(monkeypatch):
    monkeypatch.setattr(workers.sys, "executable", "/nowhere/python")
    with pytest.raises(BackendUnavailableError, match="/nowhere/python"):
        workers.Workers().run("sm_90a", {}, 1)


@pytest.mark.parametrize("executable", [None, ""])
def test_within_a_program_that_brings_python_along_it_says_so(monkeypatch, executable):
    """As `sys.executable` is where Python does not know its own."""
    monkeypatch.setattr(workers.sys, "executable", executable)
    with pytest.raises(BackendUnavailableError, match=r"sys.executable names no interpreter .* set it to"):
        workers.Workers().run("sm_90a", {}, 1)


def test_an_import_that_takes_too_long_is_told_as_that(monkeypatch, pool):
    monkeypatch.setattr(workers, "_START_SECONDS", 0.05)
    with pytest.raises(BackendUnavailableError, match=r"takes no job within 0.05 s"):
        pool.run("sm_90a", job(""), 60)


@pytest.mark.parametrize("error", [KeyboardInterrupt, ValueError])
def test_whatever_keeps_a_worker_from_its_start_nothing_is_left(monkeypatch, tmp_path, error):
    def ended(*_, **__):
        raise error

    monkeypatch.setattr(staging.tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(workers.subprocess, "Popen", ended)
    before = len(list(Path("/proc/self/fd").iterdir()))
    with pytest.raises(error):
        workers.Workers().run("sm_90a", {}, 1)
    assert list(tmp_path.iterdir()) == []
    assert len(list(Path("/proc/self/fd").iterdir())) == before


def test_what_is_no_text_on_the_path_is_no_folder_of_a_worker_either(monkeypatch):
    """As Python's own import passes over it."""
    before = workers._environment("sm_90a")
    monkeypatch.setattr(sys, "path", [Path("/elsewhere"), b"/another", *sys.path])
    assert workers._environment("sm_90a") == before


def test_no_variable_of_cutedsl_s_changes_what_is_made(monkeypatch):
    pool = workers.Workers()
    monkeypatch.setenv("CUTE_DSL_DRYRUN", "1")
    monkeypatch.setenv("CUTE_DSL_ARCH", "sm_80")
    try:
        from trunnion_cutedsl.compiler.compiler import CuteDslCompiler

        plan = EXAMPLE.program.plan()
        request = trunnion.CompileRequest(
            code=EXAMPLE.program.code,
            kernels=plan.kernels,
            target=trunnion.Target("cuda", "sm_90a"),
            plan=plan,
        )
        assert CuteDslCompiler(pool).compile(request).kernels[0].symbol == "vector_add_0"
    finally:
        pool.close()


def test_a_worker_does_not_outlive_the_packages_that_it_imported(pool, monkeypatch):
    """It is another compiler then, of another fingerprint."""
    first = pool._worker("sm_90a")
    assert pool._worker("sm_90a") is first
    found = {**workers.components(), "nvidia-cutlass-dsl": "4.9.9"}
    monkeypatch.setattr(workers, "components", lambda: found)
    job_under_way = contextlib.ExitStack()
    first.child(time.monotonic() + 60, job_under_way)
    second = pool._worker("sm_90a")
    assert second is not first
    assert pool._worker("sm_90a") is second
    assert first.process.poll() is None, "a job is under way"
    job_under_way.close()
    assert pool._worker("sm_90a") is second
    assert first.process.returncode is not None


def test_a_package_that_is_replaced_in_place_is_noticed(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(tmp_path))
    found = []
    for second, version in enumerate(("4.7.1", "4.7.2")):
        for old in tmp_path.iterdir():
            shutil.rmtree(old)
        folder = tmp_path / f"nvidia_cutlass_dsl-{version}.dist-info"
        folder.mkdir()
        (folder / "METADATA").write_text(
            f"Metadata-Version: 2.1\nName: nvidia-cutlass-dsl\nVersion: {version}\n"
        )
        os.utime(tmp_path, (second, second))  # a file system's clock may stand still for milliseconds
        found.append((release.installed_release(), CuteDslCompiler().fingerprint()))
    assert [version for version, _ in found] == ["4.7.1", "4.7.2"]
    assert found[0][1] != found[1][1]


def test_an_answer_that_is_none_is_an_error_and_no_hang(monkeypatch):
    def odd(*_):
        raise ValueError("a message of 99 bytes")

    monkeypatch.setattr(workers, "send", odd)
    pool = workers.Workers()
    try:
        with pytest.raises(workers.WorkerDiedError):
            pool.run("sm_90a", {}, 5)
    finally:
        pool.close()


def test_the_worker_folder_is_private():
    folder, lock = staging.make_staging()
    try:
        assert Path(folder).stat().st_mode & 0o077 == 0
    finally:
        os.close(lock)
        staging.discard(folder)


def test_errors_of_a_text_do_not_outlive_it():
    """A text that spoils CuTeDSL for its own process spoils nothing for the next one."""

    code = EXAMPLE.program.code[0]
    text = "import cutlass.cute as cute\ncute.kernel = None\nraise RuntimeError('spoilt')\n"
    bad = dataclasses.replace(EXAMPLE.program, code=(dataclasses.replace(code, source=text),))
    with pytest.raises(CompileError, match="spoilt"):
        trunnion.compile(bad, "nvrtc", target="sm_90a", trust=True)
    assert trunnion.compile(EXAMPLE.program, "nvrtc", target="sm_90a", trust=True).image("cubin")
