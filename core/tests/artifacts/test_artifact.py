from __future__ import annotations

import hashlib
import json
import os
import pickle
import shutil
import signal
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import trunnion
from trunnion.artifacts.artifact import Artifact
from trunnion.artifacts.manifest import MANIFEST_NAME, artifact_key
from trunnion.errors import (
    ArgumentTypeError,
    ArgumentValueError,
    ArtifactError,
    CorruptArtifactError,
    UntrustedArtifactError,
    shorten,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    MakeArtifact = Callable[..., Artifact]


@pytest.fixture
def saved(make_artifact: MakeArtifact, tmp_path: Path) -> Path:
    place = tmp_path / "made" / "artifact"
    make_artifact().save(place)
    return place


class Ending(str):
    __slots__ = ()

    def __hash__(self):
        raise SystemExit

    encode = upper = __hash__


@pytest.mark.parametrize("inputs", [None, {"a": object()}, {object(): "a"}, ["ab"], "ab", 7])
def test_inputs_that_are_no_texts_are_refused(make_artifact: MakeArtifact, inputs: object) -> None:
    with pytest.raises(ArgumentTypeError, match="expected a mapping of texts to texts"):
        make_artifact().keyed(inputs)
    with pytest.raises(ArgumentTypeError, match="expected a mapping of texts to texts"):
        artifact_key(inputs)


def test_a_key_is_made_of_something(make_artifact: MakeArtifact) -> None:
    with pytest.raises(ArgumentValueError, match=r"inputs.* got none, expected one at least"):
        make_artifact().keyed({})


def test_of_a_text_nothing_is_asked(make_artifact: MakeArtifact) -> None:
    assert make_artifact().keyed({"a": Ending("b")}) == make_artifact().keyed({"a": "b"})
    assert make_artifact().including(Ending("b"), b"") == make_artifact().including("b", b"")


@pytest.mark.parametrize(("name", "data"), [(None, b""), (b"a", b""), ("a", "text"), ("a", None)])
def test_a_file_that_is_none_is_refused(make_artifact: MakeArtifact, name: object, data: object) -> None:
    with pytest.raises(ArgumentTypeError):
        make_artifact().including(name, data)


def test_what_is_recorded(make_artifact: MakeArtifact) -> None:
    manifest = make_artifact().manifest
    assert (manifest.backend, manifest.contract_version) == ("acme", 3)
    assert (manifest.target, manifest.plan_hash, manifest.emitter) == ("cuda:sm_90a", "f" * 64, "python 1")
    assert [(k.name, k.symbol, len(k.parameters)) for k in manifest.kernels] == [("add<1>", "_Z3add", 2)]
    assert dict(manifest.toolchain) == {"nvrtc": "13.0", "acme": "2.0"}
    assert manifest.files["launcher.py"].sha256 == hashlib.sha256(b"pass\n").hexdigest()
    assert manifest.files["launcher.py"].size == 5


def test_save_and_open(make_artifact: MakeArtifact, saved: Path) -> None:
    made = make_artifact()
    assert Artifact.open(saved) == made
    assert Artifact.open(str(saved)).digest == made.digest
    assert made.digest == hashlib.sha256((saved / "manifest.json").read_bytes()).hexdigest()
    assert sorted(path.name for path in saved.parent.iterdir()) == ["artifact"]


def test_no_time_path_or_host_is_in_it(make_artifact: MakeArtifact, saved: Path, tmp_path: Path) -> None:
    os.utime(saved, (1, 1))
    again = tmp_path / "elsewhere"
    make_artifact().save(again)
    for name in ("manifest.json", "launcher.py", "image.cubin"):
        assert (saved / name).read_bytes() == (again / name).read_bytes()
    text = (saved / "manifest.json").read_text(encoding="ascii")
    assert str(tmp_path) not in text
    assert os.uname().nodename not in text


def test_the_digest_covers_everything(make_artifact: MakeArtifact) -> None:
    changed = [
        make_artifact(),
        make_artifact(kernel="other"),
        make_artifact({"image.cubin": b"\x7fELG", "launcher.py": b"pass\n"}),
        make_artifact({"image.cubin": b"\x7fELF", "launched.py": b"pass\n"}),
        make_artifact().keyed({"plan": "1"}),
    ]
    assert len({artifact.digest for artifact in changed}) == len(changed)
    assert len(set(changed)) == len(changed)


def test_keyed(make_artifact: MakeArtifact) -> None:
    keyed = make_artifact().keyed({"plan": "1"})
    assert keyed.manifest.key == artifact_key({"plan": "1"})
    assert keyed.files == make_artifact().files


def test_it_pickles(make_artifact: MakeArtifact) -> None:
    made = make_artifact().keyed({"plan": "1"})
    assert pickle.loads(pickle.dumps(made)) == made  # noqa: S301 - our own bytes


def test_files_other_than_the_manifests_are_refused(make_artifact: MakeArtifact) -> None:
    made = make_artifact()
    for files in ({}, {**made.files, "more": b""}, {**made.files, "launcher.py": b"pasS\n"}):
        with pytest.raises(CorruptArtifactError):
            Artifact(made.manifest, files)


def test_saving_again_is_fine_and_over_something_else_is_refused(
    make_artifact: MakeArtifact, saved: Path
) -> None:
    make_artifact().save(saved)
    with pytest.raises(ArtifactError, match="already"):
        make_artifact(kernel="other").save(saved)
    assert Artifact.open(saved) == make_artifact()
    (saved / "manifest.json").unlink()
    with pytest.raises(ArtifactError, match="already"):
        make_artifact().save(saved)
    file = saved.parent / "file"
    file.write_bytes(b"")
    with pytest.raises(ArtifactError, match="already") as caught:
        make_artifact().save(file)
    assert (
        str(caught.value)
        == f"something else is already at {shorten(str(file))}; remove it or choose another place"
    )
    assert sorted(path.name for path in saved.parent.iterdir()) == ["artifact", "file"]


def test_others_can_never_write_it_whatever_the_umask(make_artifact: MakeArtifact, tmp_path: Path) -> None:
    old = os.umask(0)
    try:
        make_artifact().save(tmp_path / "open")
    finally:
        os.umask(old)
    for path in [tmp_path / "open", *(tmp_path / "open").iterdir()]:
        assert path.stat().st_mode & 0o022 == 0


@pytest.mark.parametrize("which", ["manifest", "file"])
def test_a_file_that_others_could_write_is_refused_where_it_is_run(
    make_artifact: MakeArtifact, tmp_path: Path, which: str
) -> None:
    artifact = make_artifact()
    artifact.save(tmp_path / "artifact")
    found = tmp_path / "artifact" / (MANIFEST_NAME if which == "manifest" else min(artifact.files))
    found.chmod(0o666)
    assert Artifact.open(found.parent) == artifact
    with pytest.raises(UntrustedArtifactError, match=found.name):
        Artifact.open(found.parent, trusted=True)


def flip(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)


def link(path: Path) -> None:
    elsewhere = path.parent.parent / "elsewhere"
    path.rename(elsewhere)
    path.symlink_to(elsewhere)


def replace_by_pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def replace_by_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


DAMAGES: dict[str, Callable[[Path], object]] = {
    "a flipped bit": flip,
    "truncated": lambda path: path.write_bytes(path.read_bytes()[:-1]),
    "longer": lambda path: path.write_bytes(path.read_bytes() + b"x"),
    "empty": lambda path: path.write_bytes(b""),
    "missing": Path.unlink,
    "a link": link,
    "a pipe": replace_by_pipe,
    "a folder": replace_by_folder,
    "one more file": lambda path: (path.parent / "more").write_bytes(b""),
    "one more folder": lambda path: (path.parent / "more").mkdir(),
    "one more link": lambda path: (path.parent / "more").symlink_to("/nonexistent"),
}


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("name", ["manifest.json", "image.cubin"])
def test_damage_is_found(saved: Path, name: str, damage: str) -> None:
    DAMAGES[damage](saved / name)
    with pytest.raises(CorruptArtifactError):
        Artifact.open(saved)


def test_every_single_byte_counts(saved: Path) -> None:
    for path in saved.iterdir():
        good = path.read_bytes()
        for index in range(len(good)):
            path.write_bytes(good[:index] + bytes([good[index] ^ 0x20]) + good[index + 1 :])
            with pytest.raises(CorruptArtifactError):
                Artifact.open(saved)
        path.write_bytes(good)
    Artifact.open(saved)


@pytest.mark.parametrize("nbytes", [1, 2 << 20])
def test_an_interrupt_while_it_is_read_leaves_no_descriptor_open(
    make_artifact: MakeArtifact, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, nbytes: int
) -> None:
    place, read, behind = tmp_path / "artifact", os.read, []
    make_artifact({"image.cubin": bytes(nbytes)}).save(place)
    open_ones = set(Path("/proc/self/fd").iterdir())

    def interrupted(descriptor: int, size: int) -> bytes:
        if size == nbytes:
            signal.raise_signal(signal.SIGINT)
            behind.append("read")
        return read(descriptor, size)

    monkeypatch.setattr(os, "read", interrupted)
    with pytest.raises(KeyboardInterrupt):
        Artifact.open(place)
    assert behind == ["read"][: nbytes == 1], "what takes a while can be interrupted, and nothing else"
    assert set(Path("/proc/self/fd").iterdir()) == open_ones


def test_an_oversized_file_is_refused_without_being_read(saved: Path) -> None:
    for name in ("image.cubin", "manifest.json"):
        with (saved / name).open("r+b") as file:
            file.truncate(
                1 << 42
            )  # sparse: no room is taken, but reading it would need all the memory there is
        with pytest.raises(CorruptArtifactError, match="bytes"):
            Artifact.open(saved)


def test_a_manifest_that_names_a_path_reads_nothing_outside(saved: Path) -> None:
    secret = saved.parent / "secret"
    secret.write_bytes(b"secret")
    members = json.loads((saved / "manifest.json").read_text())
    members["files"]["../secret"] = {"sha256": hashlib.sha256(b"secret").hexdigest(), "size": 6}
    text = json.dumps(members, indent=1, sort_keys=True) + "\n"
    (saved / "manifest.json").write_text(text)
    with pytest.raises(CorruptArtifactError, match="file name"):
        Artifact.open(saved)


def test_a_folder_that_is_no_artifact_is_named(saved: Path) -> None:
    (saved / "manifest.json").unlink()
    with pytest.raises(
        CorruptArtifactError, match=r"is no artifact: it holds no manifest\.json; expected the folder"
    ):
        Artifact.open(saved)
    (saved / "image.cubin").unlink()
    (saved / "manifest.json").write_text("{}")
    with pytest.raises(CorruptArtifactError) as caught:
        Artifact.open(saved)
    assert f"{saved.parent.name}/{saved.name}" in str(caught.value)
    for wrong in (3, None, b"folder", "a\0b", "\ud800"):
        with pytest.raises(ArtifactError, match="expected the path of a file or folder"):
            Artifact.open(wrong)


def test_no_artifact_there(tmp_path: Path) -> None:
    """Where nothing is, nothing is corrupt."""
    (tmp_path / "file").write_bytes(b"")
    (tmp_path / "loop").symlink_to("loop")
    for name, said in (
        ("absent", "there is nothing at"),
        ("file/absent", "there is no folder at"),
        ("file", "there is no folder at"),
        ("loop", "cannot open"),
        ("n" * 300, "cannot open"),
    ):
        with pytest.raises(ArtifactError) as caught:
            Artifact.open(tmp_path / name)
        assert type(caught.value) is ArtifactError
        assert str(caught.value).startswith(said)
        assert "expected the folder of an artifact, as Artifact.save writes it" in str(caught.value)
        assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)  # noqa: S301 - our own bytes
    with pytest.raises(ArtifactError, match="expected the path of a file or folder"):
        trunnion.load("\ud800")
    (tmp_path / "folder").mkdir()
    with pytest.raises(CorruptArtifactError, match=r"manifest\.json"):
        Artifact.open(tmp_path / "folder")


