"""A program is kept under a key only if all that the key says is what it was built of."""

from __future__ import annotations

import enum
import inspect
import math
from collections import OrderedDict
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import trunnion
from trunnion import built_program, compilation, registry
from trunnion.artifacts.artifact import Artifact
from trunnion.artifacts.fitting import key_input
from trunnion.artifacts.location import VARIABLE
from trunnion.artifacts.manifest import MAX_MANIFEST_BYTES
from trunnion.artifacts.program_file import PROGRAM_FILE
from trunnion.artifacts.store import ArtifactStore, CorruptArtifactWarning
from trunnion.contract.compiler import DeviceCompiler, ImageParameter, ImageVariable
from trunnion.contract.spec import CONTRACT_VERSION, CompilerSpec, Target
from trunnion.errors import (
    ArgumentTypeError,
    ArgumentValueError,
    ArtifactError,
    BackendUnavailableError,
    ProgramError,
    UnsupportedFeatureError,
)
from trunnion.model.builder import ProgramBuilder
from trunnion.model.code import DeviceCode
from trunnion.registry import Registry, default_registry
from trunnion.selection import load_part
from trunnion.storage.refusals import NotKeptWarning
from trunnion.storage.stamps import witness
from trunnion.testing.machine import synthetic_image

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from trunnion.contract.source import GeneratedSource
    from trunnion.model.plan import LaunchPlan
    from trunnion.model.program import KernelProgram


class Surrounded(DeviceCompiler):
    """A compiler with one header, which may change while it compiles."""

    header = "one"
    version: str | Exception = "1"
    files: tuple[str, ...] = ()
    compiled = 0
    meanwhile: Callable[[], None] = staticmethod(lambda: None)

    def compile(self, request: Any) -> Any:
        type(self).compiled += 1
        self.meanwhile()
        return synthetic_image(PROGRAM, request.target)

    def environment(self, request: Any) -> dict[str, str]:
        witness(self.files)
        return {"header": self.header}

    def fingerprint(self) -> str:
        if isinstance(self.version, Exception):
            raise self.version
        return self.version

    def default_target(self) -> Target:
        return Target("cuda", "sm_90a")


def one_kernel(**said: Any) -> KernelProgram:
    p = ProgramBuilder("p", DeviceCode("acme", "text"))
    x = p.input("x", "float32", (8,), access="read_write")
    p.launch("k", (x,), 1, 32, **said)
    return p.build()


PROGRAM = one_kernel()
BACKEND = default_registry().backend("nvrtc")
WRAPPER = load_part(BACKEND, BACKEND.load_wrapper)
ADAPTER = load_part(BACKEND, BACKEND.load_adapter)


class Counting(WRAPPER):
    """Writes what its class does, and more, and counts."""

    version = "acme 1"
    added = ""
    written = 0

    def emit(self, plan: LaunchPlan) -> GeneratedSource:
        type(self).written += 1
        made = super().emit(plan)
        return replace(made, text=made.text + self.added, emitter=self.version)


class Updated(ADAPTER):
    """Builds what its class does, by other tools."""

    def fingerprint_for(self, target_kind: str) -> str:
        return super().fingerprint_for(target_kind) + ", later"


@pytest.fixture
def compiler() -> type[Surrounded]:
    return type("Compiler", (Surrounded,), {})


@pytest.fixture
def store(tmp_path: Path) -> ArtifactStore:
    return ArtifactStore(tmp_path / "store")


@pytest.fixture
def wrapper() -> type[Counting]:
    return type("Wrapper", (Counting,), {})


def plugins_of(
    compiler: type[Surrounded],
    wrapper: type[Counting],
    *,
    compiler_name: str = "acme",
    contract_version: int = CONTRACT_VERSION,
    **said: Any,
) -> Registry:
    plugins = Registry(())
    plugins.register(
        replace(BACKEND, load_wrapper=lambda: wrapper, contract_version=contract_version, **said)
    )
    plugins.register(
        CompilerSpec(
            name=compiler_name,
            contract_version=contract_version,
            languages=("acme",),
            targets=("cuda",),
            produces=("cubin",),
            load_compiler=lambda: compiler,
        )
    )
    return plugins


@pytest.fixture
def program_in(
    compiler: type[Surrounded], wrapper: type[Counting], store: ArtifactStore
) -> Callable[..., Any]:
    plugins = plugins_of(compiler, wrapper)

    def compiled(program: KernelProgram = PROGRAM, **said: Any) -> Any:
        return trunnion.compile(program, "nvrtc", **{"cache": store, "registry": plugins, **said})

    return compiled


