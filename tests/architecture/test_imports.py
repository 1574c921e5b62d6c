"""The direction of imports between core's parts, plugins and heavy packages."""

from __future__ import annotations

import subprocess
import sys

import pytest
from architecture_rules.imports import (
    HEAVY,
    When,
    circles,
    heavy_imports,
    imports,
    layering,
    plugin_imports,
    toolchain_imports,
)
from architecture_rules.source import Module, core_modules, plugin_modules, plugin_names, snippet

_VALUES = frozenset(
    {"arguments", "callers", "errors", "model", "plain", "turns", "messages", "version_numbers"}
)
_CONTRACT = _VALUES | {"contract"}
_MAKING = _CONTRACT | {"artifacts", "codegen", "image", "launcher", "storage"}
_FRONT = _MAKING | {
    "attempts",
    "built_program",
    "compiled",
    "compiled_kernel",
    "distributions",
    "hookspecs",
    "registry",
    "torch_runtime",
}

LAYERS = {
    "version_numbers": frozenset[str](),
    "plain": frozenset[str](),
    "messages": frozenset({"plain"}),
    "errors": frozenset({"messages"}),
    "dlpack": frozenset[str](),
    "callers": frozenset[str](),
    "turns": frozenset({"errors"}),
    "arguments": frozenset({"current_device", "errors", "plain", "messages"}),
    "current_device": frozenset(),
    "model": frozenset({"errors", "json_text", "plain", "messages", "turns"}),
    "contract": _VALUES | {"artifacts"},
    "hookspecs": frozenset[str](),
    "distributions": frozenset({"messages", "storage"}),
    "json_text": frozenset[str](),
    "launcher": _CONTRACT | {"image"},
    "codegen": _CONTRACT | {"image", "launcher", "storage", "toolchain"},
    "image": _CONTRACT,
    "artifacts": _VALUES | {"json_text", "storage"},
    "signing": _CONTRACT | {"artifacts", "storage"},
    "signed_files": _FRONT | {"bundles", "lock", "signing"},
    "prebuilt_hooks": _CONTRACT | {"hookspecs", "image"},
    "attempts": _CONTRACT,
    "registry": _CONTRACT | {"attempts", "distributions", "hookspecs"},
    "toolchain": _CONTRACT | {"distributions", "storage"},
    "storage": frozenset({"callers", "errors", "turns", "messages"}),
    "call_helper": _CONTRACT | {"attempts", "distributions"},
    "torch_runtime": _CONTRACT | {"call_helper", "sim"},
    "built_program": _CONTRACT | {"artifacts", "selection"},
    "compiled_kernel": _CONTRACT | {"artifacts", "image", "kernel_attributes", "toolchain"},
    # The model's table of refusals has the row of a device; what a status means, the launcher knows.
    "kernel_attributes": frozenset({"errors", "launcher", "model", "toolchain"}),
    "image_exchange": _CONTRACT | {"artifacts", "built_program", "image"},
    "compiled": _MAKING
    | {"built_program", "compiled_kernel", "operators", "registry", "selection", "signing", "torch_runtime"},
    "selection": _CONTRACT | {"attempts", "registry"},
    "bundles": _MAKING
    | {"built_program", "compiled", "image", "registry", "selection", "signing", "toolchain"},
    "building": _FRONT | {"compilation"},
    "operators": _FRONT | {"toolchain"},
    "exporters": _FRONT | {"bundles"},
    "lock": _FRONT | {"bundles", "compilation", "signing"},
    "compiler_options": frozenset({"errors", "messages", "plain"}),
    "checked_compiler": _CONTRACT | {"selection"},
    "measuring": _CONTRACT | {"attempts", "checked_compiler", "compiler_options", "image", "registry"},
    "compilation": _FRONT | {"bundles", "checked_compiler", "compiler_options", "selection", "signing"},
    "sim": _VALUES | {"call_helper", "dlpack", "image", "storage", "toolchain"},
    "examples": _VALUES | {"sim"},
    "__main__": frozenset({"cli"}),
    "cli": _FRONT
    | {
        "building",
        "bundles",
        "call_helper",
        "compilation",
        "examples",
        "exporters",
        "lock",
        "selection",
        "signed_files",
        "signing",
        "sim",
        "testing",
        "toolchain",
    },
    "testing": _FRONT | {"compilation", "dlpack", "examples", "operators", "sim", "toolchain"},
}
"""What each part of core may import. ``cli`` has everything; nobody else has ``testing``."""

