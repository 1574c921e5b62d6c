from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from trunnion.artifacts.artifact import Artifact
from trunnion.contract.compiler import DeviceImage, ImageKernel, ImageParameter
from trunnion.contract.source import GeneratedSource
from trunnion.contract.spec import BackendSpec, Target

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


def build_artifact(files: Mapping[str, bytes] | None = None, kernel: str = "add<1>") -> Artifact:
    def absent() -> type:
        raise NotImplementedError

    spec = BackendSpec(
        name="acme",
        contract_version=2,
        targets={"cuda": frozenset()},
        accepts=("cubin",),
        load_wrapper=absent,
        load_adapter=absent,
    )
    plan: Any = SimpleNamespace(hash="f" * 64)  # the manifest takes nothing else from it
    source = GeneratedSource(
        language="python", filename="launcher.py", text="pass\n", plan=plan, emitter="python 1"
    )
    table = (ImageParameter(0, 0, 8), ImageParameter(1, 8, 4))
    image = DeviceImage(
        kind="cubin",
        data=b"\x7fELF",
        target=Target("cuda", "sm_90a"),
        kernels=(ImageKernel(kernel, "_Z3add", table),),
        toolchain={"nvrtc": "13.0"},
    )
    files = {"image.cubin": image.data, "launcher.py": b"pass\n"} if files is None else files
    return Artifact.create(spec, source, image, files, toolchain={"acme": "2.0"})


@pytest.fixture
def make_artifact() -> Callable[..., Artifact]:
    return build_artifact
