"""Where the disassembler is found, and what becomes of one that is not there, cannot be run or fails."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path

import pytest

from trunnion.errors import BackendUnavailableError, DeviceRequirementError
from trunnion.toolchain import binary_utility, search
from trunnion.toolchain.disassembler import NVDISASM, disassembled

IMAGE = b"\x7fELF, for whoever reads it"


@pytest.fixture
def bare(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A machine with neither wheels nor toolkits: those of a test are all that there is."""
    for name in ("CONDA_PREFIX", "CUDA_PATH", "CUDA_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PATH", str(tmp_path / "path"))
    monkeypatch.setattr(search.site, "getsitepackages", lambda: [str(tmp_path / "site")])
    monkeypatch.setattr(search.site, "ENABLE_USER_SITE", False)
    monkeypatch.setattr(binary_utility, "_USUAL", str(tmp_path / "usual"))
    return tmp_path


def tool(folder: Path, text: str = "exit 0", *, mode: int = 0o755) -> str:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "nvdisasm"
    path.write_text(f"#!/bin/sh\nPATH=/usr/bin:/bin\n{text}\n")
    path.chmod(mode)
    return str(path)


def test_the_order_of_the_search(bare: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert NVDISASM.find() is None
    places = [tool(bare / "usual"), tool(bare / "path")]
    for name in ("CUDA_HOME", "CUDA_PATH", "CONDA_PREFIX"):
        monkeypatch.setenv(name, str(bare / name))
        places.append(tool(bare / name / "bin"))
    wheels = ("triton/backends/nvidia", "nvidia/cuda_nvcc", "nvidia/cu13")
    places += [tool(bare / "site" / wheel / "bin") for wheel in wheels]
    for place in reversed(places):
        assert NVDISASM.find() == place
        Path(place).unlink()
    assert NVDISASM.find() is None


@pytest.mark.parametrize("variable", ["CUDA_HOME", "PATH"])
def test_one_that_is_named_from_the_working_directory_is_run(
    bare: Path, monkeypatch: pytest.MonkeyPatch, variable: str
) -> None:
    """It runs in another folder."""
    tool(bare / "kit" / "bin", "echo found")
    monkeypatch.chdir(bare)
    monkeypatch.setenv(variable, {"CUDA_HOME": "kit", "PATH": "kit/bin"}[variable])
    assert disassembled(IMAGE, 3) == "found\n"


@pytest.mark.parametrize("code", [errno.EMFILE, errno.ENOMEM, errno.EAGAIN])
def test_what_this_process_has_run_out_of_is_no_fault_of_the_tool(
    bare: Path, monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    def out_of(*_: object, **__: object) -> None:
        raise OSError(code, os.strerror(code))

    tool(bare / "usual")
    monkeypatch.setattr(binary_utility.subprocess, "run", out_of)
    with pytest.raises(DeviceRequirementError, match=os.strerror(code)):
        disassembled(IMAGE, 3)


def test_a_file_that_nobody_may_run_and_a_folder_are_passed_over(bare: Path) -> None:
    (bare / "site/nvidia/cu13/bin/nvdisasm").mkdir(parents=True)
    if not Path(tool(bare / "site/nvidia/cuda_nvcc/bin", mode=0o644)).stat().st_mode & stat.S_IXUSR:
        assert NVDISASM.find() is None
    assert NVDISASM.find() != tool(bare / "usual", mode=0o644)


def test_without_one_the_error_says_what_to_install(bare: Path) -> None:
    with pytest.raises(BackendUnavailableError, match=NVDISASM.install) as caught:
        disassembled(IMAGE, 3)
    assert caught.value.name == "nvdisasm"


def test_it_is_given_the_image_and_the_symbol_and_its_text_comes_back(bare: Path) -> None:
    tool(bare / "usual", 'echo "$1 $2 $3"; cat "$4"')
    assert disassembled(IMAGE, 3) == "--print-code --cuda-function-index 3\n" + IMAGE.decode()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("echo one >&2; echo 'nvdisasm fatal: \033[31mno sm_999' >&2; exit 1", r"no sm_999"),
        ("exit 3", "status 3"),
        ("kill -9 $$", "status -9"),
    ],
)
def test_one_that_fails_is_told_with_its_last_words(bare: Path, text: str, said: str) -> None:
    path = tool(bare / "usual", text)
    with pytest.raises(BackendUnavailableError, match=said) as caught:
        disassembled(IMAGE, 3)
    assert path in caught.value.reason
    assert "\033" not in str(caught.value)


def test_one_that_cannot_be_run_or_does_not_end_is_told(bare: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = Path(tool(bare / "usual", "exec sleep 60"))
    monkeypatch.setattr(binary_utility, "_SECONDS", 0.2)
    with pytest.raises(BackendUnavailableError, match="did not answer within"):
        disassembled(IMAGE, 3)
    path.write_text("#!/nowhere/at/all\n")
    with pytest.raises(BackendUnavailableError, match="cannot be run"):
        disassembled(IMAGE, 3)