@pytest.fixture
def compile_in(program_in: Callable[..., Any]) -> Callable[..., Any]:
    return lambda *program, **said: program_in(*program, **said).artifact


def kept(store: ArtifactStore) -> int:
    return len(list((store.root / "entries").iterdir()))


def test_what_stays_as_it_is_is_compiled_once(compile_in, compiler, store) -> None:
    assert compile_in().digest == compile_in().digest
    assert (compiler.compiled, kept(store)) == (1, 1)


def no_image_of(**fields: Any) -> Callable[..., Any]:
    return lambda self, request: replace(synthetic_image(PROGRAM, request.target), **fields)


def no_kernel_of(**fields: Any) -> Callable[..., Any]:
    def compile_it(self: Any, request: Any) -> Any:
        image = synthetic_image(PROGRAM, request.target)
        return replace(image, kernels=[replace(one, **fields) for one in image.kernels])

    return compile_it


@pytest.mark.parametrize(
    ("member", "answer"),
    [
        ("compile", lambda self, request: None),
        ("compile", no_image_of(target=Target("cuda", "sm_80"))),
        ("compile", no_image_of(target="sm_90a")),
        ("compile", no_image_of(kind="ptx")),  # which the backend loads, and the compiler does not declare
        ("compile", no_image_of(kind="../x")),
        ("compile", no_image_of(kind=None)),
        ("compile", no_image_of(data="text")),
        ("compile", no_image_of(log=None)),
        ("compile", no_image_of(kernels=None)),
        ("compile", no_image_of(kernels=("k",))),
        ("compile", no_image_of(variables=(1,))),
        ("compile", no_image_of(variables=(ImageVariable("v", "v", "4"),))),
        ("compile", no_kernel_of(symbol=None)),
        ("compile", no_kernel_of(symbol=b"k")),
        ("compile", no_kernel_of(dynamic_smem_bytes=None)),
        ("compile", no_kernel_of(parameters=None)),
        ("compile", no_kernel_of(parameters=(8,))),
        ("compile", no_kernel_of(parameters=(ImageParameter(0, 0, "8"),))),
        ("compile", no_image_of(headers_read="h")),
        ("compile", no_image_of(toolchain={"acme": 1})),
        ("default_target", lambda self: "sm_90a"),
    ],
)
def test_what_a_compiler_may_not_return_is_said_of_it(
    compile_in, compiler, store, monkeypatch, member, answer
) -> None:
    monkeypatch.setattr(compiler, member, answer)
    for cache in (store, False):
        with pytest.raises(BackendUnavailableError, match=f"{member}\\(\\) returned .*, expected") as caught:
            compile_in(cache=cache)
        assert caught.value.name == "acme"
    assert not kept(store)


@pytest.mark.parametrize(
    ("member", "answer"),
    [
        ("environment", lambda self, request: [1]),
        ("environment", lambda self, request: {"a": 1}),
        ("environment", lambda self, request: {1: "a"}),
        ("fingerprint", lambda self: 3),
    ],
)
def test_what_a_key_may_not_be_made_of_is_said_of_the_compiler(
    compile_in, compiler, store, monkeypatch, member, answer
) -> None:
    """Without a cache there is no key: nobody asks."""
    monkeypatch.setattr(compiler, member, answer)
    with pytest.raises(BackendUnavailableError, match=f"{member}\\(\\) returned .*, expected") as caught:
        compile_in()
    assert caught.value.name == "acme"
    assert compiler.compiled == 0


def unmade(base: type, **said: Any) -> type:
    return type("Unmade", (base,), said)


def raising(*_: object, **__: object) -> None:
    raise RuntimeError("not today")


