"""What nobody used for longest goes, when something is stored, and never where something is read."""

from __future__ import annotations

import os
import sys
import time
from typing import TYPE_CHECKING

import pytest

from trunnion.artifacts.entries import entries_in
from trunnion.artifacts.manifest import artifact_key
from trunnion.artifacts.store import ArtifactStore
from trunnion.errors import ArgumentValueError
from trunnion.storage import workshop

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

SIZE = 10_000
DAY = 86400.0


@pytest.fixture
def keep(make_artifact) -> Callable[[ArtifactStore, str], str]:
    """Return a function that stores an artifact of more than ten kilobytes, and returns its key."""

    def kept(store: ArtifactStore, name: str, **said: bool) -> str:
        inputs = {"name": name}
        made = make_artifact({"one": name.encode().ljust(SIZE)}).keyed(inputs)
        store.get_or_build(artifact_key(inputs), lambda _: made, **said)
        return artifact_key(inputs)

    return kept


def used(store: ArtifactStore, key: str, days: float) -> None:
    """Have an artifact be used last some days ago."""
    when = time.time() - days * DAY
    os.utime(store.root / "entries" / key, (when, when))


def keys(store: ArtifactStore) -> list[str]:
    return [one.key for one in store.entries()]


def test_of_too_much_goes_what_nobody_used_for_longest(keep, tmp_path: Path) -> None:
    store = ArtifactStore(tmp_path, max_bytes=4 * (SIZE + 1500))
    first, second, third = (keep(store, name) for name in "abc")
    for days, key in enumerate([second, third, first]):
        used(store, key, 5 - days)
    fourth = keep(store, "d")
    assert keys(store) == [second, third, first, fourth]
    fifth = keep(store, "e")
    assert keys(store) == [first, fourth, fifth], "a tenth is left free, so that not each store looks again"
    assert store.statistics().nbytes <= 0.9 * 4 * (SIZE + 1500)


def test_a_hit_is_a_use_and_writes_at_most_once_in_a_minute(keep, tmp_path: Path, monkeypatch) -> None:
    store = ArtifactStore(tmp_path, max_bytes=2 * (SIZE + 1500))
    first, second = keep(store, "a"), keep(store, "b")
    for days, key in enumerate([second, first]):
        used(store, key, 5 - days)
    assert store.get(second) is not None
    written: list[object] = []
    monkeypatch.setattr(os, "utime", lambda *said, **_: written.append(said))
    assert store.get(second) is not None
    assert written == []
    third = keep(store, "c")
    assert first not in keys(store)
    assert third in keys(store)


def test_a_use_that_is_still_to_come_is_marked_anew_by_a_hit(keep, tmp_path: Path) -> None:
    store = ArtifactStore(tmp_path)
    key = keep(store, "a")
    used(store, key, -400)
    assert store.get(key) is not None
    assert store.entries()[0].used == pytest.approx(time.time(), abs=60)


def test_what_nobody_used_since_the_clock_went_back_goes_first_and_ages(keep, tmp_path: Path) -> None:
    store = ArtifactStore(tmp_path)
    first, second, third = (keep(store, name) for name in "abc")
    for days, key in ((-400, first), (-500, second), (5, third)):
        used(store, key, days)
    assert keys(store) == [first, second, third]
    assert ArtifactStore(tmp_path, max_bytes=int(2.5 * (SIZE + 1500))).prune().entries == 1
    assert keys(store) == [third, second], "what stays was used now, as far as anybody knows"
    assert max(one.used for one in store.entries()) == pytest.approx(time.time(), abs=60)


def test_what_was_just_stored_stays_whatever_its_size(keep, tmp_path: Path) -> None:
    store = ArtifactStore(tmp_path, max_bytes=0)
    keep(store, "a")
    second = keep(store, "b")
    assert keys(store) == [second]


