"""A bundle of every example for two targets, run on a GPU: as it is, as a wheel, as Hugging Face's kernels load it.

``TRUNNION_SHIPPED`` names a folder that ``python tests/gpu/gpu_reading/shipping.py FOLDER`` filled on another machine,
one with the compilers and without a GPU; without it, it is filled here.
"""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest
from gpu_reading.shipping import ship

# What a process has mapped once torch launched something of its own: its libraries link compilers for their own use.
QUIET = """
import re, subprocess, sys
from pathlib import Path
import torch

def compilers():
    maps = Path("/proc/self/maps").read_text()
    return set(re.findall(r"\\S*(?:nvrtc|nvvm|nvJitLink|nvptxcompiler|libcutlass|MLIR)\\S*", maps))

def refuse(*_, **__):
    raise AssertionError("a process was started")

(torch.ones(8, 8, device="cuda") @ torch.ones(8, 8, device="cuda")).cpu()
subprocess.Popen.__init__ = refuse
before = compilers()
"""

LOADED = (
    QUIET
    + """
import trunnion
from gpu_reading.trials import assert_right
from trunnion.cli.exhibits import load_example
ran = 0
with trunnion.load(sys.argv[1]) as bundle:
    for name in bundle:
        example = load_example(name.rpartition(".")[0])
        for seed, make in enumerate((example.inputs, *example.edges)):
            args = make(torch.Generator().manual_seed(seed), "cuda:0")
            assert_right(example, bundle[name](*args), args)
            ran += 1
assert compilers() == before, compilers() - before
print("ran", len(bundle), ran)
"""
)

WHEEL = (
    QUIET
    + """
sys.path.insert(0, sys.argv[1])
import shipped_kernels
x = torch.arange(5000.0, device="cuda")
assert torch.equal(shipped_kernels.vector_add(x, x), x + x)
assert compilers() == before, compilers() - before
print("right")
"""
)

KERNELS = (
    QUIET
    + """
import kernels
kernel = kernels.get_local_kernel(Path(sys.argv[1]))
x = torch.arange(5000.0, device="cuda")
assert torch.equal(kernel.vector_add(x, x), x + x)
out = torch.empty_like(x)
stream = torch.cuda.Stream()
with torch.cuda.stream(stream):
    kernel.vector_add(x, x, out=out)
stream.synchronize()
assert torch.equal(out, x + x)
assert compilers() == before, compilers() - before
print("right")
"""
)


@pytest.fixture(scope="module")
def shipped(tmp_path_factory):
    given = os.environ.get("TRUNNION_SHIPPED")
    return Path(given) if given else ship(tmp_path_factory.mktemp("shipped"))


def test_a_bundle_of_every_example_runs_without_a_compiler(words_without, shipped):
    word, programs, ran = words_without(
        ("cuda.bindings.nvrtc", "cutlass"), QUIET + LOADED, shipped / "examples.trn"
    )
    assert word == "ran"
    assert int(ran) > int(programs) > 30


def test_a_wheel_of_it_is_imported_and_called(words_without, shipped, tmp_path):
    (wheel,) = shipped.glob("shipped_kernels-*.whl")
    subprocess.run([sys.executable, "-m", "zipfile", "-e", wheel, tmp_path], check=True)
    assert words_without(("cuda.bindings.nvrtc", "cutlass"), QUIET + WHEEL, tmp_path) == ["right"]


@pytest.mark.skipif(
    importlib.util.find_spec("kernels") is None, reason="Hugging Face's kernels is not installed"
)
def test_hugging_faces_kernels_loads_it_where_there_is_no_trunnion(words_without, shipped):
    assert words_without(("trunnion",), QUIET + KERNELS, shipped / "shipped-kernels") == ["right"]
