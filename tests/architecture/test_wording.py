"""What text may not say, and what documentation must."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from architecture_rules.documentation import dataclass_fields, docstrings
from architecture_rules.foreign_values import foreign_values
from architecture_rules.source import (
    ROOT,
    Module,
    core_modules,
    files,
    plugin_modules,
    plugin_names,
    python_files,
    snippet,
)
from architecture_rules.wording import (
    machine_paths,
    package_indexes,
    plugin_names_in_code,
    suppressions,
    unfinished,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

PLUGINS = frozenset({"nvrtc", "cutedsl", "tvm_ffi", "tilelang"}) | set(plugin_names())
"""The names that core does not know: of the plugins here, and of those that are to come."""

TOOLCHAIN_IMPORTS = frozenset(
    {
        "core/src/trunnion/codegen/cpp/loader.py tvm_ffi",
        "core/src/trunnion/exporters/launchers.py tvm_ffi",
        "core/src/trunnion/operators/jax_call.py jax_tvm_ffi",
    }
)
"""Where core may import a package that has the name of a plugin."""

ABI_PREFIXES = ("__tvm_ffi_",)
"""What the names begin with that TVM-FFI's ABI prescribes: of exported functions, and of what an error carries."""


SPELLING_THEIR_OWN = {
    "core/src/trunnion/messages.py": "the one place that decides it",
    "core/src/trunnion/__init__.py": "of modules and attributes",
    "core/src/trunnion/cli/__init__.py": "before anything of core is imported",
    "core/src/trunnion/cli/doctor.py": "of texts, escaped where they are printed",
    "core/src/trunnion/cli/document.py": "of our own classes",
    "core/src/trunnion/cli/run.py": "of an option's text",
    "core/src/trunnion/cli/traced.py": "of our own classes",
    "core/src/trunnion/cli/run_result.py": "of our own errors",
    "core/src/trunnion/codegen/": "a plan's numbers, as literals of a launcher",
    "core/src/trunnion/launcher/arithmetic.py": "of our own classes",
    "core/src/trunnion/operators/shapes.py": "of our own classes",
    "core/src/trunnion/model/launch_attributes.py": "of the driver's numbers",
    "core/src/trunnion/model/record.py": "of what a JSON reader made",
    "core/src/trunnion/model/serial/writing.py": "of a number that is not finite",
    "core/src/trunnion/sim/__init__.py": "of modules and attributes",
    "core/src/trunnion/sim/parameters.py": "a record of our own, and of its fields",
    "core/src/trunnion/sim/shim.py": "of words, and of what a build depends on",
    "core/src/trunnion/sim/tensor.py": "a tensor's own repr",
    "core/src/trunnion/testing/": "of what the suite itself drew",
    "core/src/trunnion/toolchain/host_compiler.py": "the environment, which is hashed",
    "core/src/trunnion/toolchain/host_reading.py": "words and texts, which are hashed",
    "core/src/trunnion/exporters/launchers.py": "of a caller's device; runs without core",
    "core/src/trunnion/toolchain/driver.py": "a name inside of the text of a program",
    "plugins/cutedsl/src/trunnion_cutedsl/compiler/annotations.py": "of the kernel language's own classes",
    "plugins/cutedsl/src/trunnion_cutedsl/compiler/dsl.py": "of an architecture's checked word; runs without core",
    "plugins/cutedsl/src/trunnion_cutedsl/compiler/messages.py": "of what a message reader made",
    "plugins/cutedsl/src/trunnion_cutedsl/compiler/worker.py": "of errors in a process of its own; runs without core",
    "plugins/nvrtc/src/trunnion_nvrtc/compiler/compiler.py": "variables of the environment, which are hashed",
    "plugins/nvrtc/src/trunnion_nvrtc/compiler/pch.py": "a state that is hashed, of texts",
    "plugins/tilelang/src/trunnion_tilelang/__init__.py": "of modules and attributes",
    "plugins/tilelang/src/trunnion_tilelang/tir.py": "of the compiler's own classes, which its tables name",
    "plugins/tvm_ffi/src/trunnion_tvm_ffi/__init__.py": "of modules and attributes",
    "plugins/tvm_ffi/src/trunnion_tvm_ffi/compiler/host_request.py": "of a table's words",
}
"""Modules, or folders of them, that may ask for a ``repr`` or a type's name, and of what they do."""


