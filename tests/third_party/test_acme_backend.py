"""The sample backend of the manual, installed as a user would install one: found, right, and lawful."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from architecture_rules.imports import plugin_imports
from architecture_rules.source import python_files

from trunnion import examples
from trunnion.testing.laws import catalogue

PROJECT = Path(__file__).resolve().parent / "acme_backend"
_PUBLIC = frozenset({"errors", "model", "contract", "codegen", "launcher", "image", "artifacts", "hookspecs"})

RUN = """
import json, sys, traceback, torch, trunnion
from trunnion import examples, sim

def run(name):
    example = examples.load(name)
    bodies = []
    with simulator.torch_mode(), trunnion.compile(example.program, "acme", target="sm_90a") as program:
        for kernel in program.artifact.manifest.kernels:
            simulator.register_body(kernel.symbol, example.bodies[kernel.name])
            bodies.append(kernel.symbol)
        inputs = example.inputs(torch.Generator().manual_seed(3), "cuda:0")
        got = simulator.call(program, *inputs)
    for symbol in bodies:
        simulator.unregister_body(symbol)
    assert program.backend == "acme"
    assert example.largest_error(got, inputs) <= example.tolerance
    return "right"

simulator, found = sim.start(), {}
for name in sys.argv[1:]:
    try:
        found[name] = run(name)
    except Exception:
        found[name] = traceback.format_exc()
print(json.dumps(found))
"""

NEEDY = ("segment_sum",)
"""The examples that need more than the sample backend declares: an access-policy window."""

REFUSED = """
import sys, trunnion
from trunnion import errors, examples
try:
    trunnion.compile(examples.load(sys.argv[1]).program, "acme", target="sm_90a")
except errors.UnsupportedFeatureError:
    sys.exit(0)
sys.exit("nothing was refused")
"""


SHARES = 3
"""In how many processes its laws are checked, so that they need not wait for each other."""


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """Return a folder with the installed distribution; built with what this environment has, so with no network."""
    folder = tmp_path_factory.mktemp("site")
    options = ["--quiet", "--no-input", "--no-deps", "--no-build-isolation", "--disable-pip-version-check"]
    command = [sys.executable, "-m", "pip", "install", *options, "--target", str(folder), str(PROJECT)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


def python(place, *arguments):
    path = os.pathsep.join([str(place), *(entry for entry in sys.path if entry)])
    command = [sys.executable, "-W", "error", *arguments]
    done = subprocess.run(
        command,
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": path},
        timeout=1800,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_it_is_found_by_its_entry_point(place):
    code = (
        "import json, sys; from trunnion.registry import default_registry\n"
        "names = default_registry().names()\n"
        "assert 'trunnion_acme' not in sys.modules, 'listing imports nothing'\n"
        "(info,) = (i for i in default_registry().plugins() if i.name == 'acme')\n"
        "light = not {'torch', 'trunnion_acme.driver'} & set(sys.modules)\n"
        "print(json.dumps(['acme' in names, info.distribution, light]))"
    )
    assert json.loads(python(place, "-c", code)) == [True, "trunnion-acme", True]


ABLE = sorted(set(examples.EXAMPLES) - {*NEEDY, "linked"})


@pytest.fixture(scope="module")
def numbers(place):
    """Return what became of each example, one after the other in one fresh process."""
    return json.loads(python(place, "-c", RUN, *ABLE))


@pytest.mark.parametrize("name", ABLE)
def test_it_gives_right_numbers(numbers, name):
    assert numbers[name] == "right"


@pytest.mark.parametrize("name", NEEDY)
def test_it_refuses_what_it_does_not_declare(place, name):
    python(place, "-c", REFUSED, name)


@pytest.mark.parametrize("share", range(SHARES))
def test_it_holds_every_law(place, tmp_path, share):
    bodies = [law.body.__module__ for law in catalogue().laws.values()]
    modules = sorted(set(bodies))[share::SHARES]
    options = ["-q", "-p", "no:cacheprovider", "-c", os.devnull, "--rootdir", str(tmp_path)]
    said = python(place, "-m", "pytest", *options, "--pyargs", *modules, "--trunnion-backend", "acme")
    assert f"{sum(body in modules for body in bodies)} passed" in said


def test_it_imports_only_what_core_offers_to_plugins():
    modules = [module for module in python_files() if module.name.partition(".")[0] == "trunnion_acme"]
    assert len(modules) == len(list(PROJECT.rglob("src/trunnion_acme/*.py")))
    assert not [line for module in modules for line in plugin_imports(module, _PUBLIC)]
