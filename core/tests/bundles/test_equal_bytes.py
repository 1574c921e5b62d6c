"""A bundle is made of what was built, and of nothing of where: its digest is the same wherever it is built."""

from __future__ import annotations

from typing import TYPE_CHECKING

import trunnion
from trunnion.model.builder import ProgramBuilder
from trunnion.model.code import DeviceCode

if TYPE_CHECKING:
    from pathlib import Path

    from trunnion.model.program import KernelProgram

SOURCE = '#include <cuda_fp16.h>\nextern "C" __global__ void k(float* x) { x[0] = 1; }'


def program() -> KernelProgram:
    builder = ProgramBuilder("p", DeviceCode("cuda", SOURCE))
    x = builder.input("x", "float32", (8,), access="write")
    builder.launch("k", (x,), 1, 1)
    return builder.build()


def test_whether_something_was_kept_counts_for_nothing_and_no_path_is_in_it(tmp_path: Path) -> None:
    kept = trunnion.compile(program(), "nvrtc", target="sm_90a", cache=tmp_path / "store").artifact
    alone = trunnion.compile(program(), "nvrtc", target="sm_90a", cache=False).artifact
    assert any("/" in name for name in kept.manifest.key_inputs)  # of headers
    assert not alone.manifest.key_inputs
    indices = [
        trunnion.write_bundle(tmp_path / folder / "kernels.trn", {"k": one})
        for folder, one in (("kept", kept), ("alone", alone))
    ]
    assert indices[0].digest == indices[1].digest
    (header,) = {name for name in kept.manifest.key_inputs if name.endswith("/cuda_fp16.h")}
    place = header.rpartition("/")[0].removeprefix("environment ").encode()
    for file in (tmp_path / "kept").iterdir():
        assert place not in file.read_bytes(), file


def test_what_is_bundled_again_is_the_same(tmp_path: Path) -> None:
    kept = trunnion.compile(program(), "nvrtc", target="sm_90a", cache=tmp_path / "store").artifact
    trunnion.write_bundle(tmp_path / "a.trn", {"k": [kept, kept.unkeyed()]})
    (variant,) = trunnion.Bundle.open(tmp_path / "a.trn").index.programs["k"]
    assert variant.digest == kept.unkeyed().digest
    assert trunnion.Bundle.open(tmp_path / "a.trn").artifact(variant) == kept.unkeyed()
