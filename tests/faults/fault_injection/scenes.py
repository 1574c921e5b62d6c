"""What is done while the file system fails: each scene is set up whole, acted under a fault, and acted once more."""

from __future__ import annotations

import dataclasses
import tempfile
import warnings
from typing import TYPE_CHECKING, Any

import platformdirs
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

import trunnion
from trunnion.artifacts.artifact import Artifact
from trunnion.artifacts.manifest import artifact_key
from trunnion.artifacts.store import ArtifactStore
from trunnion.codegen.cpp import runtime_parts
from trunnion.contract.compiler import DeviceCompiler
from trunnion.contract.spec import CompilerSpec, Target
from trunnion.model.builder import ProgramBuilder
from trunnion.model.code import DeviceCode
from trunnion.registry import Registry, default_registry
from trunnion.testing.machine import synthetic_image

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

__all__ = ["ARTIFACT", "PROGRAM", "REGISTRY", "SCENES", "Compiler", "Scene"]

INPUTS = {"plan": "1"}
KEY = artifact_key(INPUTS)


@dataclasses.dataclass(frozen=True)
class Scene:
    """One use of files."""

    prepare: Callable[[Path], object]
    """Sets up a folder."""

    act: Callable[[Path], Any]
    """Does it; what it returns has to be right."""

    always: bool
    """Whether it has to succeed under every fault; else a typed error may come in its place."""

    left: Callable[[Path], list[str]]
    """What lies about that nobody cleans up: looked at after the next call."""


def _program() -> Any:
    p = ProgramBuilder("p", DeviceCode("acme", "text"))
    x = p.input("x", "float32", (8,), access="read_write")
    p.launch("k", (x,), 1, 32)
    return p.build()


PROGRAM = _program()


class Compiler(DeviceCompiler):
    def compile(self, request: Any) -> Any:
        return synthetic_image(PROGRAM, request.target)

    def fingerprint(self) -> str:
        return "acme 1"

    def default_target(self) -> Target:
        return Target("cuda", "sm_90a")


def _registry() -> Registry:
    plugins = Registry(())
    plugins.register(default_registry().backend("nvrtc"))
    spec = CompilerSpec(
        name="acme",
        contract_version=3,
        languages=("acme",),
        targets=("cuda",),
        produces=("cubin",),
        load_compiler=lambda: Compiler,
    )
    plugins.register(spec)
    return plugins


REGISTRY = _registry()
ARTIFACT = trunnion.compile(PROGRAM, registry=REGISTRY, target="sm_90a").artifact.keyed(INPUTS)
OBJECT: list[bytes] = []
KEY_PAIR = trunnion.SigningKey(Ed25519PrivateKey.from_private_bytes(bytes(32)))


def _nothing(_: Path) -> None:
    """Set up nothing."""


def _no_rest(_: Path) -> list[str]:
    return []


def _stored(root: Path) -> Any:
    return ArtifactStore(root / "store").get_or_build(KEY, lambda _: ARTIFACT)


def _stale(root: Path) -> list[str]:
    return [path.name for path in (root / "store" / "staging").iterdir()]


def _corrupt(root: Path) -> None:
    _stored(root)
    path = root / "store" / "entries" / KEY / "image.cubin"
    path.write_bytes(path.read_bytes()[::-1])


def _open_store(root: Path) -> Any:
    return trunnion.compile(PROGRAM, registry=REGISTRY, target="sm_90a", cache=root / "store").artifact.files


def _make_tmp(root: Path) -> None:
    (root / "tmp").mkdir()


def _compiled(root: Path) -> Any:
    tempfile.tempdir = str(root / "tmp")
    try:
        return _open_store(root)
    finally:
        tempfile.tempdir = None


def _saved(root: Path) -> Any:
    ARTIFACT.save(root / "saved")
    return ARTIFACT


def _loaded(root: Path) -> Any:
    return trunnion.load(root / "saved", registry=REGISTRY).artifact


