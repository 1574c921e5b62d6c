"""A store behind which an object store stands: S3's protocol, spoken by s3fs with a server on this machine."""

from __future__ import annotations

import socket
import warnings
from typing import TYPE_CHECKING, Any

import boto3
import pytest
import s3fs
from moto.server import ThreadedMotoServer

import trunnion
from trunnion import ArtifactStore, examples
from trunnion.artifacts import tiers
from trunnion.storage.refusals import NotKeptWarning

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    yield "http://{}:{}".format(*server.get_host_and_port())
    server.stop()


@pytest.fixture
def endpoint(server: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Return the server's address, which botocore reads, and with it who asks."""
    for name, value in {"ENDPOINT_URL": server, "ACCESS_KEY_ID": "me", "SECRET_ACCESS_KEY": "secret"}.items():
        monkeypatch.setenv(f"AWS_{name}", value)
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    s3fs.S3FileSystem.clear_instance_cache()
    yield server
    s3fs.S3FileSystem.clear_instance_cache()


@pytest.fixture
def behind(endpoint: str, tmp_path: Path) -> Iterator[tuple[Any, str]]:
    """Return a bucket that has what a store has, and the key of the one program in it."""
    shared = ArtifactStore(tmp_path / "shared")
    artifact = trunnion.compile(
        examples.load("vector_add").program, "nvrtc", target="sm_90a", cache=shared
    ).artifact
    bucket = boto3.resource("s3", endpoint_url=endpoint).create_bucket(Bucket="kernels")
    for file in shared.root.rglob("*"):
        if file.is_file():
            bucket.upload_file(str(file), f"ours/{file.relative_to(shared.root)}")
    yield bucket, artifact.manifest.key
    bucket.objects.all().delete()
    bucket.delete()


def compiled(store: ArtifactStore) -> Any:
    return trunnion.compile(
        examples.load("vector_add").program, "nvrtc", target="sm_90a", cache=store
    ).artifact


def test_what_a_bucket_has_is_not_built(behind: tuple[Any, str], tmp_path: Path) -> None:
    store = ArtifactStore(tmp_path / "mine", behind="s3://kernels/ours")
    with warnings.catch_warnings():
        warnings.simplefilter("error", NotKeptWarning)
        artifact = compiled(store)
    assert artifact.manifest.key == behind[1]
    assert (store.statistics().fetched, store.statistics().misses) == (1, 0)
    assert store.get(behind[1]) == artifact  # it is kept


def test_what_a_bucket_lacks_is_built(behind: tuple[Any, str], tmp_path: Path) -> None:
    bucket, _ = behind
    bucket.put_object(Key=f"elsewhere/entries/{'0' * 64}/manifest.json", Body=b"{}")
    store = ArtifactStore(tmp_path / "mine", behind="s3://kernels/elsewhere")
    with warnings.catch_warnings():
        warnings.simplefilter("error", NotKeptWarning)
        compiled(store)
    assert (store.statistics().fetched, store.statistics().misses) == (0, 1)


LIES = {
    "other bytes": lambda data: data[:-1] + bytes([data[-1] ^ 1]),
    "fewer bytes": lambda data: data[: len(data) // 2],
    "more bytes": lambda data: data + b"more",
    "none": lambda data: b"",
}


@pytest.mark.parametrize("file", ["manifest.json", "image.cubin"])
@pytest.mark.parametrize("lie", LIES)
def test_what_lies_is_not_used(behind: tuple[Any, str], tmp_path: Path, file: str, lie: str) -> None:
    bucket, key = behind
    held = bucket.Object(f"ours/entries/{key}/{file}")
    held.put(Body=LIES[lie](held.get()["Body"].read()))
    store = ArtifactStore(tmp_path / "mine", behind="s3://kernels/ours")
    with pytest.warns(NotKeptWarning, match="s3://kernels/ours"):
        compiled(store)
    assert (store.statistics().fetched, store.statistics().misses) == (0, 1)
    assert store.problem(key) == ""


@pytest.mark.parametrize("url", ["s3://nowhere/ours", "s3://kernels/misspelled"])
def test_where_no_store_is_that_is_told_and_done_without(
    behind: tuple[Any, str], tmp_path: Path, url: str
) -> None:
    del behind
    store = ArtifactStore(tmp_path / "mine", behind=url)
    with pytest.warns(NotKeptWarning, match="no store is there"):
        compiled(store)
    assert store.statistics().misses == 1


@pytest.mark.parametrize("answering", [False, True], ids=["gone", "silent"])
def test_a_server_that_does_not_answer_is_done_without(
    endpoint: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, answering: bool
) -> None:
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        if answering:  # it takes connections, and says nothing
            listening.listen()
        monkeypatch.setenv("AWS_ENDPOINT_URL", "http://{}:{}".format(*listening.getsockname()))
        monkeypatch.setattr(tiers, "ANSWER_SECONDS", 2.0)
        store = ArtifactStore(tmp_path / "mine", behind="s3://kernels/ours")
        with pytest.warns(NotKeptWarning, match="s3://kernels/ours"):
            compiled(store)
    assert store.statistics().misses == 1
