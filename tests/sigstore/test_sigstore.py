"""Identities: what sigstore vouches for is what somebody signed, and nothing else; no network is asked."""

from __future__ import annotations

import base64
import hashlib
import json
import socket
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from private_sigstore.instance import IDENTITY, ISSUER, PrivateSigstore

import trunnion
from trunnion import SigstoreIdentity, examples
from trunnion.cli import main
from trunnion.errors import (
    ArgumentTypeError,
    ArgumentValueError,
    ArtifactError,
    CorruptArtifactError,
    UntrustedArtifactError,
)

if TYPE_CHECKING:
    from collections.abc import Callable

OURS = PrivateSigstore()
SIGNED = ("kernels.trn", "saved", "kernels.trn.provenance.json")
WANTED = SigstoreIdentity(IDENTITY, ISSUER, "trusted_root.json")


@pytest.fixture(scope="module")
def artifacts() -> dict[str, Any]:
    program = examples.load("vector_add").program
    return {arch: trunnion.compile(program, "nvrtc", target=arch).artifact for arch in ("sm_90a", "sm_80")}


@pytest.fixture(autouse=True)
def no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*given: object) -> None:
        raise AssertionError(f"a network was asked: {given}")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)


def digest_of(path: str) -> str:
    file = Path(path, "manifest.json") if Path(path).is_dir() else Path(path)
    return hashlib.sha256(file.read_bytes()).hexdigest()


def write(path: str, bundle: Any) -> None:
    Path(f"{path}.sigstore.json").write_text(json.dumps(bundle))


