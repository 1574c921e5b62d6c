"""How launchers come into a process, and how they leave it."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import torch

from trunnion.codegen.cpp import loader
from trunnion.codegen.cpp.call_signature import CallSignature
from trunnion.codegen.cpp.loader import process_libraries
from trunnion.codegen.cpp.program import CppProgram
from trunnion.errors import CorruptArtifactError, DeviceRequirementError, DriverError, LifecycleError
from trunnion.model.builder import ProgramBuilder
from trunnion.model.program import DeviceCode
from trunnion.sim.status import Status

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from forked_python.client import ForkedPython

    from trunnion.sim.simulator import Simulator

pytestmark = pytest.mark.tvm_ffi_abi

SCRIPT = """
import sys
sys.path[:0] = {path!r}
from pathlib import Path
from trunnion.codegen.cpp.loader import load_library
function = load_library(Path({library!r}).read_bytes(), "test")
print([function(name).release_gil for name in ("main", "main_out", "bind", "bind_out", "load", "preload", "close")])
"""


def test_no_function_holds_python_s_lock_whatever_the_default_is(
    built: Any, tmp_path: Path, forked_python: ForkedPython
) -> None:
    """Who waits for other threads' launches must let them return."""
    p = ProgramBuilder("p", DeviceCode("cuda", "//"))
    p.launch("k", (), 1, 32)
    library = tmp_path / "launcher.so"
    library.write_bytes(built(p.build()))
    script = SCRIPT.format(path=sys.path, library=str(library))
    done = forked_python(script, env={**os.environ, "TVM_FFI_RELEASE_GIL_BY_DEFAULT": "0"})
    assert (done.stdout, done.stderr) == (f"{[True] * 7}\n", "")


LOADING = """
import os, sys, tempfile
sys.path[:0] = {path!r}
from pathlib import Path
import tvm_ffi
from trunnion.codegen.cpp import loader
load, flags = tvm_ffi.load_module, os.statvfs_result((*[0] * 8, os.ST_NOEXEC, 255))
def refusing(file):
    if not Path(file).is_symlink():
        raise RuntimeError("failed to map segment from shared object")
    return load(file)
os.statvfs, tvm_ffi.load_module = (lambda _: flags), refusing
library = Path({library!r}).read_bytes()
kept = [loader.load_library(data, "test")("main") for data in (library, library + b"another")]
left = list(Path(tempfile.gettempdir()).iterdir())
try:
    loader.load_library(b"no library", "test")
except loader.CorruptArtifactError:
    print(len(kept), "/memfd:launcher.so" in Path("/proc/self/maps").read_text(), len(left))
"""


def test_where_no_code_is_loaded_from_files_it_is_loaded_from_memory(
    built: Any, tmp_path: Path, forked_python: ForkedPython
) -> None:
    """What a folder that is mounted noexec says is said for it here: not everybody may mount one."""
    p = ProgramBuilder("p", DeviceCode("cuda", "//"))
    p.launch("k", (), 1, 32)
    library, folder = tmp_path / "launcher.so", tmp_path / "scratch"
    library.write_bytes(built(p.build()))
    folder.mkdir()
    script = LOADING.format(path=sys.path, library=str(library))
    done = forked_python(script, env={**os.environ, "TMPDIR": str(folder)})
    assert (done.stdout, done.stderr) == ("2 True 0\n", "")


# How long a library stays ---------------------------------------------------------------------------------------


def allocating(alignment: int | None = None) -> Any:
    p = ProgramBuilder("p", DeviceCode("cuda", "//"))
    x, y = p.input("x", "float32", (8,)), p.output("y", "float32", (8,), alignment=alignment)
    p.launch("k", (x, y), 1, 32)
    return p.build()


def is_mapped() -> int:
    """Return how many launchers are mapped into this process."""
    lines = Path("/proc/self/maps").read_text("utf-8").splitlines()
    return sum("launcher.so" in line and " r-xp " in line for line in lines)


