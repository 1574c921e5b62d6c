"""Sizes, names and constructs."""

from __future__ import annotations

import pytest
from architecture_rules.shape import (
    broad_handlers,
    function_sizes,
    module_name,
    mutable_globals,
    stray_packages,
)
from architecture_rules.source import ROOT, Module, core_modules, files, plugin_modules, python_files, snippet

BROAD = frozenset(
    {
        # The author's text raises anything; it is told to the process that waits, and this one ends.
        "plugins/cutedsl/src/trunnion_cutedsl/compiler/worker.py BaseException",
        # What cannot be made is left out where the caller says so, and logged.
        "plugins/tilelang/src/trunnion_tilelang/jit_kernel.py Exception",
        "benchmarks/launching/subject.py Exception",  # a launcher of others that fails is a row, and ends no other
        "benchmarks/operators.py Exception",  # the same
        "benchmarks/real_hosts/bench.py Exception",  # the same
        "benchmarks/tilelang_runs/isolation.py Exception",  # the same
        "core/src/trunnion/attempts.py BaseException",  # a plugin that fails in any way must hurt no other plugin
        "core/src/trunnion/building.py Exception",  # an executor's, or a plugin's: that job's failure alone
        # It is kept, and raised once the call that asked is back: across TVM-FFI's ABI it would become another error.
        "core/src/trunnion/codegen/cpp/l2_persisting.py BaseException",
        "core/src/trunnion/cli/examination.py BaseException",  # a forked child must not go on as its parent
        "tests/stress/first_load.py BaseException",  # told at the round's end
        "core/src/trunnion/plain.py BaseException",  # foreign code that is asked may raise anything, and ends nothing
        "tests/stress/stress_trials/documents.py BaseException",  # whatever leaves is what is looked for
        "tests/stress/stress_trials/wrong_calls.py BaseException",  # the same
        "core/src/trunnion/testing/driverless.py Exception",  # whatever a probe raises, it may not
        "core/src/trunnion/testing/laws.py Exception",  # whatever a search ends in, the example that it found is raised
        "core/src/trunnion/testing/lone_device.py Exception",  # whatever a process without its builder's things ends in
        "core/src/trunnion/testing/search.py Exception",  # what an example ends in, checked once more, is reported
        "core/src/trunnion/testing/gpu/cupti.py BaseException",  # nothing may leave a callback; raised again outside
        "core/src/trunnion/testing/supervisor.py BaseException",  # raised again in the thread that waits
        "core/src/trunnion/testing/forked.py BaseException",  # told to the parent, which the child must not go on as
        "core/src/trunnion/testing/suite/test_concurrency.py BaseException",  # raised again in the waiting thread
        "core/src/trunnion/testing/suite/test_devices.py BaseException",  # the same
        "core/src/trunnion/testing/suite/test_devices.py Exception",  # why an error cannot be pickled, it says
        "core/src/trunnion/testing/suite/test_source.py Exception",  # what a thread does not write, it says
        "tests/faults/fault_injection/sweep.py BaseException",  # whatever comes of a fault is what is looked for
        "tests/mutation/mutation_trials/campaign.py BaseException",  # raised again in the thread that waits
        "tests/mutation/mutation_trials/judge.py BaseException",  # a forked child must not go on as its parent
        "tests/mutation/mutation_trials/reach.py BaseException",  # likewise
        "tests/mutation/mutation_trials/trial.py Exception",  # a mutant may raise anything
    }
)
"""Where everything is caught."""


def test_functions_are_short() -> None:
    violations = [line for module in python_files() for line in function_sizes(module)]
    assert not violations, "\n".join(violations)


def test_modules_are_named_after_what_they_hold() -> None:
    violations = [line for module in python_files() for line in module_name(module)]
    assert not violations, "\n".join(violations)


def test_everything_is_caught_only_where_named() -> None:
    violations = [line for module in python_files() for line in broad_handlers(module, BROAD)]
    assert not violations, "\n".join(violations)


def test_every_named_broad_handler_is_still_there() -> None:
    used = set()
    for module in python_files():
        for row in BROAD:
            if row.startswith(f"{module.path} ") and list(broad_handlers(module, BROAD - {row})):
                used.add(row)
    assert used == BROAD


def test_no_global_can_change() -> None:
    modules = (*core_modules(), *plugin_modules())
    violations = [line for module in modules for line in mutable_globals(module)]
    assert not violations, "\n".join(violations)


