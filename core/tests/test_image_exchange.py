"""Another image in the place of a built program's own: taken if it fits, and refused by what does not."""

from __future__ import annotations

from dataclasses import replace
from hashlib import sha256
from typing import TYPE_CHECKING, Any

import pytest
import torch

import trunnion
from trunnion import DeviceCode, PrebuiltImage, ProgramBuilder, errors
from trunnion.artifacts.artifact import Artifact
from trunnion.cli.inspect import inspect
from trunnion.contract.compiler import ImageParameter
from trunnion.image import SyntheticKernel, synthetic_cubin
from trunnion.image_exchange import exchange_image

if TYPE_CHECKING:
    from pathlib import Path

    from trunnion.sim.bodies import KernelCall

KERNEL = 'extern "C" __global__ void k(float* x) { x[threadIdx.x] = 1; }'
POINTER = (ImageParameter(0, 0, 8),)


def built(backend: str = "nvrtc") -> trunnion.CompiledProgram:
    builder = ProgramBuilder("ones", DeviceCode("cuda", KERNEL))
    x = builder.input("x", "float32", (8,), access="write")
    builder.launch("k", (x,), 1, 8)
    return trunnion.compile(builder.build(), backend, compiler="nvrtc", target="sm_90a")


@pytest.fixture(scope="module")
def artifact() -> Artifact:
    return built().artifact


def cubin(name: str = "k", arch: str = "sm_90a", **said: Any) -> bytes:
    return synthetic_cubin([SyntheticKernel(name=name, **{"parameters": POINTER} | said)], arch)


def filled(call: KernelCall, value: float) -> None:
    call.memory.view(call.pointer(0), "float32", (8,)).fill_(value)


@pytest.mark.tvm_ffi_abi
@pytest.mark.parametrize("backend", ["nvrtc", "cutedsl"])
def test_what_was_exchanged_is_what_is_launched(backend: str, simulator: Any, tmp_path: Path) -> None:
    built(backend).artifact.save(tmp_path / "built")
    image = PrebuiltImage(cubin("other"), {"k": "other"})
    exchange_image(Artifact.open(tmp_path / "built"), image).save(tmp_path / "exchanged")
    simulator.register_body("k", lambda call: filled(call, 1))
    simulator.register_body("other", lambda call: filled(call, 2))
    for name, value in (("built", 1.0), ("exchanged", 2.0)):
        with trunnion.load(tmp_path / name) as program, simulator.torch_mode():
            x = torch.zeros(8, device="cuda")
            program(x)
            assert x.tolist() == [value] * 8


def test_what_it_is_stays_and_what_no_more_holds_goes(artifact: Artifact, tmp_path: Path) -> None:
    noted = artifact.including("compile.log", b"of the first one").keyed({"a": "b"})
    image = PrebuiltImage(cubin(arch="sm_90"))
    made = exchange_image(noted, image)
    assert made.images == {"cubin": image.data}
    assert set(made.files) == set(artifact.files)
    assert made.files["launcher.py"] == artifact.files["launcher.py"]
    assert (made.manifest.key, dict(made.manifest.key_inputs)) == ("", {})
    assert made.manifest.toolchain["image"].startswith("made elsewhere, SHA-256 ")
    assert made.manifest.target == "cuda:sm_90a"
    assert made.manifest.kernels == artifact.manifest.kernels
    assert made.digest != artifact.digest
    assert exchange_image(made, image) == made
    made.save(tmp_path / "saved")
    assert Artifact.open(tmp_path / "saved") == made
    shown = inspect(str(tmp_path / "saved")).document
    assert [image["sha256"] for image in shown["images"]] == [sha256(image.data).hexdigest()]
    assert shown["manifest"]["toolchain"]["image"] == made.manifest.toolchain["image"]


def test_a_file_that_was_exchanged_by_hand_is_refused(artifact: Artifact, tmp_path: Path) -> None:
    artifact.save(tmp_path / "saved")
    (tmp_path / "saved" / "image.cubin").write_bytes(cubin())
    with pytest.raises(errors.CorruptArtifactError) as caught:
        trunnion.load(tmp_path / "saved")
    assert caught.value.what == "image.cubin"