TYPING_ONLY = {
    "sim": frozenset({"contract"}),
    "hookspecs": frozenset({"contract"}),
    "": frozenset(LAYERS) - {"testing", "cli"},
}
"""What a part may, besides, name in annotations."""

AT_IMPORT = frozenset(
    {
        "core/src/trunnion/signing/ed25519.py cryptography",
        "core/src/trunnion/signing/sigstore_check.py sigstore",
        "core/src/trunnion/sim/exchange.py torch",
        "core/src/trunnion/sim/runtime.py torch",
        "core/src/trunnion/sim/tensor.py torch",
        "core/src/trunnion/sim/torch_mode.py torch",
        "core/src/trunnion/testing/gpu/machine.py torch",
        "core/src/trunnion/testing/gpu/probes.py torch",
        "core/src/trunnion/testing/gpu/readback.py cuda",
        "core/src/trunnion/testing/gpu/readback.py torch",
    }
)
"""Files that subclass a heavy package's class, or are for GPUs alone; they are imported only inside functions."""

IN_CALLS = frozenset(
    {
        "core/src/trunnion/cli/arrays.py numpy",
        "core/src/trunnion/cli/arrays.py torch",
        "core/src/trunnion/cli/inputs.py torch",
        "core/src/trunnion/cli/place.py torch",
        "core/src/trunnion/cli/run_result.py torch",
        "core/src/trunnion/codegen/cpp/loader.py tvm_ffi",
        "core/src/trunnion/examples/affine.py torch",
        "core/src/trunnion/examples/cluster_norm.py torch",
        "core/src/trunnion/examples/cpu_axpy.py torch",
        "core/src/trunnion/examples/cpu_softmax.py torch",
        "core/src/trunnion/examples/example.py torch",
        "core/src/trunnion/examples/grid_sync.py torch",
        "core/src/trunnion/examples/histogram.py torch",
        "core/src/trunnion/examples/hopper_gemm.py torch",
        "core/src/trunnion/examples/im2col_conv.py torch",
        "core/src/trunnion/examples/linked.py torch",
        "core/src/trunnion/examples/pdl_pair.py torch",
        "core/src/trunnion/examples/segment_sum.py torch",
        "core/src/trunnion/examples/split_k.py torch",
        "core/src/trunnion/examples/two_boxes.py torch",
        "core/src/trunnion/examples/vector_add.py torch",
        "core/src/trunnion/exporters/launchers.py tvm_ffi",
        "core/src/trunnion/operators/batching.py torch",
        "core/src/trunnion/operators/fake.py torch",
        "core/src/trunnion/operators/gradients.py torch",
        "core/src/trunnion/operators/jax_call.py jax",
        "core/src/trunnion/operators/jax_call.py jax_tvm_ffi",
        "core/src/trunnion/operators/jax_call.py numpy",
        "core/src/trunnion/operators/kernels.py torch",
        "core/src/trunnion/operators/library.py torch",
        "core/src/trunnion/operators/registration.py torch",
        "core/src/trunnion/operators/shapes.py torch",
        "core/src/trunnion/sim/im2col_view.py torch",
        "core/src/trunnion/sim/map_elements.py torch",
        "core/src/trunnion/sim/memory.py torch",
        "core/src/trunnion/testing/gpu/cupti.py cuda",
        "core/src/trunnion/testing/beside_saboteurs.py torch",  # which memory is the same is told by torch's storages
        "core/src/trunnion/testing/detail_saboteurs.py torch",  # the same
        "core/src/trunnion/testing/refusal_saboteurs.py torch",  # the same
        "core/src/trunnion/testing/harness.py torch",
        "core/src/trunnion/testing/host_memory.py torch",
        "core/src/trunnion/testing/machine.py torch",
        "core/src/trunnion/testing/process_state.py torch",
        "core/src/trunnion/testing/runner.py torch",
        "core/src/trunnion/testing/strategies/calls.py torch",
        "core/src/trunnion/testing/suite/test_arguments.py torch",
        "core/src/trunnion/testing/suite/test_operators.py torch",
        "core/src/trunnion/testing/suite/test_values.py numpy",
        "core/src/trunnion/torch_runtime.py torch",
    }
)
"""Files that import a heavy package only when a function runs."""

