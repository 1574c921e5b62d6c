"""What is built lies in two parts, launcher and image, and is taken up again from them alone."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace

import pytest
import torch
import tvm_ffi

import trunnion
from trunnion import examples
from trunnion.artifacts.artifact import Artifact
from trunnion.artifacts.manifest import FileRecord
from trunnion.contract.compiler import DeviceImage
from trunnion.errors import ArtifactError, CorruptArtifactError, ProgramError
from trunnion.image.cubin import read_cubin
from trunnion.registry import default_registry
from trunnion.testing.machine import synthetic_image
from trunnion.testing.symbols import kernel_symbol
from trunnion_cutedsl.backend.adapter import CuteDslAdapter

pytestmark = pytest.mark.tvm_ffi_abi

EXAMPLE = examples.load("vector_add")
SPEC = default_registry().backend("cutedsl")


@pytest.fixture(scope="module")
def artifact():
    """Return vector_add, compiled from CUDA C++."""
    return trunnion.compile(EXAMPLE.program, "cutedsl", target="sm_90a").artifact


@pytest.fixture
def source():
    """Return the launcher's text."""
    return SPEC.load_wrapper()(SPEC).wrap(EXAMPLE.program.plan())


def test_the_image_is_a_file_of_its_own_and_not_in_the_launcher(artifact):
    assert {"image.cubin", "launcher.cc", "launcher.so", "call.json"} <= set(artifact.files)
    image = artifact.files["image.cubin"]
    (kernel,) = read_cubin(image).kernels
    (named,) = artifact.manifest.kernels
    assert named.symbol == kernel.name
    assert image not in artifact.files["launcher.so"]
    assert read_cubin(image).arch == "sm_90a"


def test_one_launcher_serves_every_image_of_a_plan(artifact, source, tmp_path):
    image = synthetic_image(EXAMPLE.program)
    assert image.data != artifact.files["image.cubin"]
    other = CuteDslAdapter(SPEC).build(source, image, tmp_path)
    assert other.files["launcher.so"] == artifact.files["launcher.so"]
    assert other.files["image.cubin"] == image.data
    assert other.manifest.kernels[0].symbol == kernel_symbol(0)


@pytest.mark.parametrize("kind", ["cubin", "ptx"])
def test_it_runs_from_its_folder_where_there_is_no_compiler(simulator, tmp_path, monkeypatch, kind):
    target = {"cubin": "sm_90a", "ptx": "compute_90"}[kind]
    trunnion.compile(EXAMPLE.program, "cutedsl", target=target).artifact.save(tmp_path / "artifact")
    monkeypatch.setenv("PATH", "")
    monkeypatch.setenv("CXX", "none")
    simulator.register_body("vector_add", EXAMPLE.bodies["vector_add"])
    with trunnion.load(tmp_path / "artifact") as program, simulator.torch_mode():
        assert program.image(kind)
        a = torch.ones(10, device="cuda")
        assert program(a, a).tolist() == [2] * 10


def without(artifact: Artifact, name: str) -> Artifact:
    files = {file: data for file, data in artifact.files.items() if file != name}
    records = {file: FileRecord.of(data) for file, data in files.items()}
    return Artifact(replace(artifact.manifest, files=records), files)


@pytest.mark.parametrize("name", ["image.cubin", "launcher.so", "call.json"])
def test_an_artifact_that_lacks_a_part_is_corrupt(simulator, artifact, name):
    with pytest.raises(CorruptArtifactError, match=name.partition(".")[0]):
        CuteDslAdapter(SPEC).load(without(artifact, name), simulator.runtime)


def test_an_artifact_with_two_images_says_not_which(simulator, artifact):
    with pytest.raises(CorruptArtifactError, match=r"one of image\.cubin or image\.ptx"):
        CuteDslAdapter(SPEC).load(artifact.including("image.ptx", b"//"), simulator.runtime)


def test_a_kernel_whose_name_no_launcher_can_take_is_refused_by_the_build(source, tmp_path):
    image = synthetic_image(EXAMPLE.program)
    (kernel,) = image.kernels
    broken = DeviceImage(
        kind="cubin", data=image.data, target=image.target, kernels=(replace(kernel, symbol="a\0b"),)
    )
    with pytest.raises(ProgramError, match="holds no zero byte"):
        CuteDslAdapter(SPEC).build(source, broken, tmp_path)


def test_anybody_can_load_both_parts(artifact, tmp_path, simulator):
    """In a Python that cannot import trunnion; there is no driver in it, and it says so."""
    artifact.save(tmp_path / "artifact")
    (kernel,) = artifact.manifest.kernels
    code = f"""
import pathlib, sys
sys.modules["trunnion"] = None
import tvm_ffi
folder = pathlib.Path({str(tmp_path / "artifact")!r})
launcher = tvm_ffi.load_module(folder / "launcher.so")
try:
    launcher.load((folder / "image.cubin").read_bytes(), {kernel.symbol.encode()!r} + b"\\0")
except RuntimeError as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("needs a CUDA driver (libcuda.so.1), got none")
    here = tvm_ffi.load_module(tmp_path / "artifact" / "launcher.so")
    here.load(artifact.files["image.cubin"], kernel.symbol.encode() + b"\0")
    here.preload(0)
    here.close()


def test_a_program_that_the_launcher_was_not_made_from_is_told_when_it_is_asked_for(artifact):
    other = artifact.including("program.json", examples.load("hopper_gemm").program.to_json().encode())
    loaded = trunnion.load(other)
    for ask in (lambda: loaded.plan, lambda: loaded.host_source):
        with pytest.raises(CorruptArtifactError, match="not the program that the launcher was built from"):
            ask()
    broken = trunnion.load(artifact.including("program.json", b"{}"))
    with pytest.raises(CorruptArtifactError, match="is not a program"):
        _ = broken.program


def test_an_artifact_of_another_version_is_refused_when_it_is_loaded(artifact):
    older = Artifact(replace(artifact.manifest, emitter="cpp/0"), artifact.files)
    with pytest.raises(ArtifactError, match=r"it was built by cpp/0, contract 3; this is cpp/"):
        trunnion.load(older)


def test_a_text_beside_the_launcher_that_is_not_its_own_is_told_when_it_is_asked_for(artifact):
    edited = trunnion.load(artifact.including("launcher.cc", b"// edited\n"))
    with pytest.raises(CorruptArtifactError, match="is not what this version writes"):
        _ = edited.host_source
