"""How launchers come into a process."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from trunnion.model.builder import ProgramBuilder
from trunnion.model.program import DeviceCode

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.tvm_ffi_abi

SCRIPT = """
import sys
sys.path[:0] = {path!r}
from pathlib import Path
from trunnion.codegen.cpp.loader import load_library
function = load_library(Path({library!r}).read_bytes(), "test")
print([function(name).release_gil for name in ("main", "main_out", "bind", "bind_out", "load", "preload", "close")])
"""


def test_no_function_holds_python_s_lock_whatever_the_default_is(built: Any, tmp_path: Path) -> None:
    """Who waits for other threads' launches must let them return."""
    p = ProgramBuilder("p", DeviceCode("cuda", "//"))
    p.launch("k", (), 1, 32)
    library = tmp_path / "launcher.so"
    library.write_bytes(built(p.build()))
    script = SCRIPT.format(path=sys.path, library=str(library))
    environment = {**os.environ, "TVM_FFI_RELEASE_GIL_BY_DEFAULT": "0"}
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False, env=environment
    )
    assert (done.stdout, done.stderr) == (f"{[True] * 7}\n", "")
