"""A program is kept under a key only if all that the key says is what it was built of."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

import trunnion
from trunnion.artifacts.store import ArtifactStore
from trunnion.contract.compiler import DeviceCompiler
from trunnion.contract.spec import CompilerSpec, Target
from trunnion.errors import BackendUnavailableError
from trunnion.model.builder import ProgramBuilder
from trunnion.model.code import DeviceCode
from trunnion.registry import Registry, default_registry
from trunnion.testing.harness import synthetic_image

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


class Surrounded(DeviceCompiler):
    """A compiler with one header, which may change while it compiles."""

    header = "one"
    version: str | Exception = "1"
    compiled = 0
    meanwhile: Callable[[], None] = staticmethod(lambda: None)

    def compile(self, request: Any) -> Any:
        type(self).compiled += 1
        self.meanwhile()
        return synthetic_image(PROGRAM, request.target)

    def surroundings(self, request: Any) -> dict[str, str]:
        return {"header": self.header}

    def fingerprint(self) -> str:
        if isinstance(self.version, Exception):
            raise self.version
        return self.version

    def default_target(self) -> Target:
        return Target("cuda", "sm_90a")


def one_kernel():
    p = ProgramBuilder("p", DeviceCode("acme", "text"))
    x = p.input("x", "float32", (8,), access="read_write")
    p.launch("k", (x,), 1, 32)
    return p.build()


PROGRAM = one_kernel()


@pytest.fixture
def compiler() -> type[Surrounded]:
    return type("Compiler", (Surrounded,), {})


@pytest.fixture
def store(tmp_path: Path) -> ArtifactStore:
    return ArtifactStore(tmp_path / "store")


@pytest.fixture
def compile_in(compiler: type[Surrounded], store: ArtifactStore) -> Callable[[], Any]:
    plugins = Registry(())
    plugins.register(default_registry().backend("nvrtc"))
    plugins.register(
        CompilerSpec(
            name="acme",
            contract_version=1,
            languages=("acme",),
            targets=("cuda",),
            produces=("cubin",),
            load_compiler=lambda: compiler,
        )
    )
    return lambda: trunnion.compile(PROGRAM, "nvrtc", registry=plugins, cache=store).artifact


def kept(store: ArtifactStore) -> int:
    return len(list((store.root / "entries").iterdir()))


def test_what_stays_as_it_is_is_compiled_once(compile_in, compiler, store) -> None:
    assert compile_in().digest == compile_in().digest
    assert (compiler.compiled, kept(store)) == (1, 1)


@pytest.mark.parametrize(
    ("member", "value"),
    [("header", "two"), ("version", "2"), ("version", BackendUnavailableError("acme", "it", "gone"))],
)
def test_what_changes_while_it_is_compiled_is_returned_and_not_kept(
    compile_in, compiler, store, member, value
) -> None:
    before = getattr(compiler, member)
    compiler.meanwhile = staticmethod(lambda: setattr(compiler, member, value))
    made = compile_in()
    assert made.files
    assert made.manifest.key == ""
    assert kept(store) == 0
    compiler.meanwhile = staticmethod(lambda: None)
    setattr(compiler, member, before)
    assert compile_in().manifest.key
    assert (compiler.compiled, kept(store)) == (2, 1)
    assert not list((store.root / "staging").iterdir())


def test_what_nobody_knows_is_not_kept(compile_in, compiler, store) -> None:
    asked = iter(range(100))
    compiler.header = property(lambda self: str(next(asked)))
    compile_in()
    compile_in()
    assert (compiler.compiled, kept(store)) == (2, 0)
