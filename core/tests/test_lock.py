"""Lock files: what is locked is loaded, and nothing else is."""

from __future__ import annotations

import copy
import json
import os
import pickle
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import trunnion
from trunnion import Lock, examples
from trunnion.cli import main
from trunnion.errors import ArgumentTypeError, ArtifactError, CorruptArtifactError, UntrustedArtifactError
from trunnion.lock import MAX_LOCK_BYTES

if TYPE_CHECKING:
    from collections.abc import Callable


@pytest.fixture(scope="module")
def artifacts() -> dict[str, Any]:
    program = examples.load("vector_add").program
    return {arch: trunnion.compile(program, "nvrtc", target=arch).artifact for arch in ("sm_90a", "sm_80")}


@pytest.fixture
def project(tmp_path: Path, artifacts: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> Path:
    """Make a project with a bundle and an artifact, and go there."""
    trunnion.write_bundle(tmp_path / "kernels" / "all.trn", {"add": list(artifacts.values())})
    artifacts["sm_90a"].save(tmp_path / "add")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_what_is_locked_is_loaded_whoever_may_write_to_it(project: Path, artifacts: dict[str, Any]) -> None:
    Lock.of(["kernels/all.trn", project / "add"]).save()
    locked = Lock.open()
    assert dict(locked.digests) == {
        "add": artifacts["sm_90a"].digest,
        "kernels/all.trn": trunnion.load("kernels/all.trn").digest,
    }
    (project / "kernels").chmod(0o777)
    assert list(locked.load("kernels/all.trn")) == ["add"]
    assert locked.load("add").artifact == artifacts["sm_90a"]
    assert not list(locked.problems())


@pytest.mark.parametrize(
    "again",
    [copy.copy, copy.deepcopy, lambda lock: pickle.loads(pickle.dumps(lock))],  # noqa: S301 - what was just written
)
def test_a_lock_is_copied_and_pickled(project: Path, again: Callable[[Lock], Lock]) -> None:
    """For a pool of processes, each of which loads what is locked."""
    del project
    locked = Lock.of(["kernels/all.trn", "add"])
    made = again(locked)
    assert made == locked
    assert list(made.load("kernels/all.trn")) == ["add"]
    with pytest.raises(TypeError):
        made.digests["add"] = "0" * 64  # type: ignore[index]  # that is the mistake


def test_what_a_lock_was_made_of_may_change(tmp_path: Path) -> None:
    digests = {"add": "0" * 64}
    locked = Lock(tmp_path / "trunnion.lock", digests)
    digests.clear()
    assert dict(locked.digests) == {"add": "0" * 64}


@pytest.mark.parametrize("place", ["trunnion.lock", "."])
def test_a_lock_file_that_others_can_write_is_refused(project: Path, place: str) -> None:
    """Whoever can write it decides what is loaded, whoever owns that."""
    Lock.of(["kernels/all.trn"]).save()
    (project / place).chmod(0o777)
    with pytest.raises(UntrustedArtifactError, match="can be written by others"):
        Lock.open()
    assert main(["lock", "--check"]) == 1


@pytest.mark.parametrize("umask", [0o002, 0o077])
def test_whatever_the_umask_what_is_written_is_read_again(project: Path, umask: int) -> None:
    before = os.umask(umask)
    try:
        Lock.of(["add"]).save()
    finally:
        os.umask(before)
    assert (project / "trunnion.lock").stat().st_mode & 0o777 == 0o644
    assert list(Lock.open().digests) == ["add"]


def test_a_lock_that_could_not_be_read_again_is_not_written(project: Path) -> None:
    Lock.of(["add"]).save()
    many = {f"{n:0255}": "0" * 64 for n in range(MAX_LOCK_BYTES // 300)}
    with pytest.raises(ArtifactError, match=f"expected at most {MAX_LOCK_BYTES}"):
        Lock(project / "trunnion.lock", many).save()
    assert list(Lock.open().digests) == ["add"]


def test_another_one_is_refused(project: Path, artifacts: dict[str, Any]) -> None:
    Lock.of(["kernels/all.trn", "add"]).save()
    trunnion.write_bundle("kernels/all.trn", {"add": artifacts["sm_80"]})
    (project / "add" / "image.cubin").unlink()
    locked = Lock.open()
    with pytest.raises(UntrustedArtifactError, match="it is another one"):
        locked.load("kernels/all.trn")
    with pytest.raises(CorruptArtifactError, match="is missing"):
        locked.load("add")
    assert [path for path, _ in locked.problems()] == ["add", "kernels/all.trn"]


def test_each_part_is_read_before_it_is_locked(project: Path) -> None:
    (part,) = (project / "kernels").glob("all.sm_80.*.trn")
    part.write_bytes(part.read_bytes()[:-1000])
    with pytest.raises(CorruptArtifactError, match=r"all\.sm_80\."):
        Lock.of(["kernels/all.trn"])


def test_what_is_not_locked_is_not_loaded(project: Path) -> None:
    del project
    Lock.of(["add"]).save()
    with pytest.raises(UntrustedArtifactError, match=r"'kernels/all\.trn' is not in .*trunnion\.lock"):
        Lock.open().load("kernels/all.trn")
    with pytest.raises(ArgumentTypeError, match="a path of the lock file"):
        Lock.open().load(3)  # type: ignore[arg-type]  # that is the mistake


@pytest.mark.parametrize("path", ["nothing", "../outside", "/etc"])
def test_what_is_not_there_or_elsewhere_is_not_locked(project: Path, path: str) -> None:
    (project.parent / "outside").mkdir(exist_ok=True)
    with pytest.raises(ArtifactError):
        Lock.of([path])


@pytest.mark.parametrize(
    ("path", "file", "said"),
    [
        ("kernels/all.trn", "kernels/all.trn", "is what a bundle's files are called"),
        ("kernels/all.trn", "kernels/all.sm_80.0123456789ab.trn", "is what a bundle's files are called"),
        ("plain", "plain", "into what it locks"),
        ("alias", "plain", "into what it locks"),
        ("add", "add/trunnion.lock", "into what it locks"),
        ("add", "link/trunnion.lock", "into what it locks"),
    ],
)
def test_what_is_locked_is_not_written_over(project: Path, path: str, file: str, said: str) -> None:
    index = project / "kernels" / "all.trn"
    for part in index.parent.glob("all.*.*.trn"):
        (project / part.name).symlink_to(part)
    (project / "plain").write_bytes(index.read_bytes())
    (project / "alias").symlink_to("plain")
    (project / "link").symlink_to("add")
    with pytest.raises(ArtifactError, match=said):
        Lock.of([path], file)


def test_in_an_artifact_s_folder_nothing_is_written(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(project / "add")
    assert main(["lock", "."]) == 1
    assert trunnion.load(project / "add")


def test_another_file_than_the_one_that_is_named_is_not_locked(project: Path) -> None:
    """The system follows a link before it goes up from there."""
    (project / "else" / "sub").mkdir(parents=True)
    (project / "link").symlink_to("else/sub")
    with pytest.raises(ArtifactError, match="leads through a link and on by"):
        Lock.of(["link/../add"])
    with pytest.raises(ArtifactError, match="leads through a link and on by"):
        Lock.of(["add"], "link/../trunnion.lock")
    assert list(Lock.of(["else/../add"], "else/../trunnion.lock").digests) == ["add"]


@pytest.mark.parametrize("paths", [None, 3, "add", b"add", Path("add")])
def test_what_is_no_list_of_paths_is_refused(project: Path, paths: Any) -> None:
    del project
    with pytest.raises(ArgumentTypeError, match="a list of paths of bundles' indices and artifacts' folders"):
        Lock.of(paths)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{}",
        '{"schema": "trunnion.lock/2", "digests": {}}',
        '{"schema": "trunnion.lock/1", "digests": []}',
        '{"schema": "trunnion.lock/1", "digests": {"x": 1}}',
        '{"schema": "trunnion.lock/1", "digests": {"../x": "0"}}',
        '{"schema": "trunnion.lock/1", "digests": {"/x": "0"}}',
        *(
            f'{{"schema": "trunnion.lock/1", "digests": {{"{path}": "{"0" * 64}"}}}}'
            for path in ("", ".", "a//b", "x/")
        ),
        '{"schema": "trunnion.lock/1", "digests": {}, "more": 1}',
        "[" * 100_000,
    ],
)
def test_what_is_no_lock_file_is_refused(project: Path, text: str) -> None:
    (project / "trunnion.lock").write_text(text)
    with pytest.raises(CorruptArtifactError):
        Lock.open()


def test_no_lock_file_and_no_place_for_one_are_typed_errors(project: Path) -> None:
    with pytest.raises(
        ArtifactError, match=r"cannot open .*trunnion\.lock.*; trunnion lock PATH\.\.\. makes one"
    ):
        Lock.open()
    (project / "taken").mkdir()
    with pytest.raises(ArtifactError, match="cannot write"):
        Lock.of(["add"], "taken").save()


def test_the_command_locks_checks_and_locks_again(
    project: Path, artifacts: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    del project
    assert main(["lock", "kernels/all.trn", "add", "--json"]) == 0
    assert sorted(json.loads(capsys.readouterr().out)["digests"]) == ["add", "kernels/all.trn"]
    assert main(["lock", "--check"]) == 0
    assert "2 of 2 are what is locked" in capsys.readouterr().out
    trunnion.write_bundle("kernels/all.trn", {"add": artifacts["sm_80"]})
    assert main(["lock", "--check", "--json"]) == 1
    (problem,) = json.loads(capsys.readouterr().out)["problems"]
    assert problem["path"] == "kernels/all.trn"
    assert main(["lock", "--check", "add"]) == 2
    assert main(["lock"]) == 0
    assert main(["lock", "--check"]) == 0


def test_a_path_that_stands_there_twice_is_refused(project: Path) -> None:
    """As a merge leaves it: whoever reads the first line believes what is not so."""
    Lock.of(["add"]).save()
    text = (project / "trunnion.lock").read_text()
    line = next(line for line in text.splitlines() if '"add"' in line)
    (project / "trunnion.lock").write_text(text.replace(line, f'  "add": "{"0" * 64}",\n{line}'))
    with pytest.raises(CorruptArtifactError, match="'add' twice"):
        Lock.open()


def test_what_is_no_digest_is_refused_before_anything_is_loaded(project: Path) -> None:
    (project / "trunnion.lock").write_text('{"schema": "trunnion.lock/1", "digests": {"add": "zz"}}')
    with pytest.raises(CorruptArtifactError, match="got digest 'zz', expected 64 hex digits"):
        Lock.open()


def test_a_lock_file_that_locks_nothing_is_no_gate(project: Path) -> None:
    (project / "trunnion.lock").write_text('{"schema": "trunnion.lock/1", "digests": {}}')
    assert main(["lock", "--check"]) == 1


def test_what_is_not_locked_is_locked_with_all_others(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """With paths the command writes the file anew: the advice names every one."""
    assert main(["lock", "kernels/all.trn"]) == 0
    with pytest.raises(UntrustedArtifactError, match=r"to stay: trunnion lock 'add' 'kernels/all\.trn'$"):
        Lock.open().load("add")
    capsys.readouterr()
    assert main(["lock", "add"]) == 0
    assert "kernels/all.trn: no longer locked" in capsys.readouterr().out
    assert main(["lock", "add", "kernels/all.trn", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["dropped"] == []
    assert list(Lock.open().digests) == ["add", "kernels/all.trn"]


def test_a_problem_names_its_path_once(
    project: Path, artifacts: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("all.trn", "top.trn"):
        trunnion.write_bundle(name, {"add": list(artifacts.values())})
    assert main(["lock", "all.trn", "top.trn"]) == 0
    (project / "all.trn").write_text("x")
    trunnion.write_bundle("top.trn", {"add": artifacts["sm_80"]})
    capsys.readouterr()
    assert main(["lock", "--check"]) == 1
    said = capsys.readouterr().out
    assert "all.trn: is not JSON" in said
    assert "top.trn: it has the digest" in said
    assert said.count("all.trn") == said.count("top.trn") == 1


def test_a_bundle_without_a_part_is_checked_as_far_as_it_is_here(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Whoever has one kind of GPU need not carry the kernels of all, and is told what was not read."""
    assert main(["lock", "kernels/all.trn", "add"]) == 0
    (hopper,), (ampere,) = (project.glob(f"kernels/all.{arch}.*.trn") for arch in ("sm_90a", "sm_80"))
    taken = ampere.read_bytes()
    ampere.unlink()
    capsys.readouterr()
    assert main(["lock", "--check", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["problems"] == []
    assert document["absent"] == [
        {"path": "kernels/all.trn", "file": ampere.name, "part": "sm_80", "programs": ["add"]}
    ]
    assert main(["lock", "--check"]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert (
        f"kernels/all.trn: {ampere.name} is not here: what it holds for 'sm_80' was not verified ('add')"
        in shown
    )
    assert not list(Lock.open().problems())
    with pytest.raises(ArtifactError, match="is not here"):
        Lock.of(["kernels/all.trn"])
    hopper.write_bytes(hopper.read_bytes()[:-100])
    assert [path for path, _ in Lock.open().problems()] == ["kernels/all.trn"]
    hopper.unlink()
    ((_, problem),) = Lock.open().problems()
    assert "is not here" in problem, "nothing of it was verified"
    ampere.write_bytes(taken)
    assert not list(Lock.open().problems())
