"""Signatures: what a trusted key signed is loaded, and nothing else, whatever lies in the signature file."""

from __future__ import annotations

import errno
import fcntl
import json
import os
import pickle
import subprocess
import sys
import threading
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
)

import trunnion
from trunnion import Lock, PublicKey, SigningKey, examples, signed_files
from trunnion.artifacts.json_document import spelled
from trunnion.errors import (
    ArgumentTypeError,
    ArgumentValueError,
    ArtifactError,
    CorruptArtifactError,
    LifecycleError,
    TrunnionError,
    UntrustedArtifactError,
)
from trunnion.signing.message import ARTIFACT, BUNDLE, KINDS, LOCK, signed_message
from trunnion.signing.signature import SignatureFile, signature_path

if TYPE_CHECKING:
    from collections.abc import Callable

HOPPER, AMPERE = "sm_90a", "sm_80"


def key_of(number: int) -> SigningKey:
    """Return the same key each time: what is signed with it has the same bytes."""
    return SigningKey(Ed25519PrivateKey.from_private_bytes(bytes([number]) * 32))


OURS, OTHER = key_of(1), key_of(2)


@pytest.fixture(scope="module")
def artifacts() -> dict[str, Any]:
    program = examples.load("vector_add").program
    return {arch: trunnion.compile(program, "nvrtc", target=arch).artifact for arch in (HOPPER, AMPERE)}