def test_an_empty_folder_is_taken(make_artifact: MakeArtifact, tmp_path: Path) -> None:
    make_artifact().save(tmp_path)
    assert Artifact.open(tmp_path) == make_artifact()


@pytest.mark.parametrize("name", ["𝄞" * 63, "e" * 255])
def test_a_name_may_have_as_many_bytes_as_the_system_lets_it(
    make_artifact: MakeArtifact, tmp_path: Path, name: str
) -> None:
    make_artifact().save(tmp_path / name)
    assert Artifact.open(tmp_path / name) == make_artifact()


def test_a_folder_behind_a_link_is_saved_in(make_artifact: MakeArtifact, tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "folder")
    make_artifact().save(tmp_path / "link" / "artifact")
    assert Artifact.open(tmp_path / "folder" / "artifact") == make_artifact()


def test_a_link_counts_as_what_it_leads_to(make_artifact: MakeArtifact, tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    link = tmp_path / "link"
    link.symlink_to(tmp_path / "folder")
    for _ in range(2):  # an empty folder, and then this very artifact
        make_artifact().save(link)
        assert (link.is_symlink(), Artifact.open(tmp_path / "folder")) == (True, make_artifact())
    (tmp_path / "leads nowhere").symlink_to(tmp_path / "nothing")
    for place, other in ((link, "other"), (tmp_path / "leads nowhere", "k")):
        with pytest.raises(ArtifactError, match="something else is already at"):
            make_artifact(kernel=other).save(place)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["folder", "leads nowhere", "link"]


def test_a_failed_save_leaves_nothing(
    make_artifact: MakeArtifact, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_: int) -> None:
        raise OSError(28, "no space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(ArtifactError, match=r"cannot save at .*: no space .*; make room on that disk"):
        make_artifact().save(tmp_path / "artifact")
    assert list(tmp_path.iterdir()) == []
    shutil.rmtree(tmp_path)