def _kept(root: Path, identity: str = "identity") -> Any:
    platformdirs.user_cache_path = lambda name: root / name  # type: ignore[assignment]  # its place, for this process
    runtime_parts._read.cache_clear()
    return runtime_parts.runtime_object(lambda: identity, lambda _: OBJECT[0], root)


def _building(root: Path) -> list[str]:
    _kept(root, "another")  # whoever builds next clears it
    return [path.name for path in (root / "trunnion" / "launchers" / "staging").glob("*")]


def _bundle(root: Path) -> Any:
    return trunnion.write_bundle(root / "kernels.trn", {"p": ARTIFACT}).digest


def _other_bundle(root: Path) -> None:
    other = trunnion.compile(PROGRAM, registry=REGISTRY, target="sm_80", cache=False).artifact
    trunnion.write_bundle(root / "kernels.trn", {"p": other})


def _from_bundle(root: Path) -> Any:
    bundle = trunnion.Bundle.open(root / "kernels.trn", registry=REGISTRY)
    return bundle.artifact(*bundle.index.programs["p"])


def _share(root: Path) -> None:
    ArtifactStore(root / "shared").get_or_build(KEY, lambda _: ARTIFACT)


def _fetched(root: Path) -> Any:
    return ArtifactStore(root / "store", behind=root / "shared").get_or_build(KEY, lambda _: ARTIFACT)


def _lock(root: Path) -> Any:
    lock = trunnion.Lock.of([root / "kernels.trn"], root / "trunnion.lock")
    lock.save()
    return dict(lock.digests)


def _locked(root: Path) -> None:
    _bundle(root)
    _lock(root)


def _from_lock(root: Path) -> Any:
    bundle = trunnion.Lock.open(root / "trunnion.lock").load("kernels.trn", registry=REGISTRY)
    return bundle.artifact(*bundle.index.programs["p"])


def _sign(root: Path) -> Any:
    signed = trunnion.sign(root / "kernels.trn", KEY_PAIR)
    return signed.kind, signed.digest, signed.signer.id


def _signed(root: Path) -> None:
    _bundle(root)
    _sign(root)


def _from_signed(root: Path) -> Any:
    keys = [KEY_PAIR.public]
    bundle = trunnion.Bundle.open(root / "kernels.trn", trusted_keys=keys, registry=REGISTRY)
    return bundle.artifact(*bundle.index.programs["p"])


SCENES = {
    "a program is built and stored": Scene(_nothing, _stored, False, _stale),
    "a stored program is read": Scene(_stored, _stored, False, _stale),
    "a corrupt program is replaced": Scene(_corrupt, _stored, False, _stale),
    "a program is compiled with a cache": Scene(_nothing, _open_store, True, _stale),
    "the same, and TMPDIR fails": Scene(_make_tmp, _compiled, False, _stale),
    "an artifact is saved": Scene(_nothing, _saved, False, _no_rest),
    "an artifact is loaded": Scene(_saved, _loaded, False, _no_rest),
    "a file is made and kept": Scene(_nothing, _kept, True, _building),
    "a kept file is read": Scene(_kept, _kept, True, _building),
    "a bundle is written": Scene(_nothing, _bundle, False, _no_rest),
    "a bundle is replaced": Scene(_other_bundle, _bundle, False, _no_rest),
    "a bundle's program is read": Scene(_bundle, _from_bundle, False, _no_rest),
    "a program lies behind the store": Scene(_share, _fetched, False, _stale),
    "a bundle is locked": Scene(_bundle, _lock, False, _no_rest),
    "what is locked is read": Scene(_locked, _from_lock, False, _no_rest),
    "a bundle is signed": Scene(_bundle, _sign, False, _no_rest),
    "what is signed is read": Scene(_signed, _from_signed, False, _no_rest),
}
"""Every scene, by name."""


def quiet() -> None:
    """Show no warnings: those of faults are meant."""
    warnings.simplefilter("ignore")


def artifact_of(found: Any) -> Any:
    """Return what can be compared."""
    return found.files if isinstance(found, Artifact) else found
