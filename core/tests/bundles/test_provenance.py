"""Provenance: what a bundle was built from is stated as in-toto and SLSA have it, and nothing of this machine is."""

from __future__ import annotations

import getpass
import hashlib
import json
import re
import socket
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

import trunnion
from trunnion import SigningKey, examples
from trunnion.artifacts.json_document import spelled
from trunnion.bundles import provenance as module
from trunnion.bundles.provenance import UNNAMED_BUILDER, Builder, provenance, stated_digests, write_provenance
from trunnion.cli import main
from trunnion.errors import (
    ArgumentTypeError,
    ArgumentValueError,
    ArtifactError,
    CorruptArtifactError,
    UntrustedArtifactError,
)
from trunnion.model.builder import ProgramBuilder
from trunnion.model.code import DeviceCode

KEY = SigningKey(Ed25519PrivateKey.from_private_bytes(bytes(32)))
_URI = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:\S+")
_DESCRIPTOR_FIELDS = {"name", "uri", "digest", "content", "downloadLocation", "mediaType", "annotations"}


@pytest.fixture(scope="module")
def artifacts() -> list[Any]:
    program = examples.load("vector_add").program
    return [
        trunnion.compile(program, backend, target="sm_90a", cache=False).artifact
        for backend in ("nvrtc", "tvm_ffi")
    ]


@pytest.fixture
def bundle(tmp_path: Path, artifacts: list[Any], monkeypatch: pytest.MonkeyPatch) -> trunnion.Bundle:
    monkeypatch.chdir(tmp_path)
    trunnion.write_bundle("kernels.trn", {"add": artifacts, "again": artifacts[0]})
    return trunnion.Bundle.open("kernels.trn")


