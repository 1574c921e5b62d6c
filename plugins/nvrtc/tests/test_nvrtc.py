"""NVRTC's own edge: what is missing, what does not match, what goes wrong."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from importlib import metadata
from types import SimpleNamespace

import pytest

from trunnion.errors import BackendUnavailableError, DriverError
from trunnion_nvrtc import nvrtc


def test_bindings_and_library_are_of_one_major_version() -> None:
    assert metadata.version("cuda-bindings").split(".")[0] == str(nvrtc.version()[0])


def test_supported_archs() -> None:
    archs = nvrtc.supported_archs()
    assert archs == tuple(sorted(archs))
    assert {80, 90, 100} <= set(archs)


def test_the_build_is_named_exactly() -> None:
    version, build = nvrtc.build_id().split()
    assert version.split(".")[:2] == [str(number) for number in nvrtc.version()]
    assert len(version.split(".")) == 3
    assert build.startswith("CL-")


def test_a_failure_names_call_code_and_meaning() -> None:
    with pytest.raises(DriverError) as caught, nvrtc.open_program(b"", b"k.cu", ()) as program:
        program.lowered_name(b"k")
    error = caught.value
    assert error.call == "nvrtcGetLoweredName"
    assert error.code_name == "NVRTC_ERROR_NO_LOWERED_NAMES_BEFORE_COMPILATION"
    assert error.code == 9
    assert error.explanation


def test_missing_builtins_are_explained(monkeypatch: pytest.MonkeyPatch) -> None:
    bindings = nvrtc._bindings()
    status = bindings.nvrtcResult.NVRTC_ERROR_BUILTIN_OPERATION_FAILURE
    monkeypatch.setattr(bindings, "nvrtcCompileProgram", lambda *_: (status,))
    with (
        pytest.raises(DriverError, match="libnvrtc-builtins") as caught,
        nvrtc.open_program(b"", b"k.cu", ()) as program,
    ):
        program.compile([])
    assert caught.value.code_name == "NVRTC_ERROR_BUILTIN_OPERATION_FAILURE"


@pytest.mark.parametrize(("version", "status"), [((12, 9), 0), ((14, 0), 0), ((13, 0), 4)])
def test_another_major_version_is_refused(
    monkeypatch: pytest.MonkeyPatch, version: tuple[int, int], status: int
) -> None:
    modules = {
        "cuda.bindings": SimpleNamespace(__version__="13.3.1"),
        "cuda.bindings.nvrtc": SimpleNamespace(nvrtcVersion=lambda: (status, *version)),
    }
    monkeypatch.setattr(nvrtc, "importlib", SimpleNamespace(import_module=modules.__getitem__))
    with pytest.raises(BackendUnavailableError) as caught:
        nvrtc._bindings.__wrapped__()
    assert "pip install 'nvidia-cuda-nvrtc==13.*'" in caught.value.reason


HIDDEN_LIBRARY = """
    import cuda.pathfinder

    def hidden(name):
        raise cuda.pathfinder.DynamicLibNotFoundError("no such file: lib" + name)

    cuda.pathfinder.load_nvidia_dynamic_lib = hidden
"""

HIDDEN_BINDINGS = """
    import sys
    sys.modules["cuda.bindings"] = None
"""

COMPILE = """
    from trunnion.contract.compiler import CompileRequest
    from trunnion.contract.spec import Target
    from trunnion.errors import BackendUnavailableError
    from trunnion.model.program import DeviceCode
    from trunnion_nvrtc.compiler import NvrtcCompiler
    from trunnion_nvrtc.hooks import trunnion_register_compilers

    (spec,) = trunnion_register_compilers()
    spec.probe()
    code = DeviceCode("cuda", "__global__ void k() {}")
    request = CompileRequest(code=(code,), kernels=(), target=Target("cuda", "sm_90a"))
    for ask in (
        lambda: NvrtcCompiler().compile(request),
        NvrtcCompiler().fingerprint,
    ):
        try:
            ask()
        except BackendUnavailableError as error:
            print(error.name, error.distribution, error.reason)
"""


def run(*parts: str) -> list[str]:
    done = subprocess.run(
        [sys.executable, "-c", "".join(textwrap.dedent(part) for part in parts)],
        capture_output=True,
        text=True,
        check=True,
        env={"PYTHONPATH": os.pathsep.join(sys.path)},
    )
    return done.stdout.splitlines()


def test_without_the_library_it_says_what_to_install() -> None:
    lines = run(HIDDEN_LIBRARY, COMPILE)
    assert len(lines) == 2
    for line in lines:
        assert line.startswith("nvrtc trunnion-nvrtc libnvrtc.so.13 is not found")
        assert "pip install 'nvidia-cuda-nvrtc==13.*'" in line


def test_without_the_bindings_it_says_what_to_install() -> None:
    lines = run(HIDDEN_BINDINGS, COMPILE)
    assert len(lines) == 2
    for line in lines:
        assert "pip install 'cuda-bindings" in line
