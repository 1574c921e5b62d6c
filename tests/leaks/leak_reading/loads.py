"""What a process has, before and after many programs were loaded, called and closed."""

from __future__ import annotations

import gc
import importlib
import json
import os
import sys
import tempfile
from dataclasses import asdict, astuple, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import torch
from leak_reading.processes import children

import trunnion
from trunnion import sim
from trunnion.artifacts.artifact import Artifact
from trunnion.artifacts.manifest import FileRecord
from trunnion.errors import LifecycleError
from trunnion.model.builder import ProgramBuilder
from trunnion.model.code import DeviceCode
from trunnion.model.expr import Symbol
from trunnion.registry import default_registry
from trunnion.testing.harness import Harness
from trunnion.testing.machine import SimulatedMachine
from trunnion.torch_runtime import default_runtime

if TYPE_CHECKING:
    from collections.abc import Callable

    from trunnion.contract.adapter import LoadedProgram
    from trunnion.contract.spec import BackendSpec
    from trunnion.model.program import KernelProgram
    from trunnion.sim.simulator import Simulator

FEW_MAPPINGS = (
    16  # those of Python's and the C library's own heaps come and go; 40 loads that leave one each have more
)
SAMPLE = Path(__file__).resolve().parents[2] / "third_party" / "acme_backend" / "src"

KERNEL = """#include <trunnion/block.h>
extern "C" void k(const float* a, float* out, int s, const trunnion_block_t*) { out[0] = a[0] + s; }
"""

HEAP = 1 << 19  # what the C library keeps for later, however many loads there were


@dataclass(frozen=True)
class Process:
    """What this process has."""

    resident: int
    """Bytes."""

    mappings: int
    descriptors: int
    temporary_files: int
    children: int

    @classmethod
    def now(cls) -> Process:
        gc.collect()
        pages = int(Path("/proc/self/statm").read_text("ascii").split()[1])
        return cls(
            resident=pages * os.sysconf("SC_PAGE_SIZE"),
            mappings=Path("/proc/self/maps").read_bytes().count(b"\n"),
            descriptors=len(list(Path("/proc/self/fd").iterdir())),
            temporary_files=len(list(Path(tempfile.gettempdir()).iterdir())),
            children=len(children()),
        )

    def __sub__(self, other: Process) -> Process:
        return Process(*(new - old for new, old in zip(astuple(self), astuple(other), strict=True)))


def adding(target: str = "cuda") -> KernelProgram:
    """Return a program whose calls allocate, fill and launch."""
    code = DeviceCode("c++", KERNEL) if target == "cpu" else DeviceCode("cuda", "//")
    builder = ProgramBuilder("p", code)
    n = Symbol("n")
    a, out = builder.input("a", "float32", (n,)), builder.output("out", "float32", (n,), fill=0.5)
    builder.launch("k", (a, out, builder.scalar("s", "int32")), 1, 1)
    return builder.build()


def distinct(artifact: Artifact, number: int) -> Artifact:
    """Return an artifact of other bytes: as distinct as another program's to whoever loads, with no compiler asked.

    A Python launcher has another comment. A library has other bytes behind its last section: another digest, another
    file, and so code and data of its own in memory, as every library that is loaded; only what they say is the same.
    """
    tails = {".so": number.to_bytes(8, "little"), ".py": f"# {number}\n".encode()}
    files = {name: data + tails.get(Path(name).suffix, b"") for name, data in artifact.files.items()}
    assert files != dict(artifact.files)
    records = {name: FileRecord.of(data) for name, data in files.items()}
    return Artifact(replace(artifact.manifest, files=records), files)


def load_and_close(
    load: Callable[[Artifact], LoadedProgram], artifact: Artifact, tensor: torch.Tensor
) -> None:
    """Take every way into a program that may leave something of it."""
    program = load(artifact)
    program.preload(0)
    entry = program.entry
    kept = entry(tensor, 7), program.call([tensor, 7]), program.bind([tensor, 7])()
    bound = program.bind([tensor, 7])
    program.close()
    with pytest.raises(LifecycleError):
        entry(tensor, 7)
    del bound, kept


def backends() -> dict[str, BackendSpec]:
    """Return the installed backends, and the sample one of the manual, by name."""
    if str(SAMPLE) not in sys.path:
        sys.path.append(str(SAMPLE))
    sample = importlib.import_module("trunnion_acme.hooks").SPEC
    return {spec.name: spec for spec in (*default_registry().backends(), sample)}


def subjects() -> list[str]:
    """Return every backend with each kind of device that it has."""
    return sorted(f"{name}-{target}" for name, spec in backends().items() for target in spec.targets)


def loading(
    simulator: Simulator, name: str
) -> tuple[Callable[[Artifact], LoadedProgram], Artifact, torch.Tensor]:
    """Return what loads an artifact of a subject, an artifact of it, and a tensor for its calls."""
    backend, target = name.split("-")
    spec = backends()[backend]
    if target == "cpu":
        adapter, runtime = spec.load_adapter()(spec), default_runtime("cpu")
        artifact = trunnion.compile(adding("cpu"), backend, target="cpu").artifact
        return lambda given: adapter.load(given, runtime), artifact, torch.ones(4)
    harness = Harness(spec=spec, machine=SimulatedMachine(simulator))

    def load(artifact: Artifact) -> LoadedProgram:
        simulator.clear_trace()
        return harness.load(artifact)

    return load, harness.build(adding()), simulator.tensor(torch.ones(4))


def growth(simulator: Simulator, name: str, count: int, warm_up: int, folder: Path) -> Process:
    """Return what so many loads of distinct bytes leave behind, once as many as ``warm_up`` have.

    Parameters
    ----------
    simulator
        The simulator.
    name
        One of `subjects`.
    count
        How many are loaded.
    warm_up
        How many are loaded before.
    folder
        An empty one, where their temporary files lie meanwhile: the system's has those of others.
    """
    load, artifact, tensor = loading(simulator, name)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tempfile, "tempdir", str(folder))
        for number in range(warm_up):
            load_and_close(load, distinct(artifact, number), tensor)
        before = Process.now()
        for number in range(warm_up, warm_up + count):
            load_and_close(load, distinct(artifact, number), tensor)
        return Process.now() - before


def assert_nothing(left: Process, loads: int) -> None:
    """Require that nothing stays of a load but what the heaps do; a quarter of a page is less than any object's."""
    assert left.mappings <= FEW_MAPPINGS, left
    assert (left.descriptors, left.temporary_files, left.children) == (0, 0, 0), left
    assert left.resident <= HEAP + loads * 1024, left


def main(name: str, count: str, warm_up: str, folder: str) -> None:
    """Print, as JSON, what so many loads leave behind in a process that has done nothing else."""
    left = growth(sim.start(devices=4), name, int(count), int(warm_up), Path(folder))
    sys.stdout.write(json.dumps(asdict(left)))


if __name__ == "__main__":
    main(*sys.argv[1:])
