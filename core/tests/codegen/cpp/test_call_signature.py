"""What is kept of a launcher's calls is read as it was written, and anything else is a corrupt artifact."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trunnion.codegen.cpp.call_signature import CallSignature
from trunnion.errors import CorruptArtifactError
from trunnion.examples import EXAMPLES, load
from trunnion.model.builder import ProgramBuilder
from trunnion.model.expr import symbols
from trunnion.model.program import DeviceCode, KernelProgram
from trunnion.testing.strategies import programs
from trunnion.testing.strategies.documents import changed_documents


def facts_of(program: KernelProgram) -> CallSignature:
    return CallSignature.of(program.plan())


def known() -> dict[str, Any]:
    """Return the document of a program that has something of everything."""
    p = ProgramBuilder("p", DeviceCode("cuda", "//"))
    (n,) = symbols("n")
    x = p.input("x", "float16", (n, 64), nullable=True)
    image = p.input("image", "float16", (1, 8, 8, 64))
    args = (
        x.tiled(box_dim=(8, 64)),
        image.im2col(
            pixel_box_lower_corner=(0, 0),
            pixel_box_upper_corner=(0, 0),
            channels_per_pixel=8,
            pixels_per_column=8,
        ),
        p.scalar("a", "float32"),
        p.pointer("b", alignment=16),
        p.struct("c", nbytes=12, alignment=4),
        p.output("y", "float32", (4,)),
        p.workspace("w", "uint8", (4,)),
    )
    p.launch("k", args, 1, 32, window=image.window(hit_ratio=0.5))
    document: dict[str, Any] = json.loads(facts_of(p.build()).to_json())
    return document


def spelled(document: dict[str, Any]) -> bytes:
    return json.dumps(document, sort_keys=True, separators=(",", ":")).encode() + b"\n"


TEXTS = [spelled(known()).decode(), *(facts_of(load(name).program).to_json() for name in EXAMPLES)]


@settings(max_examples=25)
@given(programs())
def test_facts_are_read_as_they_were_written(program: KernelProgram) -> None:
    facts = facts_of(program)
    assert CallSignature.from_json(facts.to_json().encode()) == facts


@settings(max_examples=400)
@given(changed_documents(st.sampled_from(TEXTS)))
def test_whatever_else_is_there_is_a_corrupt_artifact(text: str) -> None:
    try:
        read = CallSignature.from_json(text.encode()).to_json()
    except CorruptArtifactError as error:
        read = error.what
    assert read in (text, "call.json")


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"[",
        b"[]",
        b"null",
        b"\xff",
        b"[" * 200_000,
        b'{"a":' * 100_000,
        b"9" * 5000,
        b"NaN",
        b'"\\ud800"',
    ],
)
def test_what_is_no_document_is_a_corrupt_artifact(text: bytes) -> None:
    with pytest.raises(CorruptArtifactError, match=r"call\.json"):
        CallSignature.from_json(text)


@pytest.mark.parametrize(
    "change",
    [
        {"workspaces": 1e999},
        {"workspaces": -1},
        {"workspaces": "1"},
        {"direct": 1},
        {"maps": [{"mode": []}]},
        {"maps": [{"mode": {"box": 1}}]},
        {"maps": {}},
        {"params": {"a": 1}},
        {"params": [1]},
        {"persisting": [[1]]},
        {"persisting": [[1, "2"]]},
        {"persisting": [[4, 2]]},
        {"persisting": 3},
        {"extra": 1},
    ],
)
def test_a_field_of_another_type_is_a_corrupt_artifact(change: dict[str, Any]) -> None:
    refuse({**known(), **change})


@pytest.mark.parametrize(
    ("place", "field", "value"),
    [
        (0, "name", 1),
        (0, "dtype", []),
        (0, "dtype", "float17"),
        (0, "dtype", ""),
        (0, "kind", "texture"),
        (0, "nullable", None),
        (2, "dtype", "float17"),
        (3, "alignment", 0),
        (3, "alignment", "16"),
        (4, "nbytes", -1),
        (4, "nbytes", 10**4000),
    ],
)
def test_a_parameter_that_none_could_be_is_a_corrupt_artifact(place: int, field: str, value: Any) -> None:
    document = known()
    assert field in document["params"][place]
    document["params"][place][field] = value
    refuse(document)


def test_another_spelling_is_a_corrupt_artifact() -> None:
    document = known()
    assert CallSignature.from_json(spelled(document)).to_json().encode() == spelled(document)
    for text in (json.dumps(document), spelled(document).decode()[:-1], spelled(document).decode() + "\n"):
        with pytest.raises(CorruptArtifactError, match="spelled"):
            CallSignature.from_json(text.encode())


def refuse(document: dict[str, Any]) -> None:
    with pytest.raises(CorruptArtifactError, match=r"call\.json"):
        CallSignature.from_json(spelled(document))
