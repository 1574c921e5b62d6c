from __future__ import annotations

from importlib.metadata import EntryPoint

from trunnion.codegen.cpp.wrapper import CppWrapper
from trunnion.contract.spec import Capability
from trunnion.registry import Registry, default_registry
from trunnion_tvm_ffi.availability import probe_backend
from trunnion_tvm_ffi.backend.adapter import TvmFfiAdapter

POINT = EntryPoint("tvm_ffi", "trunnion_tvm_ffi.hooks", "trunnion")


def test_the_registry_takes_what_is_announced() -> None:
    registry = Registry([POINT])
    backend = registry.backend("tvm_ffi")
    assert registry.unavailable() == ()
    assert backend.targets["cuda"] == frozenset(Capability)
    assert backend.accepts[:2] == ("cubin", "ptx")
    assert backend.load_wrapper() is CppWrapper
    assert backend.load_adapter() is TvmFfiAdapter
    assert backend.probe is probe_backend
    assert backend.diagnose is not None
    assert {one.name for one in backend.diagnose().components} >= {
        "apache-tvm-ffi",
        "host compiler",
        "cuda.h",
    }


def test_it_is_found_where_it_is_installed() -> None:
    assert default_registry().backend("tvm_ffi").summary == Registry([POINT]).backend("tvm_ffi").summary


def test_discovery_and_probes_import_nothing_heavy(loaded_by_discovery) -> None:
    loaded = loaded_by_discovery(POINT.name, POINT.value)
    assert POINT.value in loaded
    assert not {
        "cuda",
        "torch",
        "tvm_ffi",
        "numpy",
        "trunnion_tvm_ffi.backend.adapter",
        "trunnion_tvm_ffi.diagnosis",
    } & {*loaded}
    assert not [path for path in loaded for library in ("libcuda", "libtvm_ffi") if library in path]
