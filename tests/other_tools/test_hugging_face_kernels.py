"""Hugging Face's kernels loads a folder that was exported, in a process that finds no trunnion."""

from __future__ import annotations

import importlib.metadata
import os
import subprocess
import sys
import sysconfig
from typing import TYPE_CHECKING

import pytest

import trunnion
from trunnion import examples

if TYPE_CHECKING:
    from pathlib import Path

ALONE = """
import importlib.util, sys
from pathlib import Path
import torch
import kernels
assert importlib.util.find_spec("trunnion") is None
place = Path(sys.argv[1])
"""

ON_CPU = """
kernel = kernels.get_local_kernel(place)
x, y = torch.arange(5.0), torch.ones(5)
assert kernel.axpy(2.0, x, y).tolist() == (2 * x + y).tolist()
out = torch.empty(5)
assert kernel.axpy(2.0, x, y, out=out) is out and out.tolist() == (2 * x + y).tolist()
assert kernels.has_kernel("me/my-kernels", version=3)
assert kernels.get_kernel("me/my-kernels", version=3).axpy(2.0, x, y).tolist() == out.tolist()
(loaded,) = kernels.get_loaded_kernels()
assert (str(loaded.metadata.name), loaded.metadata.version, loaded.metadata.license) == ("my-kernels", 3, "mit")
assert loaded.metadata.python_depends == ["tvm-ffi"]
from kernels._rust import Digest, DigestAlgorithm
(variant,) = (place / "build").iterdir()
loaded.metadata.digest.validate(Digest.hash_variant(DigestAlgorithm.SHA256, variant))
torch.version.cuda = "13.0"
assert not kernels.has_kernel("me/my-kernels", version=3), "there is none for CUDA"
"""

ON_CUDA = """
assert not kernels.has_kernel("me/my-kernels", version=3), "there is none for the CPU"
torch.version.cuda = "12.8"
assert not kernels.has_kernel("me/my-kernels", version=3), "it is for a later CUDA"
torch.version.cuda = "13.4"  # all that a build of torch for CUDA says before there is a driver
assert kernels.has_kernel("me/my-kernels", version=3)
kernel = kernels.get_local_kernel(place)
(loaded,) = kernels.get_loaded_kernels()
assert loaded.metadata.backend.archs == ["9.0a"]
try:
    kernel.add(torch.ones(8), torch.ones(8))
except RuntimeError as error:
    assert "libcuda.so.1" in str(error), error
else:
    raise AssertionError
"""


@pytest.mark.parametrize(
    ("example", "name", "target", "text"),
    [("cpu_axpy", "axpy", "cpu", ON_CPU), ("vector_add", "add", "sm_90a", ON_CUDA)],
)
def test_it_is_found_loaded_and_called(
    tmp_path: Path, example: str, name: str, target: str, text: str
) -> None:
    program = trunnion.compile(examples.load(example).program, "tvm_ffi", target=target)
    trunnion.write_bundle(tmp_path / "kernels.trn", {name: program})
    place = trunnion.export_kernels(
        trunnion.Bundle.open(tmp_path / "kernels.trn"),
        tmp_path / "out",
        name="my-kernels",
        version=3,
        license_id="mit",
    )
    packages = [
        str(importlib.metadata.distribution("kernels").locate_file("")),
        *{sysconfig.get_path("purelib"), sysconfig.get_path("platlib")},
    ]
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(packages),
        "HF_HUB_OFFLINE": "1",
        "HF_HUB_DISABLE_TELEMETRY": "1",
        "HF_HOME": str(tmp_path / "cache"),
        "LOCAL_KERNELS": f"me/my-kernels={place}",
        "PATH": "",
    }
    # Without `-S`, what is installed to be edited would be found: trunnion.
    command = [sys.executable, "-S", "-c", ALONE + text, str(place)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
