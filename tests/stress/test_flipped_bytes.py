"""A bit of each byte of an artifact is flipped: nobody opens it, and a store builds it again."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from fault_injection.scenes import ARTIFACT, KEY

from trunnion.artifacts.artifact import Artifact
from trunnion.artifacts.store import ArtifactStore, CorruptArtifactWarning
from trunnion.errors import CorruptArtifactError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


def flips(path: Path) -> Iterator[int]:
    """Flip a bit of each byte of a file in turn; at the end the file is as it was."""
    good = path.read_bytes()
    for index in range(len(good)):
        data = bytearray(good)
        data[index] ^= 1 << index % 8
        path.write_bytes(data)
        yield index
    path.write_bytes(good)


def test_no_flipped_byte_is_opened(tmp_path: Path) -> None:
    ARTIFACT.save(tmp_path / "saved")
    flipped = 0
    for path in sorted((tmp_path / "saved").iterdir()):
        for _ in flips(path):
            with pytest.raises(CorruptArtifactError):
                Artifact.open(tmp_path / "saved")
            flipped += 1
    assert Artifact.open(tmp_path / "saved") == ARTIFACT
    assert flipped > 10_000


def test_each_flipped_byte_is_a_miss(tmp_path: Path) -> None:
    """It is set aside, and put back here; some are built again, which takes longer."""
    store = ArtifactStore(tmp_path / "store")
    store.get_or_build(KEY, lambda _: ARTIFACT)
    entry = store.root / "entries" / KEY
    for name in [*ARTIFACT.files, "manifest.json"]:
        for index in flips(entry / name):
            with pytest.warns(CorruptArtifactWarning, match=KEY[:12]):
                assert store.get(KEY) is None
            if index % 101 == 0:
                assert store.get_or_build(KEY, lambda _: ARTIFACT) is ARTIFACT
                assert store.get(KEY) == ARTIFACT
            else:
                (aside,) = (store.root / "corrupt").glob("*/entry")
                aside.rename(entry)
    assert store.get(KEY) == ARTIFACT