def _texts() -> Iterator[tuple[str, str]]:
    for path in files():
        try:
            yield path.relative_to(ROOT).as_posix(), path.read_text("utf-8")
        except UnicodeDecodeError:
            continue  # an image: no words in it


def test_core_names_no_plugin() -> None:
    violations = [
        line
        for module in core_modules()
        for line in plugin_names_in_code(module, PLUGINS, TOOLCHAIN_IMPORTS, ABI_PREFIXES)
    ]
    assert not violations, "\n".join(violations)


@pytest.mark.parametrize("rule", [machine_paths, package_indexes, unfinished])
def test_no_text_says(rule: Callable[[str, str], Iterator[str]]) -> None:
    violations = [line for path, text in _texts() for line in rule(path, text)]
    assert not violations, "\n".join(violations)


def test_a_foreign_value_gets_into_no_message_by_itself() -> None:
    found = [line for module in (*core_modules(), *plugin_modules()) for line in foreign_values(module)]
    allowed = tuple(SPELLING_THEIR_OWN)
    assert not [line for line in found if not line.startswith(allowed)]
    assert not [place for place in allowed if not any(line.startswith(place) for line in found)]


@pytest.mark.parametrize(
    "line",
    [
        "f'{x!r}'",
        "f'{x!a}'",
        "repr(x)",
        "ascii(x)",
        "type(x).__name__",
        "type(x.y).__qualname__",
        "type(x) in (a, b)",
        "type(x) == a",
    ],
)
def test_foreign_values_sees(line: str) -> None:
    assert list(foreign_values(snippet(line)))


@pytest.mark.parametrize("line", ["f'{x}'", "describe(x)", "kind.__name__", "x.repr()", "f'{x:>{y}}'"])
def test_foreign_values_lets_pass(line: str) -> None:
    assert not list(foreign_values(snippet(line)))


def test_every_suppression_gives_its_reason() -> None:
    violations = [line for module in python_files() for line in suppressions(module)]
    assert not violations, "\n".join(violations)


@pytest.mark.parametrize("rule", [docstrings, dataclass_fields])
def test_everything_public_is_documented(rule: Callable[[Module], Iterator[str]]) -> None:
    violations = [line for module in (*core_modules(), *plugin_modules()) for line in rule(module)]
    assert not violations, "\n".join(violations)


@pytest.mark.parametrize(
    "line",
    [
        "x = 'acme'",
        "x = f'use {y} or acme'",
        "x = b'acme'",
        "class AcmeThing: ...",
        "def load_acme(): ...",
        "x.acme",
        "f(acme=1)",
        "import trunnion_acme",
        "from acme import x",
        "import x as acme",
        "X_ACME_Y = 1",
        "useAcme()",
        "x = 'pip install trunnion-acme'",
    ],
)
def test_plugin_names_in_code_sees(line: str) -> None:
    assert list(plugin_names_in_code(snippet(line), {"acme"}))


@pytest.mark.parametrize(
    "line", ['"""Like acme."""', "x: int\n'As acme does.'", "# acme\nx = 1", "x = 'acmeology'"]
)
def test_plugin_names_in_code_lets_pass(line: str) -> None:
    assert not list(plugin_names_in_code(snippet(line), {"acme"}))


def test_plugin_names_in_code_knows_the_named_imports() -> None:
    module = snippet("import acme.core")
    assert list(plugin_names_in_code(module, {"acme"}))
    assert not list(plugin_names_in_code(module, {"acme"}, {f"{module.path} acme"}))


