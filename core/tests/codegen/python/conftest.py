"""A driver that only records, and tensors that are addresses: a launcher needs no more."""

from __future__ import annotations

import ctypes
import itertools
import math
import threading
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pytest

from trunnion.codegen.python.emitter import emit_launcher
from trunnion.codegen.python.facade import EncodedMap
from trunnion.codegen.python.program import PythonProgram
from trunnion.model.dtypes import dtype

if TYPE_CHECKING:
    from collections.abc import Callable

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

    def get_device(self) -> int:
        return self.ordinal

    def is_neg(self) -> bool:
        return False

    is_conj = is_neg

    @property
    def device(self) -> str:
        return f"fake:{self.ordinal}"


class FakeRuntime:
    tensor_type = FakeTensor
    strided = STRIDED

    def __init__(self) -> None:
        self.allocated: list[tuple[FakeTensor, int]] = []

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

    def presents_device(self, tensor: FakeTensor) -> bool:
        return tensor.is_cuda

    def has_storage(self, tensor: FakeTensor) -> bool:
        return tensor.layout is STRIDED


@dataclass(frozen=True)
class Launched:
    kernel: str
    shape: tuple[int, ...]
    stream: int
    parameters: tuple[bytes, ...]


class RecordingFacade:
    """Records every call; `on` holds a function to run at a call, by the method's name."""

    def __init__(self, sizes: dict[str, list[int]], devices: int = 2) -> None:
        self.sizes, self.devices = sizes, devices
        self.log: list[tuple[Any, ...]] = []
        self.launched: list[Launched] = []
        self.on: dict[str, Callable[..., object]] = {}
        self.lock = threading.Lock()

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

    def set_dynamic_smem(self, kernel: str, device: int, nbytes: int) -> None:
        self._note("set_dynamic_smem", kernel, device, nbytes)

    def enter(self, device: int) -> bool:
        self._note("enter", device)
        return device > 0

    def leave(self) -> None:
        self._note("leave")

    def encode_tiled(self, fields: Any, l2_promotion: int) -> EncodedMap:
        self._note("encode_tiled", fields, l2_promotion)
        buffer = ctypes.create_string_buffer(repr(fields).encode(), 4096)
        return EncodedMap(ctypes.addressof(buffer), buffer)

    def new_config(self, spec: Any) -> Any:
        return spec

    def launch(self, config: Any, kernel: str, shape: tuple[int, ...], stream: int, parameters: int) -> None:
        self._note("launch", kernel)
        pointers = (ctypes.c_void_p * len(config.offsets)).from_address(parameters)
        read = (ctypes.string_at(at, size) for at, size in zip(pointers, self.sizes[kernel], strict=True))
        with self.lock:
            self.launched.append(Launched(kernel, shape, stream, tuple(read)))

    def synchronize(self, device: int) -> None:
        self._note("synchronize", device)


@dataclass
class Rig:
    program: PythonProgram
    facade: RecordingFacade
    runtime: FakeRuntime
    text: str


def build_rig(program: KernelProgram) -> Rig:
    plan = program.plan()
    text = emit_launcher(plan)
    facade = RecordingFacade({k.name: [p.size for p in k.parameters] for k in plan.kernels})
    runtime = FakeRuntime()
    symbols = [kernel.name for kernel in plan.kernels]
    return Rig(PythonProgram(text, b"image", symbols, facade, runtime), facade, runtime, text)


@pytest.fixture
def rig() -> Callable[[KernelProgram], Rig]:
    return build_rig


@pytest.fixture
def tensor() -> Callable[..., FakeTensor]:
    return lambda kind, *shape, **fields: FakeTensor(dtype(kind), shape, **fields)
