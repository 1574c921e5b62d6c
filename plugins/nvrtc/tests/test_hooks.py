from __future__ import annotations

from importlib.metadata import EntryPoint

from trunnion.contract.spec import Capability
from trunnion.registry import Registry
from trunnion_nvrtc.compiler.compiler import NvrtcCompiler

POINT = EntryPoint("nvrtc", "trunnion_nvrtc.hooks", "trunnion")


def test_the_registry_takes_what_is_announced() -> None:
    registry = Registry([POINT])
    backend, compiler = registry.backend("nvrtc"), registry.compiler("nvrtc")
    assert registry.unavailable() == ()
    assert backend.targets == {"cuda": frozenset(Capability)}
    assert compiler.produces == ("cubin", "ptx")
    assert backend.accepts == compiler.produces
    assert (compiler.languages, compiler.targets) == (("cuda", "ptx", "cubin", "fatbin", "ltoir"), ("cuda",))
    assert compiler.load_compiler() is NvrtcCompiler


def test_discovery_and_probes_import_no_cuda(loaded_by_discovery) -> None:
    loaded = loaded_by_discovery(POINT.name, POINT.value)
    assert POINT.value in loaded
    assert not {
        "cuda",
        "cuda.bindings",
        "torch",
        "trunnion_nvrtc.compiler.nvrtc",
        "trunnion_nvrtc.compiler.compiler",
    } & {*loaded}
    assert not [path for path in loaded for library in ("libcuda", "libnvrtc") if library in path]
