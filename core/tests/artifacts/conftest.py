from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from trunnion.artifacts.artifact import Artifact
from trunnion.artifacts.manifest import FileRecord, Manifest
from trunnion.model.image_table import ImageKernel, ImageParameter

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


def build_artifact(files: Mapping[str, bytes] | None = None, kernel: str = "add<1>") -> Artifact:
    table = (ImageParameter(0, 0, 8), ImageParameter(1, 8, 4))
    files = {"image.cubin": b"\x7fELF", "launcher.py": b"pass\n"} if files is None else files
    manifest = Manifest(
        backend="acme",
        contract_version=3,
        target="cuda:sm_90a",
        plan_hash="f" * 64,
        emitter="python 1",
        kernels=(ImageKernel(kernel, "_Z3add", table),),
        files={name: FileRecord.of(data) for name, data in files.items()},
        toolchain={"nvrtc": "13.0", "acme": "2.0"},
    )
    return Artifact(manifest, files)


@pytest.fixture
def make_artifact() -> Callable[..., Artifact]:
    return build_artifact
