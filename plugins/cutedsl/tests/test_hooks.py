from __future__ import annotations

import subprocess
import sys
import textwrap
from importlib.metadata import EntryPoint

from trunnion.codegen.cpp.wrapper import CppWrapper
from trunnion.contract.spec import Capability
from trunnion.registry import Registry, default_registry
from trunnion_cutedsl.adapter import CuteDslAdapter
from trunnion_cutedsl.availability import probe_backend

POINT = EntryPoint("cutedsl", "trunnion_cutedsl.hooks", "trunnion")


def test_the_registry_takes_what_is_announced() -> None:
    registry = Registry([POINT])
    backend = registry.backend("cutedsl")
    assert registry.unavailable() == ()
    assert backend.targets == {"cuda": frozenset(Capability)}
    assert backend.accepts == ("cubin", "ptx")
    assert backend.load_wrapper() is CppWrapper
    assert backend.load_adapter() is CuteDslAdapter
    assert backend.probe is probe_backend
    assert backend.diagnose is not None
    assert {one.name for one in backend.diagnose().components} >= {
        "apache-tvm-ffi",
        "host compiler",
        "cuda.h",
    }


def test_it_is_found_where_it_is_installed() -> None:
    assert default_registry().backend("cutedsl").summary == Registry([POINT]).backend("cutedsl").summary


def test_discovery_and_probes_import_nothing_heavy() -> None:
    code = """
        import sys
        from importlib.metadata import EntryPoint
        from trunnion.registry import Registry
        (info,) = Registry([EntryPoint("cutedsl", "trunnion_cutedsl.hooks", "trunnion")]).plugins()
        assert info.failure is None, info.failure
        assert info.backend_availability
        heavy = {"cuda", "torch", "tvm_ffi", "numpy", "cutlass", "trunnion_cutedsl.adapter"}
        print(sorted(heavy & set(sys.modules)))
        with open("/proc/self/maps") as maps:
            text = maps.read()
        print([name for name in ("libcuda", "libtvm_ffi") if name in text])
    """
    command = [sys.executable, "-c", textwrap.dedent(code)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n[]\n"