CIRCLES = {
    ("trunnion.model", "expr expr_text facts float_expr float_text precedence"): (
        "an expression's own operators and text: n / 2 makes a float one, and str(n) writes it"
    ),
    ("trunnion.model", "launch struct"): "a struct holds what a launch passes, of which a struct is one",
    ("trunnion.model.plan", "launch_plan lowering steps"): "a plan has its steps, which are lowered from it",
    ("trunnion.model", "plan.planning program serial serial.reading serial.writing"): (
        "a program's own plan() and to_json(), which others make of it"
    ),
    ("trunnion.contract", "adapter compiler source spec"): (
        "a spec names the classes of its roles, each of which is made with its spec"
    ),
    ("trunnion.launcher", "context walk"): "a context walks a refused call, and a walk asks the context",
    (
        "trunnion",
        "compiled operators.fake operators.gradients operators.kernels operators.library operators.registration",
    ): ("a program's own torch_op(), which registers the program"),
    (
        "trunnion",
        "cli cli.application",
    ): "the package says what is missing where the command cannot be imported",
    ("trunnion.testing", "changes history"): "a change is made at a bench, which is told the change",
    (
        "trunnion.testing",
        "reference_arguments reference_variables",
    ): "the reading of a call checks its copies",
    (
        "trunnion.testing",
        "comparison dealing delivery harness laws observed provision variables violation_report ways",
    ): "a violation tells of the harness that it was seen with, and the harness holds laws",
}
"""The circles that are left, each with its reason; between two parts of core there is but the one of operators."""

FOR_PLUGINS = frozenset(
    {
        "arguments",
        "artifacts",
        "codegen",
        "compilation",  # for an importer that stands in for its language's own compiler: it compiles as a user does
        "compiled",
        "contract",
        "distributions",  # for the version of what is installed, without the time that importlib takes
        "dlpack",
        "errors",
        "examples",  # for those that a device compiler brings
        "hookspecs",
        "image",
        "launcher",
        "model",
        "storage",
        "sim",  # what the bodies of those examples are given
        "toolchain",
        "torch_runtime",  # for what a plugin offers to call beside its backend
        "plain",  # so that what a caller passes comes through one door
        "messages",  # so that a plugin's messages show what a user wrote as all others do
        "turns",
    }
)
"""The parts of core that plugins build on; the rest is for users, or for tests."""

TOOLCHAINS = {
    "nvrtc": frozenset({"cuda"}),
    "tvm_ffi": frozenset({"tvm_ffi"}),
    "cutedsl": frozenset({"cutlass"}),
    "tilelang": frozenset({"tilelang", "tvm", "tvm_ffi"}),
    "fastcall": frozenset[str](),
}
"""The packages that each plugin wraps."""

EDGES = frozenset(
    {
        "plugins/cutedsl/src/trunnion_cutedsl/compiler/annotations.py",
        "plugins/cutedsl/src/trunnion_cutedsl/compiler/dsl.py",
        "plugins/tilelang/src/trunnion_tilelang/jit_kernel.py",
        "plugins/tilelang/src/trunnion_tilelang/lowering.py",
        "plugins/nvrtc/src/trunnion_nvrtc/compiler/device_runtime.py",
        "plugins/nvrtc/src/trunnion_nvrtc/compiler/headers.py",
        "plugins/nvrtc/src/trunnion_nvrtc/compiler/linker.py",
        "plugins/nvrtc/src/trunnion_nvrtc/compiler/nvrtc.py",
        "plugins/nvrtc/src/trunnion_nvrtc/backend/driver.py",
        "plugins/nvrtc/src/trunnion_nvrtc/backend/status.py",
        "plugins/nvrtc/src/trunnion_nvrtc/backend/structures.py",
        "plugins/tvm_ffi/src/trunnion_tvm_ffi/foreign/functions.py",
    }
)
"""The files of plugins that import a toolchain: where its errors become ours."""