def test_a_statement_that_could_not_be_read_again_is_not_written(
    bundle: trunnion.Bundle, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MAX_PROVENANCE_BYTES", 1000)
    with pytest.raises(ArtifactError, match="expected at most 1000"):
        write_provenance(bundle)
    assert not Path("kernels.trn.provenance.json").exists()


def stated(data: bytes) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(data)
    return found


def check_descriptor(resource: dict[str, Any]) -> None:
    """Check in-toto's rules for a ResourceDescriptor: spec/v1/resource_descriptor.md."""
    assert resource.keys() <= _DESCRIPTOR_FIELDS
    assert resource.keys() & {"uri", "digest", "content"}
    for algorithm, digest in resource["digest"].items():
        assert algorithm == "sha256"
        assert re.fullmatch("[0-9a-f]{64}", digest)


def check_statement(statement: dict[str, Any]) -> None:
    """Check what in-toto (spec/v1/statement.md) and SLSA (provenance v1, Build L1) require, and the type of each."""
    assert statement.keys() == {"_type", "subject", "predicateType", "predicate"}
    assert statement["_type"] == "https://in-toto.io/Statement/v1"
    assert statement["predicateType"] == "https://slsa.dev/provenance/v1"
    names = [subject["name"] for subject in statement["subject"]]
    assert names
    assert len(set(names)) == len(names)
    for subject in statement["subject"]:
        assert "digest" in subject
        check_descriptor(subject)
    predicate = statement["predicate"]
    assert predicate.keys() == {"buildDefinition", "runDetails"}
    definition, run = predicate["buildDefinition"], predicate["runDetails"]
    known = {"buildType", "externalParameters", "internalParameters", "resolvedDependencies"}
    assert {"buildType", "externalParameters"} <= definition.keys() <= known
    assert _URI.fullmatch(definition["buildType"])
    assert isinstance(definition["externalParameters"], dict)
    for dependency in definition["resolvedDependencies"]:
        check_descriptor(dependency)
    assert {"builder"} <= run.keys() <= {"builder", "metadata", "byproducts"}
    assert {"id"} <= run["builder"].keys() <= {"id", "builderDependencies", "version"}
    assert _URI.fullmatch(run["builder"]["id"])
    assert all(isinstance(version, str) for version in run["builder"]["version"].values())
    assert run.get("metadata", {}).keys() <= {"invocationId", "startedOn", "finishedOn"}


def test_it_has_what_in_toto_and_slsa_require(bundle: trunnion.Bundle) -> None:
    for builder in (Builder(), Builder("https://example.org/builders/7", 1_700_000_000)):
        check_statement(stated(provenance(bundle, builder)))


def test_its_subjects_are_the_files_of_the_bundle(bundle: trunnion.Bundle) -> None:
    subjects = {one["name"]: one["digest"]["sha256"] for one in stated(provenance(bundle))["subject"]}
    assert subjects == {
        file.name: hashlib.sha256(file.read_bytes()).hexdigest() for file in Path().glob("*.trn")
    }
    assert subjects["kernels.trn"] == bundle.digest


def test_it_says_what_was_compiled_from_what_by_what(bundle: trunnion.Bundle, artifacts: list[Any]) -> None:
    definition = stated(provenance(bundle))["predicate"]["buildDefinition"]
    assert definition["externalParameters"]["programs"]["again"] == [
        {"backend": "nvrtc", "target": "cuda:sm_90a"}
    ]
    variants = definition["internalParameters"]["variants"]
    assert {one["artifact"] for one in variants} == {artifact.unkeyed().digest for artifact in artifacts}
    assert all(one["toolchain"]["nvrtc"] for one in variants)
    sources = {one["name"]: one["digest"]["sha256"] for one in definition["resolvedDependencies"]}
    (code,) = examples.load("vector_add").program.code
    assert sources["add/vector_add.cu"] == hashlib.sha256(code.source.encode()).hexdigest()
    assert sources["add/program.json"] == artifacts[0].manifest.files["program.json"].sha256


def test_what_a_compiler_says_of_itself_is_stated(tmp_path: Path) -> None:
    program = examples.load("vector_add").program
    kept = trunnion.compile(program, "tvm_ffi", target="sm_90a", cache=tmp_path / "store")
    trunnion.write_bundle(tmp_path / "kernels.trn", {"add": kept})
    statement = stated(provenance(trunnion.Bundle.open(tmp_path / "kernels.trn"), built=[kept.artifact]))
    (variant,) = statement["predicate"]["buildDefinition"]["internalParameters"]["variants"]
    assert variant["key"] == kept.artifact.manifest.key
    assert "host compiler: " in variant["fingerprints"]["launcher"]
    assert variant["fingerprints"]["device compiler"].startswith("nvrtc")


def test_equal_builds_are_stated_in_equal_bytes_wherever_and_whenever_they_are_made(
    bundle: trunnion.Bundle, tmp_path: Path, artifacts: list[Any]
) -> None:
    trunnion.write_bundle(tmp_path / "elsewhere" / "kernels.trn", {"again": artifacts[0], "add": artifacts})
    other = trunnion.Bundle.open(tmp_path / "elsewhere" / "kernels.trn")
    assert provenance(other) == provenance(bundle)
    assert b"finishedOn" not in provenance(bundle)


def test_no_path_user_or_host_is_in_it(tmp_path: Path) -> None:
    header = tmp_path / "private_place" / "mine.h"
    header.parent.mkdir()
    header.write_text("#define ONE 1\n")
    source = f'#include "{header}"\nextern "C" __global__ void k() {{ int a = ONE; (void)a; }}'
    builder = ProgramBuilder("p", DeviceCode("cuda", source, name=str(tmp_path / "private_place" / "k.cu")))
    builder.launch("k", (), 1, 1)
    for backend in ("nvrtc", "tvm_ffi"):
        kept = trunnion.compile(builder.build(), backend, target="sm_90a", cache=tmp_path / "store")
        trunnion.write_bundle(tmp_path / f"{backend}.trn", {"p": kept})
        data = provenance(trunnion.Bundle.open(tmp_path / f"{backend}.trn"), built=[kept.artifact])
        for secret in (
            "private_place",
            str(tmp_path),
            str(Path.home()),
            getpass.getuser(),
            socket.gethostname(),
        ):
            assert not re.search(rf"(?<![a-z]){re.escape(secret)}(?![a-z])", data.decode()), secret
        sources = [
            one["name"] for one in stated(data)["predicate"]["buildDefinition"]["resolvedDependencies"]
        ]
        assert {"p/k.cu", "mine.h"} <= set(sources)


def test_a_time_and_a_builder_are_stated_if_they_are_given(bundle: trunnion.Bundle) -> None:
    run = stated(provenance(bundle, Builder("urn:example:ours", 0)))["predicate"]["runDetails"]
    assert run["builder"]["id"] == "urn:example:ours"
    assert run["metadata"] == {"finishedOn": "1970-01-01T00:00:00Z"}
    assert stated(provenance(bundle))["predicate"]["runDetails"]["builder"]["id"] == UNNAMED_BUILDER


@pytest.mark.parametrize(
    ("name", "finished", "kind"),
    [
        ("", None, ArgumentValueError),
        ("no uri", None, ArgumentValueError),
        ("me", None, ArgumentValueError),
        ("urn:a b", None, ArgumentValueError),
        ("urn:größe", None, ArgumentValueError),
        (3, None, ArgumentTypeError),
        ("urn:x:y", -1, ArgumentValueError),
        ("urn:x:y", 10**12, ArgumentValueError),
        ("urn:x:y", 1.5, ArgumentTypeError),
    ],
)
def test_what_is_no_builder_is_refused(name: Any, finished: Any, kind: type[Exception]) -> None:
    with pytest.raises(kind):
        Builder(name, finished)


# Signed -------------------------------------------------------------------------------------------------------------


def test_a_statement_is_signed_and_verified_with_the_files_that_it_is_about(bundle: trunnion.Bundle) -> None:
    file = write_provenance(bundle)
    assert file.name == "kernels.trn.provenance.json"
    assert trunnion.sign(file, KEY).kind == "provenance"
    assert trunnion.verify(file, [KEY.public]).digest == hashlib.sha256(file.read_bytes()).hexdigest()
    (part,) = Path().glob("kernels.sm_90a.*.trn")
    part.write_bytes(part.read_bytes() + b"\0")
    with pytest.raises(UntrustedArtifactError, match="it is another one"):
        trunnion.verify(file, [KEY.public])
    part.unlink()
    with pytest.raises(ArtifactError, match=rf"{part.name}.*; put it beside .{file.name}"):
        trunnion.verify(file, [KEY.public])


def test_a_statement_that_was_changed_is_refused(bundle: trunnion.Bundle) -> None:
    file = write_provenance(bundle)
    trunnion.sign(file, KEY)
    write_provenance(bundle, Builder("https://example.org/somebody-else"))
    with pytest.raises(UntrustedArtifactError, match="sign this one"):
        trunnion.verify(file, [KEY.public])


def _subject(**changes: Any) -> list[dict[str, Any]]:
    return [{"name": "kernels.trn", "digest": {"sha256": "0" * 64}, **changes}]


@pytest.mark.parametrize(
    "changes",
    [
        {"_type": "https://in-toto.io/Statement/v0.1"},
        {"predicateType": "https://slsa.dev/provenance/v0.2"},
        {"subject": []},
        {"subject": None},
        {"subject": [3]},
        {"subject": _subject() * 2},
        {"subject": _subject(name="../kernels.trn")},
        {"subject": _subject(name="/etc/passwd")},
        {"subject": _subject(name="")},
        {"subject": _subject(name="..")},
        {"subject": _subject(name="x\0")},
        {"subject": _subject(name=3)},
        {"subject": _subject(digest={})},
        {"subject": _subject(digest={"sha256": "0"})},
        {"subject": _subject(digest={"sha256": 0})},
        {"subject": _subject(digest=None)},
    ],
)
def test_what_is_no_statement_is_refused(bundle: trunnion.Bundle, changes: dict[str, Any]) -> None:
    with pytest.raises(CorruptArtifactError):
        stated_digests(spelled({**stated(provenance(bundle)), **changes}), "kernels.trn.provenance.json")


def test_the_command_writes_it_and_says_no_time_unless_the_environment_does(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("SOURCE_DATE_EPOCH", raising=False)
    words = ["build", "vector_add", "--target", "sm_90a", "--backend", "nvrtc", "--jobs", "1", "-o", "k.trn"]
    assert main([*words, "--json"]) == 0
    assert "provenance" not in json.loads(capsys.readouterr().out)
    assert main([*words, "--provenance", "--builder", "https://example.org/ci", "--json"]) == 0
    file = Path(json.loads(capsys.readouterr().out)["provenance"])
    statement = stated(file.read_bytes())
    check_statement(statement)
    assert statement["predicate"]["runDetails"]["builder"]["id"] == "https://example.org/ci"
    assert "metadata" not in statement["predicate"]["runDetails"]
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1700000000")
    assert main([*words, "--provenance"]) == 0
    assert "its provenance" in capsys.readouterr().out
    assert b"2023-11-14T22:13:20Z" in file.read_bytes()
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "yesterday")
    assert main([*words, "--provenance"]) == 1
    assert main([*words, "--provenance", "--builder", "me"]) == 1


def test_who_builds_is_said_in_a_provenance_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = [
        "build",
        "vector_add",
        "--target",
        "sm_90a",
        "--backend",
        "nvrtc",
        "-o",
        str(tmp_path / "kernels.trn"),
    ]
    assert main([*words, "--builder", "https://example.org/ci"]) == 1
    assert "'--builder': got it without --provenance, expected --provenance too" in capsys.readouterr().err
    assert not any(tmp_path.iterdir())
