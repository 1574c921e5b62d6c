"""NVRTC's own edge: what is missing, what does not match, what goes wrong."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import textwrap
from importlib import metadata
from types import SimpleNamespace

import pytest

from trunnion.errors import BackendUnavailableError, ProgramError
from trunnion_nvrtc.compiler import cuda_part, nvrtc
from trunnion_nvrtc.compiler.results import NVRTC_RESULTS


def test_bindings_and_library_are_of_one_major_version() -> None:
    assert metadata.version("cuda-bindings").split(".")[0] == str(nvrtc.version()[0])


def test_supported_archs() -> None:
    archs = nvrtc.supported_archs()
    assert archs == tuple(sorted(archs))
    assert {80, 90, 100} <= set(archs)


def test_every_status_of_the_bindings_has_a_row() -> None:
    theirs = {int(status): status.name for status in nvrtc.bindings().nvrtcResult}
    assert {row.code: row.name for row in NVRTC_RESULTS} == theirs
    for row in NVRTC_RESULTS:
        if row.code < 17:  # the library is older than the bindings
            assert nvrtc.error_string(row.code) == row.name
    with pytest.raises(ProgramError):
        nvrtc.error_string(999)


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
        nvrtc.bindings.__wrapped__()
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
    from trunnion.model.code import DeviceCode
    from trunnion_nvrtc.compiler.compiler import NvrtcCompiler
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
    with (
        tempfile.TemporaryDirectory() as cache
    ):  # what another process remembers of NVRTC's build is not there
        done = subprocess.run(
            [sys.executable, "-c", "".join(textwrap.dedent(part) for part in parts)],
            capture_output=True,
            text=True,
            check=True,
            env={"PYTHONPATH": os.pathsep.join(sys.path), "XDG_CACHE_HOME": cache},
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


def test_a_log_names_the_program_s_files_by_their_names_and_others_by_their_paths() -> None:
    log = '/trunnion/k.cu(1): error in /opt/trunnion/include/mine.h(2), "/trunnion/k.cu"'
    assert cuda_part._without_folder(log) == 'k.cu(1): error in /opt/trunnion/include/mine.h(2), "k.cu"'
