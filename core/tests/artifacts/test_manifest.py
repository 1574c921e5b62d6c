from __future__ import annotations

import hashlib
import json
import pickle
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trunnion.artifacts.manifest import MAX_MANIFEST_BYTES, FileRecord, Manifest, artifact_key
from trunnion.contract.compiler import ImageKernel, ImageParameter
from trunnion.errors import ArtifactError, CorruptArtifactError

if TYPE_CHECKING:
    from collections.abc import Callable

TEXT = st.text(max_size=30)
PAIRS = st.dictionaries(TEXT, TEXT, max_size=4)
FILES = st.dictionaries(
    st.from_regex(r"[A-Za-z0-9_][A-Za-z0-9_.+-]{0,20}", fullmatch=True).filter(
        lambda n: n != "manifest.json"
    ),
    st.binary(max_size=20).map(FileRecord.of),
    max_size=4,
)
PARAMETERS = st.lists(st.builds(ImageParameter, *[st.integers(0, 4096)] * 3), max_size=3).map(tuple)
KERNELS = st.lists(st.builds(ImageKernel, TEXT, TEXT, PARAMETERS), max_size=3).map(tuple)


@st.composite
def manifests(draw: st.DrawFn) -> Manifest:
    inputs = draw(PAIRS)
    return Manifest(
        backend=draw(TEXT),
        contract_version=draw(st.integers(0, 9)),
        target=draw(TEXT),
        plan_hash=draw(TEXT),
        emitter=draw(TEXT),
        kernels=draw(KERNELS),
        files=draw(FILES),
        toolchain=draw(PAIRS),
        key_inputs=inputs,
        key=artifact_key(inputs) if inputs else "",
    )


@given(manifests())
def test_json_round_trip(manifest: Manifest) -> None:
    assert Manifest.from_json(manifest.to_json()) == manifest
    assert pickle.loads(pickle.dumps(manifest)) == manifest  # noqa: S301 - our own bytes
    assert len({manifest, Manifest.from_json(manifest.to_json())}) == 1


def small(**more: Any) -> Manifest:
    members: dict[str, Any] = {
        "backend": "acme",
        "contract_version": 1,
        "target": "cuda:sm_90a",
        "plan_hash": "f" * 64,
        "emitter": "python 1",
        "kernels": (ImageKernel("add", "_Z3add", (ImageParameter(0, 0, 8),)),),
        "files": {"a.py": FileRecord.of(b"a"), "b.cubin": FileRecord.of(b"b")},
        "toolchain": {"x": "1", "y": "2"},
    }
    return Manifest(**{**members, **more})


def test_the_order_of_insertion_does_not_count() -> None:
    one = small()
    other = small(
        files={"b.cubin": FileRecord.of(b"b"), "a.py": FileRecord.of(b"a")}, toolchain={"y": "2", "x": "1"}
    )
    assert one.to_json() == other.to_json()
    assert hash(one) == hash(other)


def test_lone_surrogates_and_hostile_names_survive() -> None:
    kernel = ImageKernel('\udc80"\\\n\x00', "s", ())
    assert Manifest.from_json(small(kernels=(kernel,)).to_json()).kernels == (kernel,)


@pytest.mark.parametrize(
    "name",
    [
        "../x",
        "/etc/passwd",
        "a/b",
        "a\\b",
        "..",
        ".",
        ".hidden",
        "",
        "a\x00b",
        "manifest.json",
        "a\n",
        "é",
        "x" * 129,
    ],
)
def test_a_file_name_that_is_no_plain_name_is_refused(name: str) -> None:
    with pytest.raises(CorruptArtifactError, match="file name"):
        small(files={name: FileRecord.of(b"")})


@pytest.mark.parametrize("sha256", ["", "0" * 63, "0" * 65, "G" * 64, "A" * 64, "0" * 64 + "\n"])
def test_a_hash_that_is_none_is_refused(sha256: str) -> None:
    with pytest.raises(CorruptArtifactError):
        FileRecord(sha256, 0)


@pytest.mark.parametrize("size", [-1, (1 << 30) + 1])
def test_a_size_out_of_range_is_refused(size: int) -> None:
    with pytest.raises(CorruptArtifactError):
        FileRecord("0" * 64, size)


def test_a_key_that_is_not_of_its_inputs_is_refused() -> None:
    inputs = {"plan": "1"}
    assert small(key_inputs=inputs, key=artifact_key(inputs)).key == artifact_key(inputs)
    for bad in ({"key_inputs": inputs}, {"key": artifact_key({})}, {"key_inputs": inputs, "key": "0" * 64}):
        with pytest.raises(CorruptArtifactError, match="key"):
            small(**bad)


