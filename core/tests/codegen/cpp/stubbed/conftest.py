"""Launchers over a driver that launches nothing, in this process, and beside any other driver that it has.

Tensors lie in the host's memory, so torch's own exchange functions take them: what the simulator cannot show, whose
tensors are of a class of its own.
"""

from __future__ import annotations

import ctypes
import functools
import struct
import subprocess
import sys
import tempfile
import threading
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import tvm_ffi

from trunnion.codegen.cpp.build import build_launcher
from trunnion.codegen.cpp.call_signature import CallSignature
from trunnion.codegen.cpp.emitter import emit_launcher
from trunnion.codegen.cpp.program import CppProgram
from trunnion.testing.machine import synthetic_image
from trunnion.testing.reference import parameter_layouts
from trunnion.toolchain.host_headers import cuda_headers
from trunnion.torch_runtime import HostRuntime

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from trunnion.model.program import KernelProgram

STUB = Path(__file__).parents[1] / "native" / "stub_driver.c"
OPTIONS = ("-Ddlopen=open_stub",)
"""More options for the compiler: launchers open the stub."""

LAUNCH_FAILED = 719
_HEAD = struct.Struct("<2I3I3IQ2I")


@dataclass(frozen=True)
class Launch:
    """What the driver was given for one launch."""

    kernel: str
    grid: tuple[int, ...]
    block: tuple[int, ...]
    stream: int
    smem: int
    device: int
    parameters: tuple[bytes, ...]


class Driver:
    """The stub, as a test holds it."""

    def __init__(self, library: Path) -> None:
        self.path = library
        self._library = ctypes.CDLL(str(library))
        self._kernels: list[tuple[str, list[int]]] = []
        self._lock = threading.Lock()
        self._library.stub_reset.argtypes = (ctypes.c_int64, ctypes.c_int)
        self._library.stub_allocations.argtypes = (ctypes.c_int64,)
        self._library.stub_log.restype = ctypes.c_size_t
        self._library.stub_log.argtypes = (ctypes.c_void_p, ctypes.c_size_t)

    def declare(self, sizes: list[int]) -> str:
        """Make a kernel with parameters of these sizes in bytes, and return its name."""
        with self._lock:
            name = f"kernel_{len(self._kernels)}"
            number = self._library.stub_declare(
                name.encode(), len(sizes), (ctypes.c_uint32 * len(sizes))(*sizes)
            )
            assert number == len(self._kernels)
            self._kernels.append((name, sizes))
            return name

    def in_another_process(self) -> str:
        """Return Python code that loads the stub, and makes the same kernels."""
        lines = ["import ctypes", f"stub = ctypes.CDLL({str(self.path)!r})"]
        for name, sizes in self._kernels:
            lines.append(
                f"stub.stub_declare({name.encode()}, {len(sizes)}, (ctypes.c_uint32 * {len(sizes)})(*{sizes}))"
            )
        return "\n".join([*lines, ""])

    def reset(self, *, failing_from: int = -1) -> None:
        """Forget all launches, hold none, and let those from one on fail."""
        self._library.stub_hold(0)
        self._library.stub_record(1)
        self.allow_allocations(2**63 - 1)
        self._library.stub_reset(failing_from, LAUNCH_FAILED)

    def record(self, recording: bool) -> None:
        self._library.stub_record(int(recording))

    def hold(self) -> None:
        """Let no launch return before `release`."""
        self._library.stub_hold(1)

    def release(self) -> None:
        self._library.stub_hold(0)

    def await_launches(self, count: int) -> None:
        """Wait until as many threads stand in a launch."""
        assert self._library.stub_await(count), f"no {count} launches at once"

    @property
    def allocator(self) -> int:
        """The address of a function that allocates device memory for TVM-FFI."""
        return int(ctypes.cast(self._library.stub_allocate, ctypes.c_void_p).value or 0)

    def allow_allocations(self, count: int) -> None:
        """Let there be no memory after as many more allocations."""
        self._library.stub_allocations(count)

    @property
    def tensors(self) -> int:
        """How many of its tensors are there."""
        return int(self._library.stub_tensors())

    @property
    def loaded(self) -> int:
        """How many images are loaded."""
        return int(self._library.stub_loaded())

    @property
    def launches(self) -> list[Launch]:
        """Every launch since the last reset, those that failed too."""
        room = self._library.stub_log(None, 0)
        data = ctypes.create_string_buffer(room)
        assert self._library.stub_log(data, room) == room
        found, at, raw = [], 0, data.raw
        while at < room:
            kernel, count, *numbers = _HEAD.unpack_from(raw, at)
            at += _HEAD.size
            parameters = []
            for _ in range(count):
                (size,) = struct.unpack_from("<I", raw, at)
                parameters.append(raw[at + 4 : at + 4 + size])
                at += 4 + size
            geometry = (tuple(numbers[:3]), tuple(numbers[3:6]))
            found.append(Launch(self._kernels[kernel][0], *geometry, *numbers[6:9], tuple(parameters)))
        return found