@pytest.mark.parametrize(
    ("part", "made", "reason"),
    [
        ("compiler", dict, "a loader returned dict, expected a subclass of DeviceCompiler"),
        ("compiler", DeviceCompiler, "DeviceCompiler: TypeError: Can't instantiate abstract class"),
        ("compiler", unmade(Surrounded, __init__=raising), "Unmade: RuntimeError: not today"),
        ("wrapper", dict, "a loader returned dict, expected a subclass of SourceWrapper"),
        ("wrapper", unmade(Counting, __init__=raising), "Unmade: RuntimeError: not today"),
        (
            "wrapper",
            unmade(Counting, emit=lambda *_: None),
            "its wrap() returned NoneType, expected Generated",
        ),
        ("adapter", dict, "a loader returned dict, expected a subclass of KernelAdapter"),
        ("adapter", unmade(Updated, __init__=raising), "Unmade: RuntimeError: not today"),
        (
            "adapter",
            unmade(Updated, build=lambda *_: None),
            "its build() returned NoneType, expected Artifact",
        ),
    ],
)
def test_a_part_that_is_none_is_laid_to_its_plugin(compiler, wrapper, part, made, reason) -> None:
    parts = {"compiler": compiler, "wrapper": wrapper, "adapter": Updated, part: made}
    plugins = plugins_of(parts["compiler"], parts["wrapper"], load_adapter=lambda: parts["adapter"])
    with pytest.raises(BackendUnavailableError) as caught:
        trunnion.compile(PROGRAM, "nvrtc", cache=False, registry=plugins)
    assert caught.value.name == ("acme" if part == "compiler" else "nvrtc")
    assert caught.value.reason.startswith(reason)


def test_what_a_part_refuses_when_it_is_made_is_its_own(compiler, wrapper) -> None:
    def refuse(*_: object) -> None:
        raise BackendUnavailableError("acme", "", "its library is missing")

    plugins = plugins_of(compiler, unmade(Counting, __init__=refuse))
    with pytest.raises(BackendUnavailableError, match="'acme' is unavailable: its library is missing"):
        trunnion.compile(PROGRAM, "nvrtc", cache=False, registry=plugins)


def asking(**said: Any) -> dict[str, Any]:
    return {"options": {"acme": said}}


@pytest.mark.parametrize(
    ("said", "otherwise"),
    [
        (asking(level=1), asking(level=2)),
        (asking(level=1), asking(speed=1)),
        (asking(level=1), asking(level=True)),
        (asking(level=1), asking(level="1")),
        (asking(levels=[1, 2]), asking(levels=[2, 1])),
        (asking(level={"of": 1}), asking(level={"of": 2})),
        (asking(level=1), {}),
        ({"target": "sm_80"}, {"target": "sm_90"}),
        ({"program": one_kernel()}, {"program": one_kernel(dynamic_smem_bytes=64)}),
    ],
)
def test_what_is_asked_for_otherwise_is_another_one(compile_in, compiler, said, otherwise) -> None:
    """And each is found again."""
    keys = [compile_in(**one).manifest.key for one in (said, otherwise, said, otherwise)]
    assert len({*keys}) == 2
    assert compiler.compiled == 2


@pytest.mark.parametrize(("member", "value"), [("header", "two"), ("version", "2")])
def test_what_is_compiled_with_something_else_is_another_one(compile_in, compiler, member, value) -> None:
    """A header of the same name, a compiler of the same name."""
    first = compile_in()
    setattr(compiler, member, value)
    assert compile_in().manifest.key != first.manifest.key
    assert compiler.compiled == 2


@pytest.mark.parametrize("what", ["backend", "compiler", "contract"])
def test_what_other_plugins_built_is_another_one(compile_in, compiler, wrapper, monkeypatch, what) -> None:
    """A backend of another version, a compiler of another name, and both for another version of what they speak."""
    first = compile_in()
    match what:
        case "backend":
            others = plugins_of(compiler, wrapper, load_adapter=lambda: Updated)
        case "compiler":
            others = plugins_of(compiler, wrapper, compiler_name="other")
        case _:
            for module in (registry, built_program):
                monkeypatch.setattr(module, "CONTRACT_VERSION", CONTRACT_VERSION + 1)
            others = plugins_of(compiler, wrapper, contract_version=CONTRACT_VERSION + 1)
    assert compile_in(registry=others).manifest.key != first.manifest.key
    assert compiler.compiled == 2


@pytest.mark.parametrize("said", [{"program": one_kernel(dynamic_smem_bytes=64)}, {"target": "sm_80"}])
def test_what_was_built_of_something_else_is_not_what_is_asked_for(
    compile_in, compiler, store, tmp_path, said
) -> None:
    """Whoever can write to what stands behind a store can give an artifact any key."""
    asked = compile_in()
    other = compile_in(**said, cache=False).keyed(asked.manifest.key_inputs)
    behind = ArtifactStore(tmp_path / "behind").root
    other.save(behind / "entries" / asked.manifest.key)
    with pytest.warns(NotKeptWarning, match="is built: .* key") as built:
        assert compile_in(cache=ArtifactStore(tmp_path / "other", behind=behind)) == asked
    with pytest.warns(CorruptArtifactWarning, match="is not used: .* key") as unused:
        assert compile_in(cache=behind) == asked
    assert {told.filename for told in (*built, *unused)} == {__file__}
    assert compiler.compiled == 4