def spell(members: dict[str, Any]) -> bytes:
    return (json.dumps(members, indent=1, sort_keys=True) + "\n").encode()


def edit(change: Callable[[dict[str, Any]], object]) -> bytes:
    """Return an edited manifest whose own hash is right, so that only the edit can be what is refused."""
    members = json.loads(small().to_json())
    del members["sha256"]
    change(members)
    return spell({**members, "sha256": hashlib.sha256(spell(members)).hexdigest()})


EDITS: dict[str, Callable[[dict[str, Any]], object]] = {
    "newer schema": lambda m: m.update(schema=2),
    "schema true": lambda m: m.update(schema=True),
    "schema 1.0": lambda m: m.update(schema=1.0),
    "no schema": lambda m: m.pop("schema"),
    "unknown field": lambda m: m.update(extra=1),
    "missing field": lambda m: m.pop("emitter"),
    "wrong type": lambda m: m.update(backend=1),
    "bool for int": lambda m: m.update(contract_version=True),
    "null": lambda m: m.update(kernels=None),
    "kernel no object": lambda m: m.update(kernels=[1]),
    "kernel unknown field": lambda m: m["kernels"][0].update(extra=1),
    "parameter wrong type": lambda m: m["kernels"][0]["parameters"][0].update(size="8"),
    "file unknown field": lambda m: m["files"]["a.py"].update(mode=1),
    "file size no int": lambda m: m["files"]["a.py"].update(size=1.0),
    "file name a path": lambda m: m["files"].update({"../a": m["files"].pop("a.py")}),
    "toolchain no string": lambda m: m["toolchain"].update(x=1),
    "key without inputs": lambda m: m.update(key="0" * 64),
}


def test_an_unedited_manifest_is_read() -> None:
    assert Manifest.from_json(edit(lambda _: None)) == small()


@pytest.mark.parametrize("case", EDITS)
def test_an_edited_manifest_is_refused(case: str) -> None:
    with pytest.raises(CorruptArtifactError):
        Manifest.from_json(edit(EDITS[case]))


def test_another_schema_says_so_whatever_else_is_in_it() -> None:
    with pytest.raises(CorruptArtifactError, match="schema 7"):
        Manifest.from_json(b'{"schema": 7, "all": "different"}')


def test_a_flipped_bit_is_found() -> None:
    data = small().to_json().replace(b'"acme"', b'"acne"')
    with pytest.raises(CorruptArtifactError, match="edited"):
        Manifest.from_json(data)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"{",
        b"\xff",
        b"[]",
        b"null",
        b"[" * 100_000,
        b'{"schema": NaN}',
        b'{"schema": ' + b"1" * 5000 + b"}",
        small().to_json()[:-1],
        small().to_json() + b" ",
        small().to_json().replace(b'"backend": "acme"', b'"backend": "acme", "backend": "acme"'),
        small().to_json().replace(b'"acme"', b'"\\u0061cme"'),
    ],
)
def test_bytes_that_were_not_written_by_us_are_refused(data: bytes) -> None:
    with pytest.raises(CorruptArtifactError):
        Manifest.from_json(data)


def test_the_key_depends_on_every_name_and_value_and_on_no_order() -> None:
    assert artifact_key({"a": "1", "b": "2"}) == artifact_key({"b": "2", "a": "1"})
    different = [
        {},
        {"a": "1"},
        {"a": "2"},
        {"b": "1"},
        {"a": "1", "b": ""},
        {"a": "1b"},
        {"a": '1", "b": "'},
    ]
    assert len({artifact_key(inputs) for inputs in different}) == len(different)
    assert len(artifact_key({"\udc80": "\udc80"})) == 64


def test_a_manifest_that_could_not_be_read_again_is_not_written() -> None:
    inputs = {"": ""}
    least = len(small(key_inputs=inputs, key=artifact_key(inputs)).to_json())
    inputs = {"": "x" * (MAX_MANIFEST_BYTES - least)}
    most = small(key_inputs=inputs, key=artifact_key(inputs))
    assert Manifest.from_json(most.to_json()) == most
    inputs = {"": f"{inputs['']}x"}
    more = small(key_inputs=inputs, key=artifact_key(inputs))
    with pytest.raises(ArtifactError, match=f"{MAX_MANIFEST_BYTES + 1} bytes, expected at most"):
        more.to_json()


def test_a_manifest_that_is_too_long_is_refused_before_it_is_read() -> None:
    data = b" " * (MAX_MANIFEST_BYTES + 1)
    with pytest.raises(CorruptArtifactError, match=f"has {len(data)} bytes, expected at most"):
        Manifest.from_json(data)