@pytest.fixture
def load(simulator: Simulator, built: Any) -> Iterator[Callable[..., CppProgram]]:
    """Load a program with bytes of its own: equal numbers, equal bytes. Whatever is left is closed after the test."""
    made = []
    gc.collect()
    process_libraries().unload()

    def make(number: int = 0, alignment: int | None = None) -> CppProgram:
        program = allocating(alignment)
        data = built(program) + b"test_loader" + number.to_bytes(8, "little")
        made.append(CppProgram(data, CallSignature.of(program.plan()), simulator.runtime, "test"))
        return made[-1]

    with simulator.torch_mode():
        yield make
        for program in made:
            program.close()


@pytest.fixture
def tensor(simulator: Simulator) -> Any:
    return simulator.tensor(torch.ones(8))


def test_a_closed_program_leaves_the_process(load: Any, tensor: Any) -> None:
    before = is_mapped(), len(process_libraries())
    program = load()
    program.call([tensor])
    assert (is_mapped(), len(process_libraries())) == (before[0] + 1, before[1] + 1)
    program.close()
    assert (is_mapped(), len(process_libraries())) == before
    program.close()
    for call in (program.entry, lambda tensor: program.call([tensor]), lambda tensor: program.bind([tensor])):
        with pytest.raises(LifecycleError, match="the program was closed"):
            call(tensor)
    with pytest.raises(LifecycleError, match="the program was closed"):
        program.preload(0)


def test_equal_bytes_are_loaded_once_and_share_nothing_else(load: Any, tensor: Any, simulator: Any) -> None:
    before = is_mapped()
    one, other = load(), load()
    one.call([tensor])
    other.call([tensor])
    assert is_mapped() == before + 1
    simulator.clear_trace()
    one.close()
    assert [type(event).__name__ for event in simulator.trace].count("LibraryUnloaded") == 1
    assert is_mapped() == before + 1
    other.call([tensor])
    other.close()
    assert is_mapped() == before


def test_it_stays_for_an_entry_that_was_taken(load: Any, tensor: Any) -> None:
    before = is_mapped()
    program = load()
    entry = program.entry
    program.close()
    assert is_mapped() == before + 1
    with pytest.raises(LifecycleError, match="the program was closed"):
        entry(tensor)
    del entry
    gc.collect()  # the refusal's traceback has it too
    process_libraries().unload()
    assert is_mapped() == before


def test_it_stays_for_a_bound_launch(load: Any, tensor: Any) -> None:
    before = is_mapped()
    program = load()
    bound = program.bind([tensor])
    bound()
    program.close()
    assert is_mapped() == before + 1
    with pytest.raises(LifecycleError, match="the program was closed"):
        bound()
    del bound
    gc.collect()
    load(1).close()  # which unloads all that may go
    assert is_mapped() == before


def test_it_stays_for_a_program_that_nobody_closed(simulator: Simulator, built: Any, tensor: Any) -> None:
    """Only `close` unloads: a captured graph may outlive every object."""
    program = allocating()
    before = is_mapped()
    for _ in range(2):
        made = CppProgram(
            built(program) + b"unclosed", CallSignature.of(program.plan()), simulator.runtime, "test"
        )
        made.call([tensor])
        del made
        gc.collect()
        process_libraries().unload()
        assert is_mapped() == before + 1


def test_programs_whose_load_fails_do_not_pile_up(load: Any, simulator: Simulator) -> None:
    """Its error keeps the code of one; the next load that fails, or the next close, unmaps it."""
    before = is_mapped(), len(process_libraries())
    for number in range(1, 4):
        with (
            simulator.fault("cuLibraryLoadData", Status.NO_BINARY_FOR_GPU),
            pytest.raises(DriverError, match="NO_BINARY_FOR_GPU"),
        ):
            load(number)
        gc.collect()  # the refusal's traceback has its functions
        assert (is_mapped(), len(process_libraries())) == (before[0] + 1, before[1] + 1)
    load().close()
    assert (is_mapped(), len(process_libraries())) == before