def _all(rule_violations: list[str]) -> None:
    assert not rule_violations, "\n".join(rule_violations)


def test_core_imports_go_down_the_layers() -> None:
    modules = [module for module in core_modules() if module.name != "trunnion"]
    assert modules
    _all([line for module in modules for line in layering(module, LAYERS, TYPING_ONLY)])


def test_modules_import_one_another_in_no_circle_but_those_that_are_named() -> None:
    """For typing and inside of functions too: what is in a circle cannot be read or tested by itself.

    Of one that is named no module may be gone either: the row would let others in unseen.
    """
    found = circles((*core_modules(), *plugin_modules()))
    known = {frozenset(f"{package}.{name}" for name in names.split()) for (package, names) in CIRCLES}
    assert sorted(map(sorted, found - known)) == []
    assert sorted(map(sorted, known - found)) == []


def test_the_public_package_imports_no_part_of_itself() -> None:
    (package,) = (module for module in core_modules() if module.name == "trunnion")
    eager = [item.target for item in imports(package) if item.when is When.IMPORT]
    assert not [target for target in eager if target.startswith("trunnion")]


def test_core_imports_heavy_packages_only_where_named() -> None:
    _all([line for module in core_modules() for line in heavy_imports(module, AT_IMPORT, IN_CALLS)])


def test_core_can_be_imported_without_heavy_packages() -> None:
    """What the tables say of files, shown by importing them: every module but those that are named."""
    named = {row.partition(" ")[0] for row in AT_IMPORT}
    light = sorted(module.name for module in core_modules() if module.path not in named)
    source = f"""
import importlib, sys
for name in {light}:
    importlib.import_module(name)
    heavy = {set(HEAVY)} & set(sys.modules)
    assert not heavy, (name, heavy)
"""
    done = subprocess.run(
        [sys.executable, "-c", source], capture_output=True, text=True, check=False, timeout=120
    )
    assert done.returncode == 0, done.stderr


def test_plugins_import_public_core_and_no_other_plugin() -> None:
    modules = plugin_modules()
    assert modules
    _all([line for module in modules for line in plugin_imports(module, FOR_PLUGINS)])


@pytest.mark.parametrize("plugin", plugin_names())
def test_a_toolchain_is_imported_in_few_files(plugin: str) -> None:
    own = [module for module in plugin_modules() if module.path.startswith(f"plugins/{plugin}/")]
    _all([line for module in own for line in toolchain_imports(module, TOOLCHAINS[plugin], EDGES)])


@pytest.mark.parametrize(("one", "other"), [("cpp", "python"), ("python", "cpp")])
def test_neither_language_of_launchers_knows_the_other(one: str, other: str) -> None:
    own = [module for module in core_modules() if module.name.startswith(f"trunnion.codegen.{one}.")]
    assert own
    found = [item.target for module in own for item in imports(module)]
    assert not [target for target in found if target.startswith(f"trunnion.codegen.{other}")]


def test_every_named_exception_is_still_needed() -> None:
    """A row that no file uses any more would let one back in unseen."""
    found = {
        f"{module.path} {item.target.partition('.')[0]}"
        for module in (*core_modules(), *plugin_modules())
        for item in imports(module)
    }
    assert not (AT_IMPORT | IN_CALLS) - found
    assert not EDGES - {row.partition(" ")[0] for row in found}
    parts = {module.name.split(".")[1] for module in core_modules() if "." in module.name}
    assert parts == set(LAYERS)


LOW = {"errors": frozenset[str](), "model": frozenset({"errors"}), "sample": frozenset({"model"})}


