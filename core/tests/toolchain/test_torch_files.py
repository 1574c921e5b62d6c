"""torch's headers and library, found without importing torch."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from trunnion.errors import BackendUnavailableError
from trunnion.toolchain import torch_files
from trunnion.toolchain.torch_files import find_torch_files, refuse_torch_without_operators


def test_they_are_found_without_importing_torch():
    source = """
import sys
from trunnion.toolchain.torch_files import find_torch_files
found = find_torch_files()
assert "torch" not in sys.modules
print(found.folder, found.library, sep="\\n")
"""
    done = subprocess.run([sys.executable, "-c", source], capture_output=True, text=True, check=True)
    folder, library = done.stdout.split()
    assert Path(folder, "torch", "csrc", "stable", "library.h").is_file()
    assert Path(library).name == "libtorch_cpu.so"
    found = find_torch_files()  # as where torch is imported
    assert (found.folder, found.library) == (folder, library)


@pytest.mark.parametrize(
    ("version", "said"),
    [
        (None, "it is not installed"),
        ("2.10.1+cu130", r"2\.10\.1\+cu130 is installed, operators need 2\.11 or later"),
    ],
)
def test_a_torch_that_is_too_old_or_not_there_is_refused(monkeypatch, version, said):
    monkeypatch.setattr(torch_files, "installed_torch", lambda: version)
    for asked in (find_torch_files, refuse_torch_without_operators):
        with pytest.raises(BackendUnavailableError, match=said):
            asked()


def test_a_torch_without_headers_is_refused(monkeypatch, tmp_path):
    class Torch:
        __file__ = str(tmp_path / "__init__.py")
        __version__ = "2.13.0"

    monkeypatch.setitem(sys.modules, "torch", Torch())
    with pytest.raises(BackendUnavailableError, match="install torch from a wheel"):
        find_torch_files()
