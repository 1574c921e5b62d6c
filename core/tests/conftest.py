"""A driver that only records, and tensors that are addresses: a launcher needs no more."""

from __future__ import annotations

import ctypes
import functools
import itertools
import math
import threading
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from trunnion.codegen.python.emitter import emit_launcher
from trunnion.launcher.facade import EncodedMap, StreamState
from trunnion.launcher.l2_persisting import SetAside
from trunnion.launcher.program import LauncherModule, PythonProgram
from trunnion.model.dtypes import dtype

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from trunnion.model.program import KernelProgram

STRIDED = object()
_ADDRESSES = itertools.count(1 << 20, 1 << 20)


@dataclass(eq=False)
class FakeTensor:
    dtype: Any
    shape: tuple[int, ...]
    strides: tuple[int, ...] | None = None
    address: int = field(default_factory=lambda: next(_ADDRESSES))
    ordinal: int = 0
    is_cuda: bool = True
    layout: object = STRIDED
    is_nested: bool = False
    room: int = 1 << 40

    def stride(self) -> tuple[int, ...]:
        if self.strides is not None:
            return self.strides
        return tuple(math.prod(self.shape[axis + 1 :]) for axis in range(len(self.shape)))

    def is_contiguous(self) -> bool:
        return self.strides is None

    def dim(self) -> int:
        return len(self.shape)

    def numel(self) -> int:
        return math.prod(self.shape)

    def data_ptr(self) -> int:
        return self.address

    def element_size(self) -> int:
        return self.dtype.itemsize

    def get_device(self) -> int:
        return self.ordinal

    def is_neg(self) -> bool:
        return False

    is_conj = is_neg

    @property
    def device(self) -> str:
        return f"fake:{self.ordinal}"


def _facts(tensor: object) -> object:
    if type(tensor) is not FakeTensor:
        return None
    facts = (tensor.dtype, tensor.shape, tensor.stride(), tensor.ordinal, tensor.is_cuda)
    return (*facts, tensor.layout is STRIDED, tensor.strides is None)


class FakeRuntime:
    tensor_type = FakeTensor
    exchanged_types = (FakeTensor, FakeTensor)
    stream_type = SimpleNamespace
    strided = STRIDED

    def __init__(self) -> None:
        self.allocated: list[tuple[FakeTensor, int]] = []
        self.guards = True
        self.readers = False
        self.guarded_with: list[tuple[FakeTensor, ...]] = []
        self.read_with: list[tuple[FakeTensor, ...]] = []

    def dtype(self, kind: Any) -> Any:
        return kind

    def current_stream(self, device: int) -> int:
        return 100 + device

    def current_stream_getter(self) -> Callable[[int], int]:
        return self.current_stream

    def allocate(self, shape: tuple[int, ...], kind: Any, device: int, stream: int) -> FakeTensor:
        assert all(type(extent) is int for extent in shape)
        tensor = FakeTensor(kind, shape, ordinal=device)
        self.allocated.append((tensor, stream))
        return tensor

    def guard(self, tensors: tuple[FakeTensor, ...]) -> Callable[..., bool] | None:
        if not self.guards:
            return None
        facts = [_facts(tensor) for tensor in tensors]
        self.guarded_with.append(tensors)
        return lambda *others: [_facts(tensor) for tensor in others] == facts

    def reader(self, tensors: tuple[FakeTensor, ...]) -> Callable[..., tuple[int, ...] | None] | None:
        if not self.readers:
            return None
        facts = [_facts(tensor) for tensor in tensors]
        self.read_with.append(tensors)

        def read(*others: FakeTensor) -> tuple[int, ...] | None:
            if [_facts(tensor) for tensor in others] != facts:
                return None
            places = tuple(tensor.address for tensor in others)
            return None if any(t.numel() and not t.address for t in others) else places

        return read

    def caller(self, function: int, addresses: tuple[int, ...], kept: object) -> None:
        return None

    def presents_device(self, tensor: FakeTensor) -> bool:
        return tensor.is_cuda

    def has_storage(self, tensor: FakeTensor) -> bool:
        return tensor.layout is STRIDED

    def room(self, tensor: FakeTensor) -> int:
        return tensor.room


@dataclass(frozen=True)
class Launched:
    kernel: str
    shape: tuple[int, ...]
    stream: int
    parameters: tuple[bytes, ...]
    window: tuple[int, int] | None = None
    attributes: tuple[Any, ...] = ()