LONG = {
    "program": lambda made: made.files[PROGRAM_FILE].decode(),
    "launcher": lambda made: made.files["launcher.py"].decode(),
}


@pytest.mark.parametrize("long", LONG)
def test_what_is_long_is_kept_and_read_again(
    compile_in, compiler, wrapper, store, long: str, tmp_path
) -> None:
    """Of a long input its digest is in the manifest, which is not read if it is too long itself."""
    text = "x" * (MAX_MANIFEST_BYTES + 1)
    if long == "launcher":
        wrapper.version, wrapper.added = "", f"# {text}\n"
    program = PROGRAM if long == "launcher" else replace(PROGRAM, code=(DeviceCode("acme", text),))
    made = compile_in(program)
    assert compile_in(program) == made
    assert (compiler.compiled, kept(store)) == (1, 1)
    made.save(tmp_path / "saved")
    assert Artifact.open(tmp_path / "saved") == made
    inputs = made.manifest.key_inputs
    assert inputs[long] == key_input(inputs[long]) == key_input(LONG[long](made))


@pytest.mark.parametrize("version", ["", "acme 1"])
def test_what_has_a_version_is_found_without_writing_it(
    program_in, compiler, wrapper, store, version
) -> None:
    """It is written when somebody takes what was found, once."""
    wrapper.version = version
    program_in()
    written = wrapper.written
    program = program_in()
    assert (compiler.compiled, kept(store)) == (1, 1)
    assert (wrapper.written - written, written) == (0 if version else 1, 1)
    for _ in range(2):
        assert program.artifact.manifest.key
        assert wrapper.written - written == 1


def test_what_another_emitter_wrote_is_not_found(compile_in, compiler, wrapper, store, monkeypatch) -> None:
    wrapper.version = "acme 1"
    compile_in()
    wrapper.version = "acme 2"
    compile_in()
    monkeypatch.setattr(compilation, "PLAN_VERSION", 0)
    compile_in()
    assert (compiler.compiled, kept(store)) == (3, 3)


def test_a_text_that_has_no_version_is_in_the_key(compile_in, compiler, wrapper) -> None:
    wrapper.version = ""
    first = compile_in()
    wrapper.added = "# two\n"
    second = compile_in()
    texts = [made.manifest.key_inputs["launcher"] for made in (first, second)]
    assert texts[1] == texts[0] + "# two\n"
    assert compiler.compiled == 2


def test_what_is_not_declared_any_more_is_refused_though_it_was_kept(compile_in, compiler, wrapper) -> None:
    program = one_kernel(cooperative=True)
    compile_in(program)
    with pytest.raises(UnsupportedFeatureError):
        compile_in(program, registry=plugins_of(compiler, wrapper, targets={"cuda": frozenset()}))


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


@pytest.mark.parametrize(
    "member", ["edited and put back", "read, and not known before", "read, and gone", "only looked at"]
)
def test_what_is_read_is_what_the_key_was_made_of(compile_in, compiler, store, tmp_path, member) -> None:
    header, other = tmp_path / "header", tmp_path / "other"
    header.write_text("one")
    other.write_text("two")
    compiler.files = (str(header),)

    def meanwhile() -> None:
        match member:
            case "edited and put back":
                header.write_text("two")
                header.write_text("one")
            case "read, and not known before":
                witness([str(header), str(other)])
            case "read, and gone":
                witness([str(header), str(tmp_path / "gone")])
            case _:
                witness([str(header)])

    compiler.meanwhile = staticmethod(meanwhile)
    assert compile_in().files
    assert kept(store) == (member == "only looked at")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"speed": 3}, "got 'speed', expected options by plugin: options={'acme': {'speed': ...}}"),
        ({"amce": {"speed": 3}}, "got options for 'amce', expected only acme; did you mean 'acme'?"),
        ({"acme": 3}, "expected {plugin: {option: value}}"),
    ],
)
def test_options_under_another_name_than_the_compiler_s(compile_in, options, said) -> None:
    with pytest.raises(ProgramError) as caught:
        compile_in(options=options)
    assert said in str(caught.value)


def cyclic() -> list[Any]:
    found: list[Any] = []
    found.append(found)
    return found