@pytest.fixture
def place(tmp_path: Path, artifacts: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> Path:
    """Make a bundle, an artifact and a lock file, each signed by our key, and go there."""
    monkeypatch.chdir(tmp_path)
    trunnion.write_bundle("kernels.trn", {"add": list(artifacts.values())})
    artifacts[HOPPER].save("saved")
    Lock.of(["kernels.trn", "saved"]).save()
    for path in SIGNED:
        trunnion.sign(path, OURS)
    return tmp_path


SIGNED = ("kernels.trn", "saved", "trunnion.lock")


def load(path: str, *keys: Any) -> Any:
    """Load what lies at a path, if one of the keys signed it."""
    if path.endswith(".lock"):
        return Lock.open(path, trusted_keys=keys or [OURS.public])
    return trunnion.load(path, trusted_keys=keys or [OURS.public])


def signature_path_of(path: str) -> Path:
    return signature_path(Path(path))


def members(path: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(signature_path_of(path).read_bytes())
    return found


# What is signed -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", SIGNED)
def test_what_a_trusted_key_signed_is_loaded(place: Path, path: str) -> None:
    assert load(path)
    assert load(path, OTHER.public, OURS.public)
    verified = trunnion.verify(path, [OTHER.public, OURS.public])
    assert verified.signer == OURS.public
    assert verified.kind == {"kernels.trn": BUNDLE, "saved": ARTIFACT, "trunnion.lock": LOCK}[path]


def test_a_bundle_and_an_artifact_go_by_the_digest_that_is_signed(place: Path) -> None:
    for path in SIGNED[:2]:
        assert trunnion.load(path, digest=trunnion.verify(path, [OURS.public]).digest)
    assert trunnion.load("kernels.trn").digest == members("kernels.trn")["digest"]
    assert trunnion.load("saved").artifact.digest == members("saved")["digest"]


def test_equal_things_have_equal_signatures_with_no_time_name_or_place(place: Path) -> None:
    before = {path: signature_path_of(path).read_bytes() for path in SIGNED}
    for path in SIGNED:
        trunnion.sign(place / path, OURS)
    assert {path: signature_path_of(path).read_bytes() for path in SIGNED} == before
    assert str(place).encode() not in b"".join(before.values())


def test_a_second_key_signs_beside_the_first_and_a_new_thing_drops_both(
    place: Path, artifacts: dict[str, Any]
) -> None:
    trunnion.sign("kernels.trn", OTHER)
    for key in (OURS, OTHER):
        assert load("kernels.trn", key.public)
    trunnion.write_bundle("kernels.trn", {"add": artifacts[AMPERE]})
    trunnion.sign("kernels.trn", OTHER)
    with pytest.raises(UntrustedArtifactError, match="is signed by"):
        load("kernels.trn")
    assert load("kernels.trn", OTHER.public)


def test_two_who_sign_at_once_both_have_signed(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    both_have_read, read = threading.Barrier(2), signed_files._other_signatures

    def read_and_wait(*args: Any) -> Any:
        found = read(*args)
        with suppress(threading.BrokenBarrierError):
            both_have_read.wait(0.5)
        return found

    monkeypatch.setattr(signed_files, "_other_signatures", read_and_wait)
    signature_path_of("kernels.trn").unlink()
    before = {*place.iterdir()}
    signers = [threading.Thread(target=trunnion.sign, args=("kernels.trn", key)) for key in (OURS, OTHER)]
    for signer in signers:
        signer.start()
    for signer in signers:
        signer.join()
    assert {one["key"] for one in members("kernels.trn")["signatures"]} == {OURS.public.id, OTHER.public.id}
    assert {*place.iterdir()} - before == {signature_path_of("kernels.trn").absolute()}


@pytest.mark.parametrize("refused", [errno.ENOLCK, errno.EBADF])
def test_where_there_are_no_locks_it_is_signed_all_the_same(
    place: Path, monkeypatch: pytest.MonkeyPatch, refused: int
) -> None:
    def flock(*_args: object) -> None:
        raise OSError(refused, os.strerror(refused))

    monkeypatch.setattr("trunnion.storage.turns.fcntl.flock", flock)
    trunnion.sign("kernels.trn", OTHER)
    assert load("kernels.trn", OTHER.public)


def test_who_never_ends_signing_is_told_to_be_ended(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(signed_files, "_WAIT_SECONDS", 0.01)
    descriptor = os.open(place, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        with pytest.raises(ArtifactError, match=r"has held the lock for .*; end that process"):
            trunnion.sign("kernels.trn", OTHER)
    finally:
        os.close(descriptor)


def test_what_anybody_can_write_is_loaded_if_it_is_signed(place: Path) -> None:
    for path in (*SIGNED, "."):
        (place / path).chmod(0o777)
    with pytest.raises(UntrustedArtifactError, match="can be written by others"):
        trunnion.load("kernels.trn")
    for path in SIGNED:
        assert load(path)


def test_openssl_can_check_it_too(place: Path) -> None:
    digest = trunnion.load("kernels.trn").digest
    (place / "message").write_bytes(f"trunnion.signature/1\nbundle\nsha256:{digest}\n".encode())
    (place / "raw").write_bytes(bytes.fromhex(members("kernels.trn")["signatures"][0]["signature"]))
    (place / "key.pub").write_bytes(pem(OURS.public))
    words = ["openssl", "pkeyutl", "-verify", "-pubin", "-inkey", "key.pub", "-rawin"]
    done = subprocess.run(
        [*words, "-in", "message", "-sigfile", "raw"], capture_output=True, text=True, check=False
    )
    assert "Signature Verified Successfully" in done.stdout, done.stderr


# What is refused ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", SIGNED)
def test_what_nobody_signed_is_refused(place: Path, path: str) -> None:
    signature_path_of(path).unlink()
    with pytest.raises(UntrustedArtifactError, match=rf"is not signed: there is no '{path}\.sig'"):
        load(path)


@pytest.mark.parametrize("path", SIGNED)
def test_what_a_foreign_key_signed_is_refused(place: Path, path: str) -> None:
    with pytest.raises(UntrustedArtifactError, match=f"is signed by '{OURS.public.id}', expected"):
        load(path, OTHER.public)
    with pytest.raises(UntrustedArtifactError, match="is signed by"):
        trunnion.verify(path, [OTHER.public])


def test_a_foreign_signature_under_a_trusted_name_is_refused(place: Path) -> None:
    digest = trunnion.load("kernels.trn").digest
    forged = SignatureFile(BUNDLE, digest, {OURS.public.id: OTHER.sign(signed_message(BUNDLE, digest))})
    signature_path_of("kernels.trn").write_bytes(forged.to_json())
    with pytest.raises(UntrustedArtifactError, match="was forged or changed"):
        load("kernels.trn")


def test_the_signature_of_another_one_is_refused(place: Path, artifacts: dict[str, Any]) -> None:
    artifacts[AMPERE].save("other")
    trunnion.sign("other", OURS)
    signature_path_of("other").replace(signature_path_of("saved"))
    with pytest.raises(UntrustedArtifactError, match=r"signs the artifact \w+, and 'saved' is the artifact"):
        load("saved")


def test_the_signature_of_an_older_version_is_refused(place: Path, artifacts: dict[str, Any]) -> None:
    old = signature_path_of("kernels.trn").read_bytes()
    trunnion.write_bundle("kernels.trn", {"add": artifacts[AMPERE]})
    with pytest.raises(UntrustedArtifactError, match="sign this one"):
        load("kernels.trn")
    claimed = json.loads(old) | {"digest": trunnion.load("kernels.trn").digest}
    signature_path_of("kernels.trn").write_bytes(spelled(claimed))
    with pytest.raises(UntrustedArtifactError, match="was forged or changed"):
        load("kernels.trn")


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != BUNDLE])
def test_a_signature_of_another_kind_of_thing_is_refused_though_the_digest_is_the_same(
    place: Path, kind: str
) -> None:
    digest = trunnion.load("kernels.trn").digest
    other = SignatureFile(kind, digest, {}).signed_by(OURS)
    signature_path_of("kernels.trn").write_bytes(other.to_json())
    with pytest.raises(UntrustedArtifactError, match=f"signs the {kind}"):
        load("kernels.trn")
    relabelled = SignatureFile(BUNDLE, digest, other.signatures)
    signature_path_of("kernels.trn").write_bytes(relabelled.to_json())
    with pytest.raises(UntrustedArtifactError, match="was forged or changed"):
        load("kernels.trn")


@pytest.mark.parametrize("path", SIGNED)
def test_every_byte_of_a_signature_counts(place: Path, path: str) -> None:
    file = signature_path_of(path)
    good = file.read_bytes()
    for at in range(len(good)):
        file.write_bytes(good[:at] + bytes([good[at] ^ 1]) + good[at + 1 :])
        with pytest.raises(ArtifactError):
            load(path)
    for cut in (0, 1, len(good) // 2, len(good) - 1):
        file.write_bytes(good[:cut])
        with pytest.raises(CorruptArtifactError):
            load(path)


def test_every_byte_of_what_is_signed_counts(place: Path) -> None:
    for file in (place / "kernels.trn", place / "saved" / "manifest.json", place / "trunnion.lock"):
        good, path = file.read_bytes(), "saved" if file.parent != place else file.name
        for at in range(0, len(good), 11):
            file.write_bytes(good[:at] + bytes([good[at] ^ 1]) + good[at + 1 :])
            with pytest.raises(ArtifactError):
                load(path)
        file.write_bytes(good)


def _with(changes: dict[str, Any]) -> Callable[[dict[str, Any]], bytes]:
    return lambda good: spelled({**good, **changes})


def _each(changes: dict[str, Any]) -> Callable[[dict[str, Any]], bytes]:
    return lambda good: spelled({**good, "signatures": [{**good["signatures"][0], **changes}]})


@pytest.mark.parametrize(
    "spoilt",
    [
        lambda good: b"",
        lambda good: b"[]",
        lambda good: b"null",
        lambda good: b"\xff\xfe" + spelled(good),
        lambda good: "größe".encode(),
        lambda good: b"[" * 60_000,
        lambda good: spelled(good).replace(b"\n", b"\r\n"),
        lambda good: b"\xef\xbb\xbf" + spelled(good),
        lambda good: json.dumps(good).encode(),
        lambda good: spelled(good).replace(b' "kind"', b' "kind": "lock",\n "kind"'),
        lambda good: spelled({**good, "signatures": good["signatures"] * 2}),
        _with({"schema": "trunnion.signature/2"}),
        _with({"more": 1}),
        _with({"kind": "moon"}),
        _with({"kind": ["bundle"]}),
        _with({"digest": "0"}),
        _with({"digest": 3}),
        _with({"signatures": []}),
        _with({"signatures": {}}),
        _with({"signatures": [1]}),
        _each({"algorithm": "none"}),
        _each({"algorithm": ""}),
        _each({"key": ""}),
        _each({"key": "../../etc"}),
        _each({"signature": ""}),
        _each({"signature": "0" * 127}),
        _each({"signature": None}),
        _each({"name": "x"}),
        lambda good: spelled({**good, "signatures": [{}] * 65}),
    ],
)
def test_what_is_no_signature_file_is_refused(place: Path, spoilt: Callable[[Any], bytes]) -> None:
    file = signature_path_of("kernels.trn")
    file.write_bytes(spoilt(members("kernels.trn")))
    with pytest.raises(CorruptArtifactError, match=r"kernels\.trn\.sig"):
        load("kernels.trn")


def test_a_huge_signature_file_is_refused_without_being_read(place: Path) -> None:
    with signature_path_of("kernels.trn").open("ab") as file:
        file.truncate(1 << 40)
    with pytest.raises(CorruptArtifactError, match="expected at most 65536"):
        load("kernels.trn")


@pytest.mark.parametrize("there", ["pipe", "folder", "device", "loop"])
def test_what_is_no_file_is_refused_and_does_not_hang(place: Path, there: str) -> None:
    file = signature_path_of("kernels.trn")
    file.unlink()
    match there:
        case "pipe":
            os.mkfifo(file)
        case "folder":
            file.mkdir()
        case "device":
            file.symlink_to("/dev/zero")
        case _:
            file.symlink_to(file)
    with pytest.raises(ArtifactError, match=r"kernels\.trn\.sig"):
        load("kernels.trn")


def test_a_linked_signature_is_as_good_as_what_it_says_and_tells_nothing_of_another_file(place: Path) -> None:
    file = signature_path_of("kernels.trn")
    file.rename(place / "elsewhere")
    file.symlink_to(place / "elsewhere")
    assert load("kernels.trn")
    (place / "elsewhere").write_text("a secret")
    with pytest.raises(CorruptArtifactError) as caught:
        load("kernels.trn")
    assert "secret" not in str(caught.value)


def _evil(place: Path, artifacts: dict[str, Any]) -> Callable[[], None]:
    """Return what puts other things in the place of those that are signed, with a signature of the other bundle."""
    (place / "evil").mkdir()
    trunnion.write_bundle("evil/kernels.trn", {"evil": artifacts[AMPERE]})
    trunnion.sign("evil/kernels.trn", OURS)

    def exchange() -> None:
        for name in ("kernels.trn", "kernels.trn.sig"):
            (place / name).write_bytes((place / "evil" / name).read_bytes())
        (place / "saved" / "manifest.json").write_bytes(artifacts[AMPERE].manifest.to_json())
        (place / "trunnion.lock").write_bytes(b"{}")

    return exchange


@pytest.mark.parametrize("path", SIGNED)
def test_what_changes_after_the_check_is_not_used(
    place: Path, artifacts: dict[str, Any], monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    """What is verified is the bytes that were read: whoever exchanges the files right then changes nothing."""
    exchange, read = _evil(place, artifacts), SignatureFile.open

    def exchanging(file: Path) -> SignatureFile | None:
        found = read(file)
        exchange()
        return found

    monkeypatch.setattr(SignatureFile, "open", exchanging)
    found = load(path)
    match path:
        case "kernels.trn":
            assert list(found) == ["add"]
        case "saved":
            assert found.artifact == artifacts[HOPPER]
        case _:
            assert sorted(found.digests) == ["kernels.trn", "saved"]


def test_what_changes_before_the_signature_is_read_is_refused_though_that_one_is_good(
    place: Path, artifacts: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    exchange, read = _evil(place, artifacts), SignatureFile.open

    def exchanging(file: Path) -> SignatureFile | None:
        exchange()
        return read(file)

    monkeypatch.setattr(SignatureFile, "open", exchanging)
    with pytest.raises(UntrustedArtifactError, match="sign this one"):
        load("kernels.trn")


def test_a_part_that_is_exchanged_is_not_what_was_signed(place: Path, artifacts: dict[str, Any]) -> None:
    (part,) = place.glob("kernels.sm_80.*.trn")
    (other,) = place.glob("kernels.sm_90a.*.trn")
    part.write_bytes(other.read_bytes())
    with pytest.raises(CorruptArtifactError):
        trunnion.verify("kernels.trn", [OURS.public])
    with pytest.raises(CorruptArtifactError):
        trunnion.sign("kernels.trn", OURS)


def test_an_artifact_in_memory_has_no_signature_beside_it(artifacts: dict[str, Any]) -> None:
    with pytest.raises(ArgumentValueError, match="keys for an artifact in memory"):
        trunnion.load(artifacts[HOPPER], trusted_keys=[OURS.public])


def test_a_digest_and_keys_must_both_hold(place: Path) -> None:
    digest = trunnion.load("kernels.trn").digest
    assert trunnion.load("kernels.trn", digest=digest, trusted_keys=[OURS.public])
    with pytest.raises(UntrustedArtifactError, match="it is another one"):
        trunnion.load("kernels.trn", digest="0" * 64, trusted_keys=[OURS.public])
    with pytest.raises(UntrustedArtifactError, match="is signed by"):
        trunnion.load("kernels.trn", digest=digest, trusted_keys=[OTHER.public])


@pytest.mark.parametrize(
    ("given", "kind"),
    [
        ([], ArgumentValueError),
        ("key.pub", ArgumentTypeError),
        (3, ArgumentTypeError),
        ([3], ArgumentTypeError),
        ([None], ArgumentTypeError),
        ([OURS], ArgumentTypeError),
        ([b"ssh-ed25519"], ArgumentTypeError),
        ([OURS.public] * 1025, ArgumentValueError),
        (iter([OURS.public.raw]), ArgumentTypeError),
    ],
)
def test_what_are_no_keys_trusts_nobody(place: Path, given: Any, kind: type[Exception]) -> None:
    with pytest.raises(kind):
        trunnion.load("kernels.trn", trusted_keys=given)


@pytest.mark.parametrize(
    "raw", [b"\0" * 32, b"\1" + b"\0" * 31, b"\1" + b"\0" * 30 + b"\x80", b"\xec" + b"\xff" * 31]
)
def test_a_key_that_everybody_can_sign_for_is_none(raw: bytes) -> None:
    with pytest.raises(ArgumentValueError, match="not everybody can sign for"):
        trunnion.PublicKey(raw)


@pytest.mark.parametrize(
    "path", ["nothing", "nothing.trn", "message.txt", "other.json", "kernels.trn.sig", "/"]
)
def test_what_cannot_be_signed_is_not(place: Path, path: str) -> None:
    (place / "message.txt").write_text("no JSON")
    (place / "other.json").write_text('{"schema": "trunnion.lock/2"}')
    with pytest.raises(ArtifactError):
        trunnion.sign(path, OURS)


def test_a_signature_that_cannot_be_written_is_a_typed_error(place: Path) -> None:
    file = signature_path_of("saved")
    file.unlink()
    file.mkdir()
    (file / "taken").write_text("")
    with pytest.raises(ArtifactError, match=r"saved\.sig"):
        trunnion.sign("saved", OURS)


def test_a_folder_is_named_by_what_it_is_called_however_it_is_spelled(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for path in ("saved/", "./saved", "kernels/../saved"):
        assert signature_path_of(path).name == "saved.sig"
    monkeypatch.chdir(place / "saved")
    assert trunnion.load(".", trusted_keys=[OURS.public])


# Keys ---------------------------------------------------------------------------------------------------------------


def pem(key: PublicKey) -> bytes:
    return Ed25519PublicKey.from_public_bytes(key.raw).public_bytes(
        Encoding.PEM, PublicFormat.SubjectPublicKeyInfo
    )


def ssh(key: PublicKey) -> bytes:
    return Ed25519PublicKey.from_public_bytes(key.raw).public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH)


def private(form: PrivateFormat, password: bytes | None = None, key: Any = None) -> bytes:
    hidden = NoEncryption() if password is None else BestAvailableEncryption(password)
    found: bytes = (OURS._key if key is None else key).private_bytes(Encoding.PEM, form, hidden)
    return found


@pytest.mark.parametrize(
    "text", [pem(OURS.public), ssh(OURS.public), b"# ours\n" + ssh(OURS.public) + b" me@host\n"]
)
def test_a_public_key_is_read_from_the_files_of_openssl_and_openssh(place: Path, text: bytes) -> None:
    (place / "key.pub").write_bytes(text)
    assert PublicKey.open("key.pub") == PublicKey.read(text) == OURS.public
    assert load("kernels.trn", "key.pub")
    assert load("kernels.trn", place / "key.pub")


@pytest.mark.parametrize("form", [PrivateFormat.PKCS8, PrivateFormat.OpenSSH])
def test_a_private_key_is_read_from_the_files_of_openssl_and_openssh(
    place: Path, form: PrivateFormat
) -> None:
    (place / "key").write_bytes(private(form))
    assert SigningKey.open("key").public == OURS.public
    assert trunnion.sign("saved", "key").signer == OURS.public


def test_a_private_key_may_have_a_password(place: Path) -> None:
    (place / "key").write_bytes(private(PrivateFormat.PKCS8, b"open sesame"))
    assert SigningKey.open("key", password=b"open sesame").public == OURS.public
    for wrong in (None, b"", b"open"):
        with pytest.raises(ArgumentValueError) as caught:
            SigningKey.open("key", password=wrong)
        assert caught.value.argument == "password"
        assert "TRUNNION_KEY_PASSWORD" in str(caught.value)
    with pytest.raises(ArgumentTypeError):
        SigningKey.open("key", password="open sesame")  # type: ignore[arg-type]  # noqa: S106 - a mistake, and no secret


RSA = rsa.generate_private_key(65537, 2048)
EC = ec.generate_private_key(ec.SECP256R1())


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"\xff\xfe\x00",
        b"hello",
        b"-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----\n",
        b"-----BEGIN PUBLIC KEY-----\n",
        b"ssh-ed25519",
        b"ssh-ed25519 AAAA",
        b"ssh-moon AAAA",
        pem(OURS.public) + pem(OTHER.public),
        ssh(OURS.public) + b"\n" + ssh(OTHER.public),
        pem(OURS.public) + ssh(OTHER.public),
        private(PrivateFormat.PKCS8),
        private(PrivateFormat.OpenSSH),
        RSA.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo),
        RSA.public_key().public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH),
        EC.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo),
        EC.public_key().public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH),
    ],
)
def test_what_is_no_public_key_of_ours_is_refused(place: Path, text: bytes) -> None:
    (place / "key.pub").write_bytes(text)
    with pytest.raises(ArgumentValueError, match=r"key\.pub.*expected one ed25519 public key"):
        load("kernels.trn", "key.pub")


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"\xff\xfe",
        pem(OURS.public),
        ssh(OURS.public),
        private(PrivateFormat.PKCS8, key=RSA),
        private(PrivateFormat.OpenSSH, key=EC),
        b"-----BEGIN OPENSSH PRIVATE KEY-----\nAAAA\n-----END OPENSSH PRIVATE KEY-----\n",
    ],
)
def test_what_is_no_private_key_of_ours_is_refused(place: Path, text: bytes) -> None:
    (place / "key").write_bytes(text)
    with pytest.raises(ArgumentValueError, match="expected an ed25519 private key"):
        trunnion.sign("saved", "key")


