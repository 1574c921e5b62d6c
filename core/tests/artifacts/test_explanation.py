"""Of what is kept the nearest is told, and every input in which it differs."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from trunnion.artifacts.artifact import Artifact
from trunnion.artifacts.explanation import explain_key, program_name
from trunnion.artifacts.fitting import MAX_INPUT_BYTES, key_input
from trunnion.artifacts.manifest import artifact_key
from trunnion.artifacts.program_file import PROGRAM_FILE
from trunnion.artifacts.store import ArtifactStore
from trunnion.errors import ArtifactError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path


def program(name: str = "p", **more: object) -> str:
    return json.dumps({"name": name, "code": [{"source": "one", "name": "k.cu"}], **more})


INPUTS = {"program": program(), "target": "cuda:sm_90a", "compiler": "1"}


@pytest.fixture
def store(tmp_path: Path) -> ArtifactStore:
    return ArtifactStore(tmp_path)


@pytest.fixture
def keep(store: ArtifactStore, make_artifact) -> Callable[[Mapping[str, str]], str]:
    def kept(inputs: Mapping[str, str]) -> str:
        key = artifact_key(inputs)
        made = make_artifact().including(PROGRAM_FILE, inputs["program"].encode())
        made = Artifact(replace(made.manifest, target=inputs["target"]), made.files)
        store.get_or_build(key, lambda _: made.keyed(inputs))
        return key

    return kept


def test_what_is_there_is_a_hit_and_no_use(store, keep) -> None:
    key = keep(INPUTS)
    os.utime(store.root / "entries" / key, (1, 1))
    found = explain_key(store, INPUTS)
    assert (found.key, found.hit, found.problem, found.nearest) == (key, True, "", None)
    assert store.entries()[0].used == 1
    assert store.statistics().hits == 0


def test_where_nothing_is_there_is_nothing_nearest(store) -> None:
    found = explain_key(store, INPUTS)
    assert (found.hit, found.nearest, found.differences) == (False, None, ())


def test_the_nearest_is_of_the_same_program_then_of_its_name_then_of_the_fewest_differences(
    store, keep
) -> None:
    def nearest() -> str:
        return explain_key(store, INPUTS).nearest.key

    far = keep({"program": program("q"), "target": "cpu", "compiler": "1"})
    assert nearest() == far
    near = keep({**INPUTS, "program": program("q")})
    assert nearest() == near
    edited = keep({**INPUTS, "program": program(more=1), "compiler": "2", "target": "cpu"})
    assert nearest() == edited
    same = keep({**INPUTS, "compiler": "2", "target": "cpu", "other": "3"})
    assert nearest() == same
    closer = keep({**INPUTS, "compiler": "2"})
    assert nearest() == closer
    later = keep({**INPUTS, "compiler": "3"})
    os.utime(store.root / "entries" / closer, (1, 1))
    assert nearest() == later


def test_long_programs_without_a_name_are_not_called_alike(store, keep) -> None:
    """Of a long program only the digest is in a key."""
    long = {**INPUTS, "program": key_input("x" * (MAX_INPUT_BYTES + 1))}
    keep({**INPUTS, "program": program("q")})
    keep({**long, "target": "cpu", "compiler": "2"})
    found = explain_key(store, {**INPUTS, "program": key_input("y" * (MAX_INPUT_BYTES + 1))})
    assert [one.name for one in found.differences] == ["program"]


def test_each_difference_is_told(store, keep) -> None:
    keep({"program": program(code=[{"source": "two", "name": "k.cu"}], x=1), "target": "cpu", "old": "1"})
    found = {one.name: one for one in explain_key(store, INPUTS).differences}
    assert found.keys() == {"program", "target", "old", "compiler"}
    assert found["program"].places == ("code[0].source", "x")
    assert (found["target"].here, found["target"].kept, found["target"].places) == ("cuda:sm_90a", "cpu", ())
    assert (found["old"].here, found["old"].kept) == (None, "1")
    assert (found["compiler"].here, found["compiler"].kept) == ("1", None)


def test_of_many_places_the_first_are_told(store, keep) -> None:
    keep({**INPUTS, "program": program(**{f"x{n:03}": n for n in range(100)})})
    (one,) = explain_key(store, INPUTS).differences
    assert len(one.places) == 12


@pytest.mark.parametrize("damage", ["image.cubin", "manifest.json"])
def test_what_is_there_and_cannot_be_used_is_told_and_stays(store, keep, damage: str) -> None:
    key = keep(INPUTS)
    other = keep({**INPUTS, "target": "cpu"})
    (store.root / "entries" / key / damage).write_text("changed")
    found = explain_key(store, INPUTS)
    assert (found.hit, found.nearest.key) == (False, other)
    assert damage in found.problem
    assert len(store.entries()) == 2


def test_what_others_could_have_written_is_no_nearest(store, keep) -> None:
    key = keep({**INPUTS, "target": "cpu"})
    (store.root / "entries" / key).chmod(0o777)
    assert store.manifest(key) is None
    assert "written by others" in store.problem(key)
    assert explain_key(store, INPUTS).nearest is None


def test_an_entry_under_another_s_key_is_none(store, keep) -> None:
    (store.root / "entries" / keep(INPUTS)).rename(store.root / "entries" / ("0" * 64))
    assert store.manifest("0" * 64) is None
    assert "is of key" in store.problem("0" * 64)
    for ask in (store.manifest, store.problem):
        with pytest.raises(ArtifactError):
            ask("../entries")


@pytest.mark.parametrize("said", ["", "x", "[]", "[" * 100_000, '{"name": 5}', "{}"])
def test_a_program_that_is_none_has_no_name(said: str) -> None:
    assert program_name({"program": said}) == ""
    assert program_name({}) == ""