@pytest.fixture
def place(tmp_path: Path, artifacts: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> Path:
    """Make a bundle, its provenance and an artifact, each signed, and a root of trust, and go there."""
    monkeypatch.chdir(tmp_path)
    trunnion.write_bundle("kernels.trn", {"add": list(artifacts.values())})
    trunnion.write_provenance(trunnion.Bundle.open("kernels.trn"))
    artifacts["sm_90a"].save("saved")
    Path("trusted_root.json").write_bytes(OURS.trusted_root())
    for path in SIGNED:
        write(path, OURS.sign(digest_of(path)))
    return tmp_path


@pytest.mark.parametrize("path", SIGNED)
def test_what_an_identity_signed_is_verified_with_no_network(place: Path, path: str) -> None:
    found = trunnion.verify_identity(path, WANTED)
    assert (found.digest, found.signer) == (digest_of(path), WANTED)
    if not path.endswith(".json"):
        assert trunnion.load(path, digest=found.digest)


def test_a_person_is_an_identity_too(place: Path) -> None:
    write("saved", OURS.sign(digest_of("saved"), "me@example.org"))
    assert trunnion.verify_identity("saved", replace(WANTED, identity="me@example.org"))


def test_what_nobody_signed_is_refused(place: Path) -> None:
    Path("saved.sigstore.json").unlink()
    with pytest.raises(UntrustedArtifactError, match=r"there is no 'saved\.sigstore\.json' beside it"):
        trunnion.verify_identity("saved", WANTED)


@pytest.mark.parametrize(
    "other",
    [
        {"identity": "https://example.org/kernels/.github/workflows/other.yml@refs/heads/main"},
        {"identity": IDENTITY[:-1]},
        {"identity": IDENTITY.upper()},
        {"issuer": "https://token.example.com"},
        {"issuer": ISSUER + "/"},
    ],
)
def test_another_identity_or_issuer_is_refused(place: Path, other: dict[str, str]) -> None:
    with pytest.raises(UntrustedArtifactError, match="sigstore does not find"):
        trunnion.verify_identity("saved", replace(WANTED, **other))


def test_another_root_of_trust_is_refused(place: Path) -> None:
    Path("trusted_root.json").write_bytes(PrivateSigstore().trusted_root())
    with pytest.raises(UntrustedArtifactError, match="sigstore does not find"):
        trunnion.verify_identity("saved", WANTED)


@pytest.mark.parametrize("foreign", ["authority", "certificates", "log"])
def test_each_of_authority_and_logs_must_be_believed(place: Path, foreign: str) -> None:
    other = PrivateSigstore(**{**vars_of(OURS), foreign: getattr(PrivateSigstore(), foreign)})
    write("saved", other.sign(digest_of("saved")))
    with pytest.raises(UntrustedArtifactError, match="sigstore does not find"):
        trunnion.verify_identity("saved", WANTED)


def vars_of(one: PrivateSigstore) -> dict[str, Any]:
    return {name: getattr(one, name) for name in ("authority", "certificates", "log")}


def test_the_signature_of_another_or_an_older_one_is_refused(place: Path, artifacts: dict[str, Any]) -> None:
    write("saved", OURS.sign(digest_of("kernels.trn")))
    with pytest.raises(UntrustedArtifactError, match="sigstore does not find"):
        trunnion.verify_identity("saved", WANTED)
    trunnion.write_bundle("kernels.trn", {"add": artifacts["sm_80"]})
    with pytest.raises(UntrustedArtifactError, match="sigstore does not find"):
        trunnion.verify_identity("kernels.trn", WANTED)


def test_what_was_signed_after_the_certificate_ended_is_refused(place: Path) -> None:
    write("saved", OURS.sign(digest_of("saved"), late=timedelta(minutes=10)))
    with pytest.raises(UntrustedArtifactError, match="sigstore does not find"):
        trunnion.verify_identity("saved", WANTED)


def test_what_is_signed_must_be_whole(place: Path) -> None:
    Path("saved", "image.cubin").write_bytes(b"")
    with pytest.raises(CorruptArtifactError):
        trunnion.verify_identity("saved", WANTED)


def _leaves(value: Any, at: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    members = (
        value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    )
    found = [leaf for name, one in members for leaf in _leaves(one, (*at, name))]
    return found or [at]


def _changed(bundle: Any, at: tuple[Any, ...], change: Callable[[str], str]) -> Any:
    found = inner = json.loads(json.dumps(bundle))
    for name in at[:-1]:
        inner = inner[name]
    inner[at[-1]] = change(inner[at[-1]])
    return found


def _flipped(text: str) -> str:
    """Return another text: of base64 the same bytes, but one bit; of another one a digit more."""
    try:
        data = bytearray(base64.b64decode(text, validate=True))
    except ValueError:
        return f"{text}1"
    if len(data) < 8:
        return f"{text}1"
    data[len(data) // 2] ^= 1
    return base64.b64encode(data).decode()


def test_every_member_of_a_sigstore_bundle_counts(place: Path) -> None:
    good = OURS.sign(digest_of("saved"))
    leaves = _leaves(good)
    assert len(leaves) > 12
    for at in leaves:
        write("saved", _changed(good, at, _flipped))
        with pytest.raises(UntrustedArtifactError):
            trunnion.verify_identity("saved", WANTED)


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"{}",
        b"[]",
        b"null",
        b"\xff\xfe",
        b"[" * 100_000,
        b'{"mediaType": "application/vnd.dev.sigstore.bundle.v0.3+json"}',
        b'{"mediaType": "moon", "mediaType": "application/vnd.dev.sigstore.bundle.v0.3+json"}',
    ],
)
def test_what_is_no_sigstore_bundle_is_refused(place: Path, text: bytes) -> None:
    Path("saved.sigstore.json").write_bytes(text)
    with pytest.raises(UntrustedArtifactError, match="sigstore does not find"):
        trunnion.verify_identity("saved", WANTED)


def test_a_huge_one_or_what_is_no_file_is_refused(place: Path) -> None:
    with Path("saved.sigstore.json").open("ab") as file:
        file.truncate(1 << 40)
    with pytest.raises(CorruptArtifactError, match="expected at most"):
        trunnion.verify_identity("saved", WANTED)
    Path("saved.sigstore.json").unlink()
    Path("saved.sigstore.json").symlink_to("/dev/zero")
    with pytest.raises(CorruptArtifactError, match="is not a plain file"):
        trunnion.verify_identity("saved", WANTED)


@pytest.mark.parametrize("text", [b"", b"{}", b"[]", b"\xff"])
def test_a_root_of_trust_that_is_none_is_refused(place: Path, text: bytes) -> None:
    Path("trusted_root.json").write_bytes(text)
    with pytest.raises(UntrustedArtifactError, match="sigstore does not find"):
        trunnion.verify_identity("saved", WANTED)


def test_a_root_of_trust_that_others_can_write_or_that_is_not_there_is_refused(place: Path) -> None:
    Path("trusted_root.json").chmod(0o666)
    with pytest.raises(UntrustedArtifactError, match="can be written by others"):
        trunnion.verify_identity("saved", WANTED)
    Path("trusted_root.json").unlink()
    with pytest.raises(ArtifactError, match="there is no trust root at"):
        trunnion.verify_identity("saved", WANTED)


@pytest.mark.parametrize(
    ("given", "kind"),
    [
        (("", ISSUER, "x"), ArgumentValueError),
        ((IDENTITY, "", "x"), ArgumentValueError),
        ((None, ISSUER, "x"), ArgumentTypeError),
        ((IDENTITY, None, "x"), ArgumentTypeError),
        ((IDENTITY, ISSUER, ""), ArtifactError),
        ((IDENTITY, ISSUER, None), ArtifactError),
    ],
)
def test_who_is_nobody_in_particular_is_refused(given: Any, kind: type[Exception]) -> None:
    with pytest.raises(kind):
        SigstoreIdentity(*given)


def test_the_command_verifies_an_identity(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["--identity", IDENTITY, "--issuer", ISSUER, "--trust-root", "trusted_root.json"]
    assert main(["verify", *SIGNED, *words, "--json"]) == 0
    assert [row["identity"] for row in json.loads(capsys.readouterr().out)["verified"]] == [IDENTITY] * 3
    assert main(["verify", "saved", *words]) == 0
    assert f"signed by {IDENTITY}" in capsys.readouterr().out.replace("\n", "")
    for lacking in (words[2:], words[:4], [*words, "--key", "key.pub"]):
        assert main(["verify", "saved", *lacking]) == 2
