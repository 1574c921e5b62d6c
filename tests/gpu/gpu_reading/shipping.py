"""Every example, built for two targets by every backend, as a bundle, a wheel and a folder of kernels."""

from __future__ import annotations

import contextlib
import sys
from pathlib import Path

import trunnion
from trunnion import examples
from trunnion.cli.exhibits import known_examples, load_example
from trunnion.errors import TrunnionError

__all__ = ["ship"]

BACKENDS = ("nvrtc", "tvm_ffi", "cutedsl")
TARGETS = ("sm_90a", "sm_80")


def ship(folder: Path) -> Path:
    """Fill a folder, and return it.

    Programs are called ``<example>.<backend>``. An example that only the newer target can run is in it for that one.
    """
    built = {}
    for name in known_examples():
        if name not in examples.CPU_EXAMPLES:
            for backend in BACKENDS:
                built[f"{name}.{backend}"] = [*_variants(load_example(name).program, backend)]
    trunnion.write_bundle(folder / "examples.trn", built)
    trunnion.write_bundle(
        folder / "shipped.trn", {"vector_add": [*built["vector_add.tvm_ffi"], *built["vector_add.cutedsl"]]}
    )
    with trunnion.Bundle.open(folder / "shipped.trn") as bundle:
        trunnion.export_wheel(bundle, folder, name="shipped-kernels", version="1.0")
        trunnion.export_kernels(
            bundle, folder / "shipped-kernels", name="shipped-kernels", version=1, license_id="mit"
        )
    return folder


def _variants(program, backend):
    for target in TARGETS:
        with contextlib.suppress(TrunnionError) if target == "sm_80" else contextlib.nullcontext():
            # CuTeDSL's examples are Python that runs when it is compiled; it is ours.
            yield trunnion.compile(program, backend, target=target, trust=True, lazy=False).artifact


if __name__ == "__main__":
    ship(Path(sys.argv[1]))
