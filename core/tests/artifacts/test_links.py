"""A link leads where whoever can write to its folder says: a path through one is as good as all of these folders."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import trunnion
from trunnion import ArtifactStore
from trunnion.artifacts.artifact import Artifact
from trunnion.errors import UntrustedArtifactError
from trunnion.storage.ownership import check_links

if TYPE_CHECKING:
    from collections.abc import Callable

LINK = "of a link on the way to it, can be written by others"


@pytest.fixture
def ours(tmp_path: Path, make_artifact: Callable[..., Artifact]) -> Path:
    """Return a folder of this user's, with an artifact and a lock file in it."""
    folder = tmp_path / "ours"
    make_artifact().save(folder / "artifact")
    trunnion.Lock.of([folder / "artifact"], folder / "trunnion.lock").save()
    return folder


@pytest.fixture
def everybodys(tmp_path: Path, ours: Path) -> Path:
    """Return a folder that others can write to, with links in it to what is this user's."""
    folder = tmp_path / "everybodys"
    folder.mkdir()
    (folder / "link").symlink_to(ours)
    (folder / "artifact").symlink_to("../ours/artifact")
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "indirect").symlink_to(folder / "link")
    folder.chmod(0o777)
    return folder


@pytest.mark.parametrize(
    "way", ["link/artifact", "artifact", "../everybodys/link/artifact", "../home/indirect/artifact"]
)
def test_an_artifact_behind_a_link_that_others_could_have_made_is_refused(everybodys: Path, way: str) -> None:
    assert Artifact.open(everybodys / way)
    with pytest.raises(UntrustedArtifactError, match=LINK):
        Artifact.open(everybodys / way, trusted=True)


@pytest.mark.parametrize("way", ["link", "../home/indirect"])
def test_a_lock_file_behind_one_is_refused(everybodys: Path, way: str) -> None:
    with pytest.raises(UntrustedArtifactError, match=LINK):
        trunnion.Lock.open(everybodys / way / "trunnion.lock")


@pytest.mark.parametrize("way", ["link", "link/new", "../home/indirect", "../home/indirect/new/deeper"])
def test_a_cache_behind_one_is_refused_and_nothing_is_made_there(
    everybodys: Path, ours: Path, way: str
) -> None:
    there = sorted(ours.iterdir())
    with pytest.raises(UntrustedArtifactError, match=LINK):
        ArtifactStore(everybodys / way)
    assert sorted(ours.iterdir()) == there


def test_a_cache_behind_a_link_of_ours_is_one(tmp_path: Path, ours: Path) -> None:
    (tmp_path / "mine").symlink_to(ours)
    assert ArtifactStore(tmp_path / "mine" / "new").get("0" * 64) is None


def test_where_others_can_exchange_nothing_a_link_of_one_s_own_is_as_good_as_the_folder(
    everybodys: Path,
) -> None:
    everybodys.chmod(0o1777)
    assert Artifact.open(everybodys / "link/artifact", trusted=True)
    assert trunnion.Lock.open(everybodys / "link/trunnion.lock")


def test_a_link_that_somebody_else_added_there_is_refused(
    everybodys: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a folder with the sticky bit nobody can exchange a link, and anybody can add one."""
    everybodys.chmod(0o1777)
    link, status = everybodys / "link", Path.lstat
    foreign = os.stat_result((*link.lstat()[:4], 4242, *link.lstat()[5:10]))
    monkeypatch.setattr(Path, "lstat", lambda path: foreign if path == link else status(path))
    refused = pytest.raises(
        UntrustedArtifactError, match="link, a link on the way to it, belongs to user 4242"
    )
    with refused:
        Artifact.open(link / "artifact", trusted=True)
    with refused:
        trunnion.Lock.open(link / "trunnion.lock")


def test_links_without_end_are_an_error_of_the_system_s(tmp_path: Path) -> None:
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")
    with pytest.raises(OSError, match="symbolic links"):
        check_links(tmp_path / "a")