def test_no_folder_is_a_package_by_accident() -> None:
    violations = list(stray_packages([path.relative_to(ROOT).as_posix() for path in files()]))
    assert not violations, "\n".join(violations)


@pytest.mark.parametrize("opener", ["def f():", "async def f():", "class C:\n  def f(self):"])
def test_function_sizes_counts_the_body(opener: str) -> None:
    indent = "    "
    docstring = f'{indent}"""Say it.\n\n{indent}At length.\n{indent}"""\n'
    assert not list(function_sizes(snippet(f"{opener}\n{docstring}" + f"{indent}x = 1\n" * 40)))
    assert list(function_sizes(snippet(f"{opener}\n{docstring}" + f"{indent}x = 1\n" * 41)))
    gaps = f"{indent}x = 1\n" + "\n" * 40 + f"{indent}x = 1\n"
    assert list(function_sizes(snippet(f"{opener}\n{gaps}"))), "blank lines count"


@pytest.mark.parametrize("name", ["utils", "util", "_helpers", "common"])
def test_module_name_sees(name: str) -> None:
    assert list(module_name(snippet("", f"trunnion.{name}")))
    assert not list(module_name(snippet("", "trunnion.expr")))


@pytest.mark.parametrize(
    "handler",
    [
        "except Exception:",
        "except BaseException as error:",
        "except (OSError, Exception):",
        "except builtins.Exception:",
        "except:",
    ],
)
def test_broad_handlers_sees(handler: str) -> None:
    assert list(broad_handlers(snippet(f"try:\n    x()\n{handler}\n    pass"), ()))


def test_broad_handlers_knows_suppress_and_the_named_places() -> None:
    module = snippet("with contextlib.suppress(Exception):\n    x()")
    assert list(broad_handlers(module, ()))
    assert not list(broad_handlers(module, {f"{module.path} Exception"}))
    assert list(broad_handlers(module, {f"{module.path} BaseException"}))
    assert not list(broad_handlers(snippet("try:\n    x()\nexcept BaseException:\n    y()\n    raise"), ()))
    assert list(
        broad_handlers(snippet("try:\n    x()\nexcept Exception as e:\n    raise ValueError from e"), ())
    )
    assert not list(broad_handlers(snippet("try:\n    x()\nexcept (OSError, ValueError):\n    pass"), ()))


@pytest.mark.parametrize(
    "text",
    [
        "cache = {}",
        "seen: list[int] = []",
        "x = y = set()",
        "a = collections.defaultdict(int)",
        "TABLE = {}\ndef f():\n    TABLE['x'] = 1",
        "TABLE = {}\ndel TABLE['x']",
        "_ROWS = [1]\ndef f():\n    _ROWS.append(2)",
    ],
)
def test_mutable_globals_sees(text: str) -> None:
    assert list(mutable_globals(snippet(text)))


@pytest.mark.parametrize(
    "text",
    [
        "__all__ = ['x']",
        "ROWS = (1, 2)",
        "_TABLE = {1: 2}\nx = _TABLE[1]",
        "def f():\n    x = []\n    x.append(1)",
        "x: list[int]",
    ],
)
def test_mutable_globals_lets_pass(text: str) -> None:
    assert not list(mutable_globals(snippet(text)))


@pytest.mark.parametrize(
    "path",
    [
        "__init__.py",
        "core/__init__.py",
        "plugins/__init__.py",
        "plugins/acme/__init__.py",
        "core/tests/__init__.py",
        "tests/gpu/__init__.py",
    ],
)
def test_stray_packages_sees(path: str) -> None:
    assert list(stray_packages([path]))
    assert not list(
        stray_packages(
            [
                "core/src/trunnion/__init__.py",
                "plugins/acme/src/trunnion_acme/__init__.py",
                "tests/third_party/acme_backend/src/trunnion_acme/__init__.py",
            ]
        )
    )


def test_the_rules_read_every_file() -> None:
    """Guard the guards: a rule that reads no file finds nothing."""
    paths = {module.path for module in python_files()}
    assert {"core/src/trunnion/errors.py", "tests/architecture/test_shape.py", "docs/conf.py"} <= paths
    names = {module.name for module in (*core_modules(), *plugin_modules())}
    assert {
        "trunnion",
        "trunnion.contract.spec",
        "trunnion_nvrtc",
        "trunnion_tvm_ffi",
        "trunnion_cutedsl",
        "trunnion_tilelang",
        "trunnion_fastcall",
    } <= names
    assert isinstance(next(python_files()), Module)
