from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from importlib.metadata import EntryPoint

from trunnion.contract.spec import Capability
from trunnion.registry import Registry
from trunnion_nvrtc.compiler import NvrtcCompiler

POINT = EntryPoint("nvrtc", "trunnion_nvrtc.hooks", "trunnion")


def test_the_registry_takes_what_is_announced() -> None:
    registry = Registry([POINT])
    backend, compiler = registry.backend("nvrtc"), registry.compiler("nvrtc")
    assert registry.unavailable() == ()
    assert backend.targets == {"cuda": frozenset(Capability)}
    assert compiler.produces == ("cubin", "ptx")
    assert backend.accepts == compiler.produces
    assert (compiler.languages, compiler.targets) == (("cuda", "ptx", "cubin"), ("cuda",))
    assert compiler.load_compiler() is NvrtcCompiler


def test_discovery_and_probes_import_no_cuda() -> None:
    code = """
        import sys
        from importlib.metadata import EntryPoint
        from trunnion.registry import Registry
        (info,) = Registry([EntryPoint("nvrtc", "trunnion_nvrtc.hooks", "trunnion")]).plugins()
        assert info.failure is None, info.failure
        assert info.backend_availability and info.compiler_availability
        heavy = {"cuda", "cuda.bindings", "torch", "trunnion_nvrtc.nvrtc", "trunnion_nvrtc.compiler"}
        print(sorted(heavy & set(sys.modules)))
        with open("/proc/self/maps") as maps:
            print(any(name in maps.read() for name in ("libcuda", "libnvrtc")))
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)],
        capture_output=True,
        text=True,
        check=True,
        env={"PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert done.stdout.split("\n")[:2] == ["[]", "False"]