@pytest.fixture(scope="session")
def stub(tmp_path_factory: pytest.TempPathFactory) -> Driver:
    library = tmp_path_factory.mktemp("stub") / "stub_driver.so"
    includes = [
        f"-isystem{cuda_headers('stub').folder}",
        f"-isystem{Path(tvm_ffi.__file__).parent / 'include'}",
    ]
    command = [
        "gcc",
        "-O1",
        "-g",
        "-Wall",
        "-Werror",
        "-shared",
        "-fPIC",
        *includes,
        str(STUB),
        "-o",
        str(library),
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return Driver(library)


@pytest.fixture
def driver(stub: Driver) -> Iterator[Driver]:
    stub.reset()
    yield stub
    stub.reset()


def launcher_text(program: KernelProgram, library: Path, *, on_host: bool = True) -> str:
    """Return the text of a launcher that finds the stub instead of the driver, and its tensors on the host."""
    text = emit_launcher(program.plan())
    if on_host:
        assert text.count("Place{kDLCUDA}") == 1
        text = text.replace("Place{kDLCUDA}", "Place{kDLCPU}")
    real = 'void* open_library(const char*, int) __asm__("dlopen");'
    stub = f'void* open_stub(const char*, int mode) {{ return open_library("{library}", mode); }}'
    return f'extern "C" {{\n{real}\n{stub}\n}}\n{text}'


@pytest.fixture(scope="session")
def build(stub: Driver) -> Callable[..., bytes]:
    """Return the launcher of a program, over the stub; built once for all tests."""

    @functools.cache
    def build_one(program: KernelProgram, *, on_host: bool = True) -> bytes:
        layouts = parameter_layouts(program).values()
        symbols = [stub.declare([size for size, _ in layout]) for layout in layouts]
        symbols += [f"variable_{index}_{one.nbytes}" for index, one in enumerate(program.variables)]
        text = launcher_text(program, stub.path, on_host=on_host)
        with tempfile.TemporaryDirectory() as folder:
            image = synthetic_image(program)
            return build_launcher(text, image, symbols, Path(folder), plugin="stub", options=OPTIONS)

    return build_one


@pytest.fixture
def load(build: Callable[..., bytes], driver: Driver) -> Iterator[Callable[..., CppProgram]]:
    """Load a program over torch's tensors on the host; it is closed at the end of the test."""
    loaded: list[CppProgram] = []

    def load_one(program: KernelProgram, runtime: Any = None) -> CppProgram:
        facts = CallSignature.of(program.plan())
        loaded.append(CppProgram(build(program), facts, runtime or HostRuntime(), "stub"))
        return loaded[-1]

    yield load_one
    for one in loaded:
        one.close()


@pytest.fixture
def general_calls() -> Callable[[CppProgram], Any]:
    """Return a context that counts the calls of a program's general entry while it lasts."""

    @contextmanager
    def counting(program: CppProgram) -> Iterator[list[str]]:
        code, calls = program.entry.__module__[0].__code__, []

        def seen(frame: Any, event: str, _: object) -> None:
            if event == "call" and frame.f_code is code:
                calls.append(event)

        before = sys.getprofile()
        sys.setprofile(seen)
        try:
            yield calls
        finally:
            sys.setprofile(before)

    return counting