def test_what_nobody_used_for_too_long_goes(keep, tmp_path: Path) -> None:
    store = ArtifactStore(tmp_path, max_bytes=None, max_age_seconds=10 * DAY)
    old, young = keep(store, "a"), keep(store, "b")
    used(store, old, 11)
    used(store, young, 9)
    keep(store, "c")
    assert old in keys(store), "it was counted just now"
    (tmp_path / "usage").write_text(f"1 {int(time.time()) - 3601}\n")
    keep(store, "d")
    assert old not in keys(store)
    assert young in keys(store)


def test_without_limits_nothing_goes(keep, tmp_path: Path) -> None:
    store = ArtifactStore(tmp_path, max_bytes=None, max_age_seconds=None)
    used(store, keep(store, "a"), 10_000)
    keep(store, "b")
    assert store.prune().entries == 0
    assert len(keys(store)) == 2


@pytest.mark.parametrize(
    "said",
    ["", "x", "-1 0\n", "9" * 99, "1 99999999999\n", "1 1\n2 2\n", "\0" * 5, "1 1", "folder", "pipe", "link"],
)
def test_whatever_is_said_of_what_there_is_the_limit_holds(keep, tmp_path: Path, said: str) -> None:
    store = ArtifactStore(tmp_path / "store", max_bytes=2 * (SIZE + 1500))
    keep(store, "a")
    usage = store.root / "usage"
    usage.unlink()
    match said:
        case "folder":
            usage.mkdir()
        case "pipe":
            os.mkfifo(usage)
        case "link":
            (tmp_path / "other").write_text("mine")
            usage.symlink_to(tmp_path / "other")
        case _:
            usage.write_text(said)
    for name in "bcd":
        keep(store, name)
    assert len(keys(store)) <= 2
    assert said != "link" or (tmp_path / "other").read_text() == "mine"


def test_what_others_stored_counts(keep, tmp_path: Path) -> None:
    for name in "abcd":
        keep(ArtifactStore(tmp_path, max_bytes=2 * (SIZE + 1500)), name)
    assert len(keys(ArtifactStore(tmp_path))) <= 2


def test_nothing_is_looked_for_where_something_is_read(keep, tmp_path: Path, monkeypatch) -> None:
    store = ArtifactStore(tmp_path, max_bytes=1)
    key = keep(store, "a")

    def refused(*_: object, **__: object) -> None:
        raise AssertionError("a lock, or a look at everything")

    monkeypatch.setattr("trunnion.artifacts.eviction.entries_in", refused)
    monkeypatch.setattr(workshop, "turn", refused)
    assert store.get(key) is not None
    assert store.get_or_build(key, refused) is not None


def test_pruning_says_what_went(keep, tmp_path: Path) -> None:
    store = ArtifactStore(tmp_path, max_age_seconds=DAY)
    old = keep(store, "a")
    keep(store, "b")
    used(store, old, 2)
    size = store.entries()[0].nbytes
    assert size > SIZE
    gone = store.prune()
    assert (gone.entries, gone.nbytes) == (1, size)
    assert store.prune().entries == 0
    assert [list((tmp_path / name).iterdir()) for name in ("staging", "locks")] == [[], []]


def test_clearing_leaves_nothing(keep, tmp_path: Path, make_artifact) -> None:
    store = ArtifactStore(tmp_path)
    key = keep(store, "a")
    keep(store, "b")
    store.set_aside(key)
    assert store.statistics().corrupt == 1
    assert store.clear().entries == 1
    assert (store.entries(), store.statistics().corrupt) == ([], 0)
    assert keep(store, "a") == key


def test_what_somebody_has_in_a_folder_of_that_name_is_not_the_store_s(keep, tmp_path: Path) -> None:
    own = [tmp_path / "corrupt" / name for name in ("photos", "a-b", f"{'0' * 64}", f"{'0' * 64}-Mine")]
    for folder in own:
        folder.mkdir(parents=True)
        (folder / "file").write_text("")
        os.utime(folder, (0, 0))
    (tmp_path / "corrupt" / f"{'0' * 64}-link1234").symlink_to(own[0])
    store = ArtifactStore(tmp_path, max_age_seconds=DAY)
    store.set_aside(keep(store, "a"))
    assert store.statistics().corrupt == 1
    store.prune()
    store.clear()
    assert store.statistics().corrupt == 0
    assert all((folder / "file").exists() for folder in own)
    assert len([*(tmp_path / "corrupt").iterdir()]) == len(own) + 1


