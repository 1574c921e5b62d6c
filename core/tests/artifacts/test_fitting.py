"""An artifact under a key that was made of something else is as good as a damaged one, wherever it is found."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from trunnion import ArtifactStore
from trunnion.artifacts.artifact import Artifact
from trunnion.artifacts.fitting import MAX_INPUT_BYTES, key_input, misfit
from trunnion.artifacts.manifest import artifact_key
from trunnion.artifacts.program_file import PROGRAM_FILE
from trunnion.artifacts.store import CorruptArtifactWarning
from trunnion.errors import ArtifactError
from trunnion.storage.refusals import NotKeptWarning

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

INPUTS = {"program": "{}", "target": "cuda:sm_90a", "backend": "acme with 2.0", "options": "{}"}
KEY = artifact_key(INPUTS)


@pytest.fixture
def ours(make_artifact: Callable[..., Artifact]) -> Artifact:
    return make_artifact().including(PROGRAM_FILE, b"{}").keyed(INPUTS)


def renamed(artifact: Artifact, **said: Any) -> Artifact:
    return Artifact(replace(artifact.manifest, **said), artifact.files)


OTHERS: dict[str, Callable[[Artifact], Artifact]] = {
    "another program": lambda ours: ours.including(PROGRAM_FILE, b"[]"),
    "no program": lambda ours: Artifact(
        replace(ours.manifest, files={n: r for n, r in ours.manifest.files.items() if n != PROGRAM_FILE}),
        {name: data for name, data in ours.files.items() if name != PROGRAM_FILE},
    ),
    "another target": lambda ours: renamed(ours, target="cuda:sm_80"),
    "another backend": lambda ours: renamed(ours, backend="acm"),
    "another key": lambda ours: ours.keyed(INPUTS | {"options": "[]"}),
}


@pytest.fixture(params=OTHERS)
def other(request: pytest.FixtureRequest, ours: Artifact) -> Artifact:
    return OTHERS[request.param](ours)


@pytest.mark.parametrize("long", [False, True])
def test_of_a_long_program_the_digest_is_compared(make_artifact: Callable[..., Artifact], long: bool) -> None:
    program = "x" * (MAX_INPUT_BYTES + long)
    inputs = {"program": key_input(program)}
    assert (inputs["program"] == program) is not long
    built = make_artifact().including(PROGRAM_FILE, program.encode()).keyed(inputs)
    assert not misfit(built, artifact_key(inputs))
    for other in (program[1:], f"y{program[1:]}"):
        another = built.including(PROGRAM_FILE, other.encode())
        assert "another program" in misfit(another, artifact_key(inputs))
    assert "another program" in misfit(make_artifact().keyed(inputs), artifact_key(inputs))


def test_a_program_that_has_no_bytes_is_another_one(make_artifact: Callable[..., Artifact]) -> None:
    """Any text may be an input of a key, a lone surrogate too, as in JSON."""
    inputs = {"program": "\ud800"}
    built = make_artifact().including(PROGRAM_FILE, b"{}").keyed(inputs)
    assert "another program" in misfit(built, artifact_key(inputs))


def plant(artifact: Artifact, root: Path) -> ArtifactStore:
    store = ArtifactStore(root)
    artifact.save(root / "entries" / KEY)
    return store


def test_in_a_store_it_is_set_aside_and_built(ours: Artifact, other: Artifact, tmp_path: Path) -> None:
    store = plant(other, tmp_path)
    assert store.problem(KEY)
    with pytest.warns(CorruptArtifactWarning, match="is not used: .* (of|for) "):
        assert store.get_or_build(KEY, lambda _: ours) == ours
    assert store.statistics().corrupt == 1
    assert store.get(KEY) == ours


def test_behind_a_store_it_is_told_and_built(ours: Artifact, other: Artifact, tmp_path: Path) -> None:
    behind = plant(other, tmp_path / "behind").root
    store = ArtifactStore(tmp_path / "store", behind=behind)
    with pytest.warns(NotKeptWarning, match=r"behind'( \(\d+ characters\))?, and is built: .* (of|for) "):
        assert store.get_or_build(KEY, lambda _: ours) == ours
    assert store.get(KEY) == ours


def test_what_builds_it_is_told(other: Artifact, tmp_path: Path) -> None:
    store = ArtifactStore(tmp_path)
    with pytest.raises(ArtifactError, match=r"from build that (is|was) .*keyed"):
        store.get_or_build(KEY, lambda _: other)
    assert store.get(KEY) is None


def test_what_is_as_its_key_says_is_found(ours: Artifact, tmp_path: Path) -> None:
    behind = plant(ours, tmp_path / "behind").root
    store = ArtifactStore(tmp_path / "store", behind=behind)
    assert store.get_or_build(KEY, lambda _: pytest.fail("it is built")) == ours
    assert store.get(KEY) == ours