def test_outputs_outlive_it(load: Any, tensor: Any) -> None:
    """One that is aligned to more than allocators do is a part of a larger tensor."""
    before = is_mapped()
    program = load(alignment=4096)
    outputs = [program.call([tensor]) for _ in range(3)]
    assert all(output.data_ptr() % 4096 == 0 and output.shape == (8,) for output in outputs)
    program.close()
    assert is_mapped() == before
    outputs[0].fill_(3)
    assert outputs.pop(0).cpu().tolist() == [3] * 8
    del outputs
    gc.collect()


def test_threads_load_and_close_the_same_bytes(load: Any, tensor: Any, simulator: Simulator) -> None:
    before, failed = is_mapped(), []

    def work() -> None:
        try:
            for number in range(12):
                program = load(number % 2)
                program.call([tensor])
                program.close()
        except BaseException as error:
            failed.append(error)
            raise

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed
    process_libraries().unload()
    assert is_mapped() == before


def test_a_forked_child_loads_and_closes_on(load: Any, tensor: Any) -> None:
    program = load()
    program.call([tensor])
    child = os.fork()
    if child == 0:  # where there is no driver any more
        try:
            with pytest.raises(LifecycleError, match="forked"):
                program.call([tensor])
            program.close()
            os._exit(0)
        finally:
            os._exit(2)
    assert os.waitpid(child, 0)[1] == 0
    program.call([tensor])


AT_THE_END = """
import sys
sys.path[:0] = {path!r}
from pathlib import Path
from trunnion.codegen.cpp.loader import process_libraries
kept = [process_libraries().open(Path({library!r}).read_bytes(), "test")]
kept += [kept[0]("bind"), kept]  # a cycle, which goes last
print(len(process_libraries()))
"""


def test_it_stays_until_the_process_ends(built: Any, tmp_path: Path) -> None:
    """Python's modules, and what they hold, end in any order: a function may go long after what loaded it."""
    library = tmp_path / "launcher.so"
    library.write_bytes(built(allocating()))
    script = AT_THE_END.format(path=sys.path, library=str(library))
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "1\n", "")


# When there are too many ----------------------------------------------------------------------------------------


def test_a_library_that_finds_no_room_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loader, "_mappings", lambda: (65525, 65530))
    with pytest.raises(DeviceRequirementError, match=r"65525 of 65530 mappings.*close programs") as caught:
        loader.load_library(b"no library", "test")
    assert "vm.max_map_count" in str(caught.value)
    monkeypatch.undo()
    with pytest.raises(CorruptArtifactError):
        loader.load_library(b"no library", "test")


def test_a_folder_for_temporary_files_whose_name_is_no_text_is_told(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """TVM-FFI takes the paths of libraries in UTF-8."""
    folder = tmp_path / os.fsdecode(b"gr\xfcn")
    folder.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(folder))
    with pytest.raises(DeviceRequirementError, match=r"name is UTF-8.*gr\\udcfcn.*set TMPDIR"):
        loader.load_library(b"any", "test")
    assert list(folder.iterdir()) == []


def test_who_nears_the_limit_is_warned(monkeypatch: pytest.MonkeyPatch, load: Any) -> None:
    monkeypatch.setattr(loader, "_LOOKS_EVERY", 1)
    monkeypatch.setattr(loader, "_mappings", lambda: (58976, 65530))
    load(2)
    monkeypatch.setattr(loader, "_mappings", lambda: (58977, 65530))
    with pytest.warns(RuntimeWarning, match=r"58977 of 65530 mappings.*: close programs") as told:
        load(3)
    assert told[0].filename == __file__


def test_the_process_knows_its_mappings() -> None:
    count, most = loader._mappings()
    assert 10 < count < most