@pytest.mark.parametrize("text", [pem(OURS.public), ssh(OURS.public)])
def test_to_sign_with_a_public_key_is_told_as_that(place: Path, text: bytes) -> None:
    (place / "key").write_bytes(text)
    with pytest.raises(ArgumentValueError, match="which is a public key, expected an ed25519 private key"):
        trunnion.sign("saved", "key")


def test_a_key_that_is_not_there_or_no_file_is_a_typed_error(place: Path) -> None:
    with pytest.raises(ArtifactError, match="cannot open 'nothing'"):
        load("kernels.trn", "nothing")
    with pytest.raises(ArtifactError, match="cannot open 'nothing'"):
        trunnion.sign("saved", "nothing")
    os.mkfifo("pipe")
    for call in (lambda: load("kernels.trn", "pipe"), lambda: trunnion.sign("saved", "pipe")):
        with pytest.raises(CorruptArtifactError, match="is not a plain file"):
            call()
    (place / "huge").write_bytes(bytes(1 << 17))
    with pytest.raises(CorruptArtifactError, match="expected at most"):
        load("kernels.trn", "huge")


@pytest.mark.parametrize("changed", ["key.pub", "."])
def test_a_public_key_that_others_can_write_is_not_trusted(place: Path, changed: str) -> None:
    (place / "keys").mkdir()
    (place / "keys" / "key.pub").write_bytes(pem(OURS.public))
    (place / "keys" / changed).chmod(0o777)
    with pytest.raises(UntrustedArtifactError, match="can be written by others"):
        load("kernels.trn", "keys/key.pub")