@pytest.mark.parametrize(
    ("table", "ordinal"),
    [
        ((), -1),
        ((ImageParameter(0, 0, 4),), 0),
        ((ImageParameter(0, 8, 8),), 0),
        ((*POINTER, ImageParameter(1, 8, 4)), -1),
    ],
)
def test_another_table_of_parameters_is_refused(artifact: Artifact, table: Any, ordinal: int) -> None:
    with pytest.raises(errors.ParameterMismatchError) as caught:
        exchange_image(artifact, PrebuiltImage(cubin(parameters=table)))
    assert (caught.value.kernel, caught.value.ordinal) == ("k", ordinal)


@pytest.mark.parametrize(
    ("data", "field", "said"),
    [
        (cubin("other"), "kernels[0].name", "the exact name of a kernel in this cubin ('other')"),
        (cubin("kernel_k_0"), "kernels[0].name", "got 'k'"),
        (cubin(arch="sm_100a"), "code", "does not run on 'cuda:sm_90a'"),
        (cubin(required_threads=(64, 1, 1)), "launches[0].block[0]", "compiled for 64 threads"),
    ],
)
def test_an_image_that_does_not_fit_is_refused(
    artifact: Artifact, data: bytes, field: str, said: str
) -> None:
    with pytest.raises(errors.ProgramError) as caught:
        exchange_image(artifact, PrebuiltImage(data))
    assert caught.value.field == field
    assert said in str(caught.value)


@pytest.mark.parametrize("names", [{"K": "other"}, {"k": "k", "kk": "other"}])
def test_a_name_of_no_kernel_of_the_program_is_refused(artifact: Artifact, names: dict[str, str]) -> None:
    """Else the kernel that has the old name would be launched, and not the one that was meant."""
    kernels = [SyntheticKernel(name=name, parameters=POINTER) for name in ("k", "other")]
    with pytest.raises(errors.UnknownKernelError) as caught:
        exchange_image(artifact, PrebuiltImage(synthetic_cubin(kernels, "sm_90a"), names))
    assert (caught.value.name, caught.value.kernels) == (({*names} - {"k"}).pop(), ("k",))
    assert "did you mean 'k'?" in str(caught.value)


@pytest.mark.tvm_ffi_abi
def test_a_library_that_holds_the_image_is_named() -> None:
    with pytest.raises(errors.ArgumentValueError, match=r"'launcher\.so' holds it too") as caught:
        exchange_image(built("tvm_ffi").artifact, PrebuiltImage(cubin()))
    assert caught.value.argument == "artifact"


def test_without_an_image_nothing_is_exchanged(artifact: Artifact) -> None:
    files = {name: data for name, data in artifact.files.items() if name != "image.cubin"}
    records = {name: artifact.manifest.files[name] for name in files}
    bare = Artifact(replace(artifact.manifest, files=records), files)
    with pytest.raises(errors.ArgumentValueError, match="no image of a GPU"):
        exchange_image(bare, PrebuiltImage(cubin()))


@pytest.mark.parametrize(
    ("other", "problem"),
    [
        ({"plan_hash": "0" * 64}, "not the program that the launcher was built from"),
        ({"kernels": ()}, "its kernels are not those of the program"),
    ],
)
def test_a_program_of_another_plan_is_refused(artifact: Artifact, other: Any, problem: str) -> None:
    with pytest.raises(errors.CorruptArtifactError, match=problem):
        exchange_image(Artifact(replace(artifact.manifest, **other), artifact.files), PrebuiltImage(cubin()))


@pytest.mark.parametrize("given", [None, b"image", "image.cubin"])
def test_other_types_are_refused(artifact: Artifact, given: Any) -> None:
    with pytest.raises(errors.ArgumentTypeError, match="PrebuiltImage"):
        exchange_image(artifact, given)
    with pytest.raises(errors.ArgumentTypeError, match="Artifact"):
        exchange_image(given, PrebuiltImage(cubin()))