def test_what_was_set_aside_goes_with_its_age(keep, tmp_path: Path) -> None:
    store = ArtifactStore(tmp_path, max_age_seconds=DAY)
    store.set_aside(keep(store, "a"))
    store.prune()
    (aside,) = (tmp_path / "corrupt").iterdir()
    os.utime(aside, (0, 0))
    store.prune()
    assert store.statistics().corrupt == 0


def test_what_cannot_be_removed_is_left(keep, tmp_path: Path, monkeypatch, recwarn) -> None:
    store = ArtifactStore(tmp_path, max_bytes=1)
    keep(store, "a")

    def refused(*_: object, **__: object) -> None:
        raise PermissionError(13, "no")

    with monkeypatch.context() as patch:
        patch.setattr("trunnion.artifacts.eviction.Eviction._remove", lambda *_: False)
        keep(store, "b")
    assert len(keys(store)) == 2
    assert not recwarn
    assert store.prune().entries == 2


def test_other_things_in_the_folder_are_no_entries(tmp_path: Path) -> None:
    (tmp_path / "readme").mkdir()
    (tmp_path / ("a" * 64)).write_text("a file")
    (tmp_path / ("b" * 64)).symlink_to(tmp_path)
    assert entries_in(tmp_path) == []
    assert entries_in(tmp_path / "nowhere") == []


def test_statistics(keep, tmp_path: Path) -> None:
    store = ArtifactStore(tmp_path)
    empty = store.statistics()
    assert (empty.entries, empty.nbytes, empty.oldest_use, empty.newest_use) == (0, 0, None, None)
    assert (empty.hits, empty.misses) == (0, 0)
    key = keep(store, "a")
    keep(store, "a")
    keep(store, "a", anew=True)
    assert store.get(key) is not None
    assert ArtifactStore(tmp_path).get("0" * 64) is None
    found = ArtifactStore(tmp_path).statistics()
    assert (found.entries, found.hits, found.misses) == (1, 2, 3)
    assert found.nbytes == sum(file.stat().st_size for file in (tmp_path / "entries" / key).iterdir())
    assert found.oldest_use == found.newest_use == pytest.approx(time.time(), abs=60)


@pytest.mark.parametrize(
    "said",
    [
        {"max_bytes": -1},
        {"max_bytes": 1.5},
        {"max_bytes": True},
        {"max_bytes": "1G"},
        {"max_age_seconds": -1},
        {"max_age_seconds": float("nan")},
        {"max_age_seconds": "1d"},
        {"max_age_seconds": False},
        {"max_age_seconds": 10**400},
        {"max_age_seconds": 10**5000},
        {"wait_seconds": 10**400},
        {"wait_seconds": float("nan")},
        {"wait_seconds": -1},
        {"wait_seconds": True},
    ],
)
def test_what_is_no_limit_is_refused(tmp_path: Path, said: dict[str, object]) -> None:
    with pytest.raises(ArgumentValueError) as caught:
        ArtifactStore(tmp_path / "store", **said)
    assert caught.value.argument == next(iter(said))
    assert not (tmp_path / "store").exists()


def test_any_number_of_bytes_and_any_time_that_a_clock_can_reckon_with_is_a_limit(
    tmp_path: Path, make_artifact
) -> None:
    limits = {"max_bytes": 10**5000, "max_age_seconds": sys.float_info.max, "wait_seconds": float("inf")}
    made = make_artifact().keyed({"plan": "1"})
    store = ArtifactStore(tmp_path, **limits)
    assert store.get_or_build(made.manifest.key, lambda _: made) == made
    assert store.prune().entries == 0