@pytest.mark.parametrize("cache", [True, False])
@pytest.mark.parametrize(
    "value",
    [
        *(object(), {1, 2}, b"a", [object()], {"a": object()}, {1: 2, "a": 3}, cyclic(), {"a": cyclic()}),
        *(math.nan, -math.inf, 1 << 64, -(10**5000)),
    ],
    ids=lambda value: type(value).__name__,  # one of them has more digits than Python prints
)
def test_an_option_that_json_has_not_is_refused(compile_in, store, cache: bool, value: Any) -> None:
    """The key is made of it: of what says where it lies in memory there would be another one in each process."""
    with pytest.raises(ProgramError) as caught:
        compile_in(
            options={"acme": {"fine": [1, None, {"a": 2.5}], "odd": value}}, cache=store if cache else False
        )
    assert caught.value.field == "options.odd"


def test_options_are_handed_on_as_python_s_own_values(compile_in, compiler, monkeypatch) -> None:
    class Word(enum.StrEnum):
        ONE = "1"

    class Level(enum.IntEnum):
        THIRD = 3

    seen = []
    monkeypatch.setattr(compiler, "environment", lambda _, request: seen.append(dict(request.options)) or {})
    options = OrderedDict(
        acme=OrderedDict({Word.ONE: np.str_("a"), "more": (Word.ONE, Level.THIRD), "number": 3.5})
    )
    compile_in(options=options)
    assert seen[0] == {"1": "a", "more": ["1", 3], "number": 3.5}
    assert type(seen[0]["more"][1]) is int
    assert {*map(type, (*seen[0], seen[0]["1"], *seen[0]["more"][:1]))} == {str}


@pytest.fixture
def compile_with(compile_in, tmp_path, monkeypatch) -> Callable[..., Any]:
    """Return `compile_in` for a user whose cache is in a folder of the test's."""
    monkeypatch.setenv(VARIABLE, str(tmp_path / "user"))
    return compile_in


def test_by_default_it_is_the_users_cache(compile_with, compiler, tmp_path) -> None:
    default = inspect.signature(trunnion.compile).parameters["cache"].default
    assert default is True
    assert compile_with(cache=default) == compile_with(cache=default)
    assert compiler.compiled == 1
    assert kept(ArtifactStore(tmp_path / "user")) == 1
    assert kept(ArtifactStore()) == 1


@pytest.mark.parametrize("cache", [False, None])
def test_without_a_cache_nothing_is_kept(compile_with, compiler, tmp_path, cache) -> None:
    made = [compile_with(cache=cache) for _ in range(2)]
    assert made[0] == made[1]
    assert made[0].manifest.key == ""
    assert compiler.compiled == 2
    assert not (tmp_path / "user").exists()


def test_the_environment_turns_the_users_cache_off_and_no_other(
    compile_with, compiler, store, monkeypatch
) -> None:
    monkeypatch.setenv(VARIABLE, "0")
    for _ in range(2):
        compile_with(cache=True)
    assert compiler.compiled == 2
    for _ in range(2):
        compile_with()
    assert (compiler.compiled, kept(store)) == (3, 1)


def test_an_environment_that_nobody_understands_is_refused_where_it_is_asked(
    compile_with, monkeypatch
) -> None:
    monkeypatch.setenv(VARIABLE, "yes")
    with pytest.raises(ArgumentValueError, match=VARIABLE):
        compile_with(cache=True)
    assert compile_with(cache=False).files
    assert compile_with().files


def test_a_user_s_cache_that_cannot_be_refuses_nothing(compile_with, tmp_path) -> None:
    (tmp_path / "user").write_text("a file")
    assert compile_with(cache=True).files


@pytest.mark.parametrize("lazy", [False, True])
def test_what_is_compiled_anew_replaces_what_was_kept(compile_with, compiler, store, lazy) -> None:
    before = compile_with(lazy=lazy)
    after = compile_with(lazy=lazy, recache=True)
    assert before == after == compile_with(lazy=lazy)
    assert (compiler.compiled, kept(store)) == (2, 1)
    assert compile_with(recache=True, cache=False).files


@pytest.mark.parametrize(
    "said",
    [{"cache": 5}, {"cache": 1}, {"cache": b"x"}, {"recache": 1}, {"recache": None}, {"recache": "no"}],
)
def test_what_says_nothing_of_a_cache_is_refused(compile_with, said) -> None:
    with pytest.raises(ArgumentTypeError):
        compile_with(**said)


@pytest.mark.parametrize("url", ["s3://bucket/cache", "file:///somewhere/cache", "memory://cache"])
def test_a_url_is_no_folder_of_that_name(compile_with, tmp_path, monkeypatch, url) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ArtifactError, match="expected a folder: what is at a URL is only read"):
        compile_with(cache=url)
    assert not (tmp_path / url.partition("/")[0]).exists()
