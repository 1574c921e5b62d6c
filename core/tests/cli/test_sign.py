"""``trunnion sign`` and ``trunnion verify``: who made what lies there."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
)

import trunnion
from trunnion import examples
from trunnion.cli import main
from trunnion.signing.keys import PASSWORD

if TYPE_CHECKING:
    from pathlib import Path

KEY = Ed25519PrivateKey.from_private_bytes(bytes(32))


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Make a bundle, an artifact and a pair of keys, and go there."""
    artifact = trunnion.compile(examples.load("vector_add").program, "nvrtc", target="sm_90a").artifact
    trunnion.write_bundle(tmp_path / "kernels.trn", {"add": artifact})
    artifact.save(tmp_path / "saved")
    (tmp_path / "key").write_bytes(KEY.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    public = KEY.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    (tmp_path / "key.pub").write_bytes(public)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_what_is_signed_verifies(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["sign", "kernels.trn", "saved", "--key", "key", "--json"]) == 0
    signed = json.loads(capsys.readouterr().out)
    key = trunnion.PublicKey.open("key.pub").id
    assert signed["key"] == key
    assert [(row["path"], row["kind"]) for row in signed["signed"]] == [
        ("kernels.trn", "bundle"),
        ("saved", "artifact"),
    ]
    assert main(["verify", "kernels.trn", "saved", "--key", "key.pub", "--json"]) == 0
    verified = json.loads(capsys.readouterr().out)["verified"]
    assert verified == [{**row, "key": key, "absent": []} for row in signed["signed"]]


def test_for_people_it_says_who_signed_what(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    key = trunnion.PublicKey.open("key.pub").id
    assert main(["sign", "saved", "--key", "key"]) == 0
    assert f"signed by the key {key}" in capsys.readouterr().out.replace("\n", "")
    assert main(["verify", "saved", "--key", "key.pub"]) == 0
    assert "saved: the artifact" in capsys.readouterr().out


def test_of_a_bundle_without_a_part_the_rest_is_verified_and_it_says_so(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    program = examples.load("vector_add").program
    made = [trunnion.compile(program, "nvrtc", target=arch) for arch in ("sm_90a", "sm_80")]
    trunnion.write_bundle("both.trn", {"add": made})
    assert main(["sign", "both.trn", "--key", "key"]) == 0
    (hopper,), (ampere,) = (project.glob(f"both.{arch}.*.trn") for arch in ("sm_90a", "sm_80"))
    ampere.unlink()
    capsys.readouterr()
    assert main(["verify", "both.trn", "--key", "key.pub", "--json"]) == 0
    (row,) = json.loads(capsys.readouterr().out)["verified"]
    assert row["absent"] == [{"file": ampere.name, "part": "sm_80", "programs": ["add"]}]
    assert main(["verify", "both.trn", "--key", "key.pub"]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert f"both.trn: {ampere.name} is not here: what it holds for 'sm_80' was not verified ('add')" in shown
    assert main(["sign", "both.trn", "--key", "key"]) == 1, "who signs says that all of it is good"
    hopper.write_bytes(hopper.read_bytes()[:-100])
    assert main(["verify", "both.trn", "--key", "key.pub"]) == 1
    hopper.unlink()
    assert main(["verify", "both.trn", "--key", "key.pub"]) == 1, "nothing of it was verified"


def test_what_is_not_signed_or_was_changed_ends_in_an_error(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["verify", "saved", "--key", "key.pub", "--json"]) == 1
    assert json.loads(capsys.readouterr().out)["error"]["type"] == "UntrustedArtifactError"
    assert main(["sign", "saved", "--key", "key"]) == 0
    (project / "saved" / "image.cubin").write_bytes(b"")
    capsys.readouterr()
    assert main(["verify", "saved", "--key", "key.pub", "--json"]) == 1
    assert json.loads(capsys.readouterr().out)["error"]["type"] == "CorruptArtifactError"
    assert main(["verify", "saved"]) == 2
    assert main(["sign", "saved"]) == 2


def test_nothing_of_several_is_signed_if_the_key_is_none(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["sign", "kernels.trn", "saved", "--key", "key.pub", "--json"]) == 1
    assert json.loads(capsys.readouterr().out)["error"]["type"] == "ArgumentValueError"
    assert not list(project.glob("*.sig"))


def test_the_password_is_the_environment_s(
    project: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    hidden = BestAvailableEncryption(b"open sesame")
    (project / "key").write_bytes(KEY.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, hidden))
    for wrong in (None, "open"):
        if wrong:
            monkeypatch.setenv(PASSWORD, wrong)
        assert main(["sign", "saved", "--key", "key"]) == 1
        assert "argument 'password'" in (said := capsys.readouterr().err)
        assert PASSWORD in said
    monkeypatch.setenv(PASSWORD, "open sesame")
    assert main(["sign", "saved", "--key", "key"]) == 0
    assert "sesame" not in capsys.readouterr().out
