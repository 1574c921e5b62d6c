from __future__ import annotations

import subprocess
import sys
from importlib import import_module

import pytest

import trunnion


def test_every_public_name_resolves() -> None:
    for name in trunnion.__all__:
        assert getattr(trunnion, name) is not None


def test_the_public_names_are_sorted_and_have_a_home() -> None:
    assert trunnion.__all__ == sorted(trunnion.__all__)
    assert set(trunnion.__all__) - {"__version__"} == set(trunnion._HOME_OF)


def test_a_public_name_is_its_home_s_own() -> None:
    for name, home in trunnion._HOME_OF.items():
        assert getattr(trunnion, name) is getattr(import_module(home), name)
        assert name in import_module(home).__all__


def test_dir_lists_the_public_names() -> None:
    assert set(trunnion.__all__) <= set(dir(trunnion))


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'nonesuch'"):
        _ = trunnion.nonesuch


@pytest.mark.parametrize("part", ["errors", "examples", "sim"])
def test_the_parts_that_messages_name_are_attributes_of_the_package_alone(part: str) -> None:
    """Messages and docs say ``trunnion.sim.start()`` and ``except trunnion.errors.X``."""
    assert part in dir(trunnion)
    script = f"import trunnion; print(trunnion.{part}.__name__)"
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert (run.stdout.strip(), run.stderr) == (f"trunnion.{part}", "")


HEAVY = (
    "torch",
    "cuda",
    "tvm_ffi",
    "cutlass",
    "numpy",
    "trunnion_nvrtc",
    "trunnion_tvm_ffi",
    "trunnion_cutedsl",
)


@pytest.mark.parametrize(
    "statement",
    [
        "import trunnion",
        "from trunnion import ProgramBuilder, DeviceCode, symbols",
        "from trunnion import compile, load, explain",
        "from trunnion.examples import load; load('vector_add'); load('hopper_gemm')",
        "import trunnion.codegen.python.emitter, trunnion.launcher.program",
    ],
)
def test_importing_is_light(statement: str) -> None:
    script = f"import sys\n{statement}\nprint(*sorted({HEAVY!r} & sys.modules.keys()))"
    script = script.replace(repr(HEAVY), f"set({HEAVY!r})")
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == ""


def test_importing_the_package_imports_none_of_its_parts() -> None:
    script = "import sys, trunnion; print(*sorted(m for m in sys.modules if m.startswith('trunnion.')))"
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == ""