def test_plugin_names_in_code_knows_the_names_of_an_abi() -> None:
    module = snippet("x = '__acme_main'\ny.__acme_error__")
    assert len(list(plugin_names_in_code(module, {"acme"}))) == 2
    assert not list(plugin_names_in_code(module, {"acme"}, (), ("__acme_",)))
    assert list(plugin_names_in_code(snippet("x = 'see __acme_main'"), {"acme"}, (), ("__acme_",)))


# The texts below are put together, so that the rules need not pass over this file.


@pytest.mark.parametrize("place", ["work", "home", "root", "tmp"])
@pytest.mark.parametrize("text", ["see {}", "'{}'", "PATH={}", "open({})"])
def test_machine_paths_sees(place: str, text: str) -> None:
    assert list(machine_paths("x", text.format(f"/{place}/scratch")))
    assert not list(machine_paths("x", text.format(f"/usr/{place}/scratch")))
    assert not list(machine_paths("x", text.format(f"https://example.org/{place}/scratch")))


@pytest.mark.parametrize("text", ["pip install --{}-url x", "--extra-{}-url=x", "pip install --find-{}s x"])
def test_package_indexes_sees(text: str) -> None:
    assert list(package_indexes("x", text.format("link" if "find" in text else "index")))
    assert list(package_indexes("x", "https://example.org/" + "simple"))
    assert list(package_indexes("x", "https://example.org/" + "whl/cpu"))
    assert not list(package_indexes("x", "pip install torch; https://docs.example.org/"))


@pytest.mark.parametrize("word", ["to-do", "fix-me", "xx-x", "ha-ck"])
def test_unfinished_sees(word: str) -> None:
    assert list(unfinished("x", f"# {word.replace('-', '').upper()}: it"))
    assert not list(unfinished("x", "mastodon hackathon"))


@pytest.mark.parametrize(
    "line",
    ["x = 1  # noqa", "x = 1  # noqa: E501", "x = 1  # type: ignore", "x = 1  # type: ignore[attr-defined]"],
)
def test_suppressions_sees(line: str) -> None:
    assert list(suppressions(snippet(line)))


def test_suppressions_lets_pass_a_reason() -> None:
    text = "x = 1  # noqa: E501, D100 - a table\ny = 1  # type: ignore[attr-defined] # no stubs\nz = '# noqa'"
    assert not list(suppressions(snippet(text)))


@pytest.mark.parametrize(
    "text",
    [
        "x = 1",
        '"""M."""\ndef f(): ...',
        '"""M."""\nclass C: ...',
        '"""M."""\nclass C:\n    """C."""\n    def f(self): ...',
        '"""M."""\nclass C:\n    """C."""\n    @property\n    def f(self): ...',
    ],
)
def test_docstrings_sees(text: str) -> None:
    assert len(list(docstrings(snippet(text)))) == 1


def test_docstrings_lets_pass_private_and_inherited() -> None:
    text = (
        '"""M."""\ndef _f(): ...\nclass _C:\n    def f(self): ...\n'
        'class D:\n    """D."""\n    @override\n    def f(self): ...'
    )
    assert not list(docstrings(snippet(text)))


@pytest.mark.parametrize("decorator", ["@dataclass", "@dataclass(frozen=True)", "@dataclasses.dataclass"])
def test_dataclass_fields_sees(decorator: str) -> None:
    fields = (
        "a: int",
        '"""One."""',
        "b: int = 2",
        "c: ClassVar[int] = 3",
        "_: KW_ONLY",
        "d: int = field(init=False)",
    )
    text = f"{decorator}\nclass C:\n    " + "\n    ".join(fields)
    assert [line.split()[1] for line in dataclass_fields(snippet(text))] == ["C.b"]
    assert not list(dataclass_fields(snippet(text.replace("class C", "class _C"))))