@pytest.mark.parametrize(
    "line",
    [
        "import trunnion.contract.spec",
        "from trunnion import contract",
        "from trunnion.contract import spec",
        "from .contract import spec",
        "def f():\n    from trunnion.contract import spec",
        "try:\n    import trunnion.contract\nexcept ImportError:\n    pass",
        "if TYPE_CHECKING:\n    pass\nelse:\n    import trunnion.contract",
    ],
)
def test_layering_sees(line: str) -> None:
    assert list(layering(snippet(line), LOW, {}))
    assert list(layering(snippet(line), LOW, {"sample": frozenset({"contract"})})), "not for typing: it runs"


def test_layering_lets_pass_what_is_allowed() -> None:
    assert not list(
        layering(snippet("import trunnion.model.expr\nimport trunnion.sample.x\nimport os"), LOW, {})
    )
    typing_only = snippet("if TYPE_CHECKING:\n    from trunnion.contract import spec")
    assert list(layering(typing_only, LOW, {}))
    assert not list(layering(typing_only, LOW, {"sample": frozenset({"contract"})}))


def test_layering_wants_a_row_for_every_part() -> None:
    assert list(layering(snippet("", "trunnion.novelty"), LOW, {}))


def test_heavy_imports_are_seen_wherever_they_run() -> None:
    at_import, in_call = snippet("import torch.nn"), snippet("def f():\n    from cuda.bindings import driver")
    assert list(heavy_imports(at_import, (), ()))
    assert list(heavy_imports(at_import, (), [f"{at_import.path} torch"]))
    assert not list(heavy_imports(at_import, [f"{at_import.path} torch"], ()))
    assert list(heavy_imports(in_call, (), ()))
    assert not list(heavy_imports(in_call, (), [f"{in_call.path} cuda"]))
    assert list(heavy_imports(snippet("class C:\n    import numpy"), (), []))
    assert list(heavy_imports(snippet("import_module('torch.nn')"), (), []))
    assert list(heavy_imports(snippet("x = importlib.import_module('cuda')"), (), []))
    assert list(heavy_imports(snippet("def f():\n    __import__('numpy')"), (), []))
    assert not list(heavy_imports(snippet("import_module(name)"), (), []))
    assert not list(heavy_imports(snippet("if TYPE_CHECKING:\n    import torch"), (), ()))


@pytest.mark.parametrize(
    "line",
    [
        "import trunnion_other",
        "from trunnion_other.hooks import x",
        "from trunnion.model import _private",
        "from trunnion.codegen._inner import x",
        "import trunnion.testing.reference",
        "def f():\n    import trunnion.cli",
    ],
)
def test_plugin_imports_sees(line: str) -> None:
    plugin = Module("plugins/acme/src/trunnion_acme/x.py", "trunnion_acme.x", line)
    assert list(plugin_imports(plugin, {"model", "codegen"}))


def test_plugin_imports_lets_pass_what_is_public() -> None:
    text = "from trunnion.model.plan import LaunchPlan\nfrom . import wrapper\nimport trunnion_acme.driver"
    assert not list(plugin_imports(Module("p", "trunnion_acme.x", text), {"model"}))


def test_toolchain_imports_are_seen_outside_the_edge() -> None:
    module = Module(
        "plugins/acme/src/trunnion_acme/x.py", "trunnion_acme.x", "def f():\n    import cuda.bindings"
    )
    assert list(toolchain_imports(module, {"cuda"}, ()))
    assert not list(toolchain_imports(module, {"cuda"}, {module.path}))


@pytest.mark.parametrize(
    "line",
    [
        "from trunnion.b import x",
        "import trunnion.b",
        "if TYPE_CHECKING:\n    from trunnion import b",
        "def f():\n    from trunnion.b import x",
    ],
)
def test_circles_are_seen(line: str) -> None:
    one = snippet(line, "trunnion.a")
    between, last = snippet("import trunnion.c", "trunnion.b"), snippet("import trunnion.a", "trunnion.c")
    outside = snippet("import trunnion.a", "trunnion.d")
    assert circles((one, between, last, outside)) == {frozenset({"trunnion.a", "trunnion.b", "trunnion.c"})}
    assert circles((one, between, outside)) == frozenset()
