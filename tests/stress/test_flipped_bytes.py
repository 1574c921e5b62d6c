"""Each bit of each byte of an artifact is flipped: nobody opens it, and a store builds it again."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from fault_injection.scenes import ARTIFACT, INPUTS, KEY

from trunnion.artifacts.artifact import Artifact
from trunnion.artifacts.store import ArtifactStore, CorruptArtifactWarning
from trunnion.errors import CorruptArtifactError

if TYPE_CHECKING:
    from pathlib import Path


def test_no_flipped_bit_is_opened(tmp_path: Path) -> None:
    ARTIFACT.save(tmp_path / "saved")
    flipped = 0
    for path in sorted((tmp_path / "saved").iterdir()):
        good = path.read_bytes()
        for bit in range(8 * len(good)):
            data = bytearray(good)
            data[bit // 8] ^= 1 << bit % 8
            path.write_bytes(data)
            with pytest.raises(CorruptArtifactError):
                Artifact.open(tmp_path / "saved")
            flipped += 1
        path.write_bytes(good)
    assert Artifact.open(tmp_path / "saved") == ARTIFACT
    assert flipped > 10_000


def test_each_flipped_byte_is_a_miss(tmp_path: Path) -> None:
    store, made = ArtifactStore(tmp_path / "store"), ARTIFACT.keyed(INPUTS)
    store.get_or_build(KEY, lambda _: made)
    for name in [*made.files, "manifest.json"]:
        path = store.root / "entries" / KEY / name
        for index in range(path.stat().st_size):
            data = bytearray(path.read_bytes())
            data[index] ^= 1 << index % 8
            path.write_bytes(data)
            with pytest.warns(CorruptArtifactWarning, match=KEY[:12]):
                assert store.get_or_build(KEY, lambda _: made) is made
            assert store.get(KEY) == made