@pytest.mark.parametrize("raw", [b"", bytes(31), bytes(33), "0" * 32, None])
def test_a_public_key_has_32_bytes(raw: Any) -> None:
    with pytest.raises((ArgumentValueError, ArgumentTypeError)):
        PublicKey(raw)


def test_a_signing_key_shows_nothing_and_is_not_pickled() -> None:
    assert repr(OURS) == f"<SigningKey {OURS.public.id[:12]}>"
    with pytest.raises(LifecycleError):
        pickle.dumps(OURS)
    assert pickle.loads(pickle.dumps(OURS.public)) == OURS.public  # noqa: S301 - what was just written


def test_without_the_library_the_extra_is_named_and_what_needs_no_keys_works(place: Path) -> None:
    (place / "key.pub").write_bytes(pem(OURS.public))
    source = """
import sys
sys.modules["cryptography"] = None
import trunnion
from trunnion.errors import BackendUnavailableError
assert trunnion.load("kernels.trn").digest
for call in (lambda: trunnion.load("kernels.trn", trusted_keys=["key.pub"]),
             lambda: trunnion.load("kernels.trn", trusted_keys=[trunnion.PublicKey(bytes.fromhex(sys.argv[1]))]),
             lambda: trunnion.sign("kernels.trn", "key.pub")):
    try:
        call()
    except BackendUnavailableError as error:
        assert "trunnion[sign]" in str(error), error
    else:
        raise AssertionError
"""
    words = [sys.executable, "-W", "error", "-c", source, OURS.public.raw.hex()]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_every_refusal_is_an_error_of_ours(place: Path) -> None:
    for text in (b"", b"{}", b"[1]", b"\0" * 100):
        signature_path_of("saved").write_bytes(text)
        with pytest.raises(TrunnionError):
            trunnion.verify("saved", [OURS.public])


def test_what_so_many_signed_is_signed_by_no_other(place: Path) -> None:
    """What more of them signed could not be read again."""
    file = signature_path(place / "kernels.trn")
    found = SignatureFile.open(file)
    assert found is not None
    whole = SignatureFile(found.kind, found.digest, {f"{n:064x}": bytes(64) for n in range(63)}).signed_by(
        OURS
    )
    whole.save(file)
    assert SignatureFile.open(file) == whole
    with pytest.raises(ArtifactError, match=r"64 keys signed it, .* no more"):
        trunnion.sign("kernels.trn", OTHER)
    assert SignatureFile.open(file) == whole
    trunnion.sign("kernels.trn", OURS)  # once more
    assert load("kernels.trn", OURS.public)