class RecordingFacade:
    """Records every call; `on` holds a function to run at a call, by the method's name."""

    def __init__(self, sizes: dict[str, list[int]], devices: int = 2) -> None:
        self.sizes, self.devices = sizes, devices
        self.log: list[tuple[Any, ...]] = []
        self.launched: list[Launched] = []
        self.on: dict[str, Callable[..., object]] = {}
        self.lock = threading.Lock()
        self.version = 13000
        self.attributes = {75: 9, 76: 0, 97: 232_448, 108: 1 << 20, 109: 1 << 24}
        self.occupancies: dict[str, int] = {}
        self.stream_devices: dict[int, int] = {}
        self.captured: set[int] = set()
        self.limit: int | None = 4096
        self.set_aside = SetAside()
        self.variables: dict[str, tuple[int, int]] = {}
        self.elsewhere: int | None = None
        self.decided: dict[int, dict[int, tuple[int, ...]]] = {}

    def _note(self, name: str, *facts: object) -> None:
        with self.lock:
            self.log.append((name, *facts))
        hook = self.on.get(name)
        if hook is not None:
            hook(*facts)

    def count(self, name: str) -> int:
        return sum(entry[0] == name for entry in self.log)

    def device_count(self) -> int:
        return self.devices

    def load(self, image: bytes) -> str:
        self._note("load", image)
        return "library"

    def unload(self, library: str) -> None:
        self._note("unload", library)

    def kernel(self, library: str, symbol: str) -> str:
        self._note("kernel", symbol)
        return symbol

    def set_kernel_attribute(self, kernel: str, device: int, attribute: int, value: int) -> None:
        self._note("set_kernel_attribute", kernel, device, attribute, value)

    def driver_version(self) -> int:
        return self.version

    def occupancy(self, kernel: str, threads: int, dynamic_smem_bytes: int) -> int:
        self._note("occupancy", kernel, threads, dynamic_smem_bytes)
        return self.occupancies.get(kernel, 2)

    def device_attribute(self, device: int, attribute: int) -> int:
        self._note("device_attribute", device, attribute)
        return self.attributes[attribute]

    def stream_state(self, stream: int) -> StreamState:
        self._note("stream_state", stream)
        return StreamState(self.stream_devices.get(stream, 0), stream in self.captured)

    def fill(self, step: Any, address: int, count: int, stream: int) -> None:
        self._note("fill", step, address, count, stream)

    def variable(self, library: str, symbol: str) -> tuple[int, int]:
        self._note("variable", library, symbol)
        return self.variables[symbol]

    def address_in(self, stream: int, device: int, variable: tuple[str, str]) -> int | None:
        self._note("address_in", stream, device, variable)
        return self.elsewhere

    def write(self, writes: Sequence[tuple[int, bytes]]) -> None:
        self._note("write", *writes)

    def copy(self, target: int, source: int, nbytes: int, stream: int) -> None:
        self._note("copy", target, source, nbytes, stream)

    def persisting_limit(self) -> int | None:
        return self.limit

    def set_persisting_limit(self, nbytes: int) -> None:
        self._note("set_persisting_limit", nbytes)
        self.limit = nbytes

    def set_stream_window(self, stream: int, spec: Any, address: int, nbytes: int) -> None:
        self._note("set_stream_window", stream, spec, address, nbytes)

    def reset_persisting(self, stream: int) -> None:
        self._note("reset_persisting", stream)

    def enter(self, device: int) -> bool:
        self._note("enter", device)
        return device > 0

    def leave(self) -> None:
        self._note("leave")

    def recover(self) -> None:
        pass

    def encode(self, fields: Any) -> EncodedMap:
        self._note("encode", fields)
        buffer = ctypes.create_string_buffer(repr(fields).encode(), 4096)
        return EncodedMap(ctypes.addressof(buffer), buffer)

    def new_config(self, spec: Any) -> Any:
        return spec

    def set_attributes(self, config: Any, attributes: tuple[tuple[int, tuple[int, ...]], ...]) -> None:
        self._note("set_attributes", attributes)
        self.decided[id(config)] = dict(attributes)

    def launch(
        self,
        config: Any,
        kernel: str,
        shape: tuple[int, ...],
        stream: int,
        parameters: int,
        window: tuple[int, int] | None,
    ) -> None:
        self._note("launch", kernel)
        pointers = (ctypes.c_void_p * len(config.offsets)).from_address(parameters)
        read = (ctypes.string_at(at, size) for at, size in zip(pointers, self.sizes[kernel], strict=True))
        decided = self.decided.get(id(config), {})
        attributes = tuple((number, decided.get(number, values)) for number, values in config.attributes)
        with self.lock:
            self.launched.append(Launched(kernel, shape, stream, tuple(read), window, attributes))

    def synchronize(self, device: int) -> None:
        self._note("synchronize", device)


@dataclass
class Rig:
    program: PythonProgram
    module: LauncherModule
    facade: RecordingFacade
    runtime: FakeRuntime
    text: str


def build_rig(program: KernelProgram, *, interprets: bool = False) -> Rig:
    plan = program.plan()
    text = emit_launcher(plan)
    facade = RecordingFacade({k.name: [p.size for p in k.parameters] for k in plan.kernels})
    facade.variables = {one.name: (0x7000 + 0x100 * one.index, one.nbytes) for one in plan.variables}
    runtime = FakeRuntime()
    symbols = [one.name for one in (*plan.kernels, *plan.variables)]
    module = LauncherModule.execute(text, "launcher.py", plan=lambda: plan)
    if interprets:
        module = LauncherModule.interpret(plan)
    return Rig(PythonProgram(module, b"image", symbols, facade, runtime), module, facade, runtime, text)


@pytest.fixture
def rig() -> Callable[[KernelProgram], Rig]:
    return build_rig


@pytest.fixture
def interpreted_rig() -> Callable[[KernelProgram], Rig]:
    return functools.partial(build_rig, interprets=True)


@pytest.fixture(params=["generated", "interpreted"])
def any_rig(request: Any) -> Callable[[KernelProgram], Rig]:
    return functools.partial(build_rig, interprets=request.param == "interpreted")


@pytest.fixture
def tensor() -> Callable[..., FakeTensor]:
    return lambda kind, *shape, **fields: FakeTensor(dtype(kind), shape, **fields)
