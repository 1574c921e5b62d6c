"""What file systems of several machines, and of containers, refuse or do not know, as the manual's table says."""

from __future__ import annotations

import errno
import fcntl
import os
import tempfile
from typing import TYPE_CHECKING

import pytest

from trunnion.artifacts.manifest import artifact_key
from trunnion.artifacts.store import ArtifactStore
from trunnion.errors import UntrustedArtifactError
from trunnion.storage import workshop
from trunnion.storage.kernel_mark import used_elsewhere
from trunnion.storage.refusals import NotKeptWarning

if TYPE_CHECKING:
    from pathlib import Path

INPUTS = {"plan": "1"}
KEY = artifact_key(INPUTS)


@pytest.fixture
def store(tmp_path: Path) -> ArtifactStore:
    return ArtifactStore(tmp_path / "store")


@pytest.mark.parametrize("number", [errno.ENOSYS, errno.ENOLCK, errno.EOPNOTSUPP])
def test_without_locks_it_is_built_and_not_kept_and_what_is_kept_is_found(
    store: ArtifactStore, make_artifact, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    made = make_artifact().keyed(INPUTS)

    def refused(*_: object) -> None:
        raise OSError(number, os.strerror(number))

    with monkeypatch.context() as patch:
        patch.setattr(fcntl, "flock", refused)
        with pytest.warns(NotKeptWarning, match="cannot keep"):
            assert store.get_or_build(KEY, lambda _: made) is made
    store.get_or_build(KEY, lambda _: made)
    monkeypatch.setattr(fcntl, "flock", refused)
    assert store.get_or_build(KEY, refused) == made


def test_where_each_machine_has_locks_of_its_own_both_build_and_one_is_kept(
    store: ArtifactStore, make_artifact, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = make_artifact().keyed(INPUTS)
    # Nor does any lock hold below the folder of temporary files: what other processes have there is not ours.
    monkeypatch.setattr(tempfile, "tempdir", os.fspath(store.root.parent))
    monkeypatch.setattr(fcntl, "flock", lambda *_: None)

    def beside(_: Path) -> object:
        """Build, while another machine clears up, builds the same and is faster."""
        with monkeypatch.context() as there:
            there.setattr(workshop, "used_elsewhere", lambda folder: not used_elsewhere(folder))
            ArtifactStore(store.root)
        finished = store.root.parent / "finished"
        finished.mkdir()
        made.write(finished)
        finished.rename(store.root / "entries" / KEY)
        return made

    assert store.get_or_build(KEY, beside) is made
    assert store.get(KEY) == made
    assert [list((store.root / name).iterdir()) for name in ("staging", "corrupt")] == [[], []]


def test_a_stale_handle_is_a_miss(
    store: ArtifactStore, make_artifact, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = make_artifact().keyed(INPUTS)
    store.get_or_build(KEY, lambda _: made)
    listdir = os.listdir

    def stale(folder: object) -> list[str]:
        if isinstance(folder, int):
            raise OSError(errno.ESTALE, os.strerror(errno.ESTALE))
        return listdir(folder)

    with monkeypatch.context() as patch:
        patch.setattr(os, "listdir", stale)
        with pytest.warns(NotKeptWarning, match="cannot read"):
            assert store.get(KEY) is None
    assert store.get(KEY) == made


def test_a_layer_of_a_container_s_image_is_read_and_never_moved(
    store: ArtifactStore, make_artifact, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An overlay does not rename what lies in a lower layer."""
    made = make_artifact().keyed(INPUTS)
    store.get_or_build(KEY, lambda _: made)
    rename = os.rename

    def other_device(place: object, *rest: object, **said: object) -> None:
        if os.fspath(place) == str(store.root / "entries" / KEY):
            raise OSError(errno.EXDEV, os.strerror(errno.EXDEV))
        rename(place, *rest, **said)

    monkeypatch.setattr(os, "rename", other_device)
    assert store.clear().entries == 0
    with pytest.warns(NotKeptWarning, match="cannot keep"):
        assert store.get_or_build(KEY, lambda _: made, anew=True) is made
    assert store.get(KEY) == made


def test_where_a_server_maps_users_the_folder_is_somebody_else_s(
    store: ArtifactStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    mine = os.geteuid()
    monkeypatch.setattr(os, "geteuid", lambda: mine + 65534)
    with pytest.raises(UntrustedArtifactError, match="belongs to"):
        ArtifactStore(store.root)
