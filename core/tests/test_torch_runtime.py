"""torch as a launcher sees it: on plain tensors of a CPU build, and on a recording stand-in for what needs a GPU."""

from __future__ import annotations

import sys
import weakref
from contextlib import contextmanager
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensorMode

from trunnion import sim
from trunnion.errors import (
    ArgumentTypeError,
    ArgumentValueError,
    BackendUnavailableError,
    CaptureError,
    DeviceRequirementError,
)
from trunnion.model.dtypes import dtype
from trunnion.torch_runtime import HostRuntime, TorchRuntime, default_runtime

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


def fake() -> torch.Tensor:
    with FakeTensorMode():
        return torch.empty(3)


TENSORS: dict[str, tuple[Callable[[], torch.Tensor], bool]] = {
    "plain": (lambda: torch.ones(3), True),
    "a view": (lambda: torch.ones(3, 4).t()[1:], True),
    "complex": (lambda: torch.ones(3, dtype=torch.complex64), True),
    "a conjugate that was computed": (
        lambda: torch.ones(3, dtype=torch.complex64).conj().resolve_conj(),
        True,
    ),
    "a lazy conjugate": (lambda: torch.ones(3, dtype=torch.complex64).conj(), False),
    "a lazy negative": (lambda: torch._neg_view(torch.ones(3)), False),
    "sparse": (lambda: torch.ones(3).to_sparse(), False),
    "fake": (fake, False),
}


@pytest.mark.parametrize("kind", TENSORS)
def test_storage_is_dense_and_as_it_is(kind: str) -> None:
    make, expected = TENSORS[kind]
    assert TorchRuntime().has_storage(make()) is expected


def test_without_torch_the_message_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is a library, no plugin."""
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(BackendUnavailableError) as caught:
        TorchRuntime()
    assert str(caught.value) == "'torch' is unavailable: it is not installed; pip install torch"


def test_a_meta_tensor_presents_no_device() -> None:
    meta = torch.empty(3, device="meta")
    assert TorchRuntime().presents_device(meta) is False
    assert meta.data_ptr() == 0


def test_a_dtype_that_this_torch_lacks_is_named() -> None:
    runtime = TorchRuntime()
    assert runtime.dtype(dtype("bfloat16")) is torch.bfloat16
    runtime._torch = SimpleNamespace(__version__="1.0")
    with pytest.raises(DeviceRequirementError, match="bfloat16") as caught:
        runtime.dtype(dtype("bfloat16"))
    assert "torch 1.0" in str(caught.value)


class RecordingTorch:
    """What `TorchRuntime.allocate` uses of torch; each allocation notes the stream that was entered."""

    def __init__(self) -> None:
        self.entered: list[tuple[int, str]] = []
        self.made: list[tuple[Any, ...]] = []
        self.current = 0
        self.cuda = SimpleNamespace(
            stream=self.stream,
            device=lambda ordinal: self.stream(("device", ordinal)),
            ExternalStream=self.external,
            default_stream=lambda device: ("default", str(device)),
            device_count=lambda: self.devices,
            current_device=lambda: self.current,
            is_initialized=lambda: True,
            is_current_stream_capturing=lambda: self.captured in [handle for handle, _ in self.entered[-1:]],
        )
        self.devices, self.captured = 2, 0
        self.OutOfMemoryError = torch.OutOfMemoryError
        self.made_of: Callable[[], Any] = lambda: Made(2)

    def external(self, handle: int, device: Any) -> tuple[int, str]:
        return handle, str(device)

    @contextmanager
    def stream(self, entered: tuple[int, str]) -> Iterator[None]:
        self.entered.append(entered)
        yield
        self.entered.pop()

    def device(self, kind: str, ordinal: int) -> tuple[str, int]:
        return kind, ordinal

    def empty(self, shape: tuple[int, ...], *, dtype: object, device: object) -> Any:
        self.made.append((shape, dtype, device, tuple(self.entered)))
        return self.made_of()


class Made:
    """What is made, and the streams that were recorded to use it."""

    def __init__(self, elements: int, address: int | None = 4096) -> None:
        self.elements, self.address = elements, address
        self.recorded: list[object] = []

    def numel(self) -> int:
        return self.elements

    def data_ptr(self) -> int:
        if self.address is None:
            raise RuntimeError("Cannot access data pointer of Tensor that doesn't have storage")
        return self.address

    def record_stream(self, stream: object) -> None:
        self.recorded.append(stream)


@pytest.mark.parametrize(
    ("stream", "entered", "recorded"),
    [
        (7, (), []),
        (9, ((9, "1"),), []),
        (0, (("default", "1"),), []),
        (1, (("default", "1"),), []),
        (2, (("default", "1"),), [(2, "1")]),
        (3, ((3, "1"),), []),
    ],
)
def test_memory_is_taken_under_the_calls_stream(
    stream: int, entered: tuple[object, ...], recorded: list[object]
) -> None:
    runtime, recorder = TorchRuntime(), RecordingTorch()
    asked: list[int] = []
    runtime._torch, runtime.tensor_type = recorder, Made
    runtime._raw_stream = lambda device: asked.append(device) or 7
    made = runtime.allocate((2, 3), "float32", 1, stream)
    assert type(made) is Made
    assert made.recorded == recorded
    assert recorder.made == [((2, 3), "float32", ("cuda", 1), entered)]
    assert recorder.entered == []
    assert asked == [1]


class Other(torch.Tensor):
    """A tensor of somebody's own."""


@pytest.mark.parametrize("stream", [7, 2, 9])
def test_what_torch_did_not_really_allocate_is_refused(stream: int) -> None:
    runtime, recorder = TorchRuntime(), RecordingTorch()
    runtime._torch, runtime._raw_stream, runtime._strided_on_current = recorder, lambda _: 7, None
    for made_of in (fake, lambda: torch.empty(3, device="meta"), lambda: torch.zeros(3).as_subclass(Other)):
        recorder.made_of = made_of
        with pytest.raises(ArgumentTypeError, match="without memory") as caught:
            runtime.allocate((3,), "float32", 1, stream)
        assert caught.value.argument == "out"
    runtime.tensor_type = Made
    recorder.made_of = lambda: Made(3, None)
    with pytest.raises(ArgumentTypeError, match="without memory"):
        runtime.allocate((3,), "float32", 1, stream)
    recorder.made_of = lambda: Made(0, None)
    assert runtime.allocate((0,), "float32", 1, stream).elements == 0


@pytest.mark.parametrize(
    ("device", "stream", "entered"),
    [
        (0, 7, ()),  # it is so already
        (1, 7, (("device", 1),)),
        (1, 0, (("default", "1"),)),
        (1, 9, ((9, "1"),)),
        (0, 9, ((9, "0"),)),
    ],
)
def test_others_may_be_called_on_a_stream(device: int, stream: int, entered: tuple[object, ...]) -> None:
    runtime, recorder = TorchRuntime(), RecordingTorch()
    runtime._torch, runtime._raw_stream = recorder, lambda _: 7
    with runtime.on_stream(device, stream):
        assert tuple(recorder.entered) == entered
    assert recorder.entered == []


def test_the_current_stream_is_that_of_the_device_that_is_asked_for() -> None:
    """A device has a current stream of its own, whichever device is the current one."""
    runtime, recorder = TorchRuntime(), RecordingTorch()
    streams, asked = {0: 7, 1: 9}, []
    runtime._torch, runtime._built_with_cuda = recorder, True
    recorder.cuda.current_stream = lambda device=recorder.current: SimpleNamespace(
        cuda_stream=streams[device]
    )
    runtime._raw_stream = lambda device: asked.append(device) or streams[device]
    getter = runtime.current_stream_getter()
    assert [getter(device) for device in (1, 0)] == [9, 7]
    assert asked == [1, 0], "torch's own getter makes no stream object"
    assert [runtime.current_stream(device) for device in (1, 0)] == [9, 7]


def test_too_little_memory_is_torchs_own_error() -> None:
    made = TorchRuntime().memory_error("none is left")
    assert type(made) is torch.OutOfMemoryError
    assert str(made) == "none is left"


def test_the_quick_allocator_is_for_one_device_alone() -> None:
    for devices, quick in ((1, "quick"), (2, None)):
        runtime, recorder = TorchRuntime(), RecordingTorch()
        runtime._torch, runtime._strided_on_current, recorder.devices = recorder, "quick", devices
        assert runtime.quick_allocator() == quick


@pytest.mark.parametrize("stream", [1, 2])
def test_what_torch_cannot_make_current_is_refused(stream: int) -> None:
    runtime = TorchRuntime()
    runtime._torch, runtime._raw_stream = RecordingTorch(), lambda _: 7
    with pytest.raises(ArgumentValueError) as caught:
        runtime.on_stream(0, stream)
    assert (caught.value.argument, caught.value.got) == ("stream", str(stream))


def test_the_host_is_one_device_without_streams() -> None:
    runtime = HostRuntime()
    tensor = torch.ones(3)
    assert runtime.presents_device(tensor)
    assert not runtime.presents_device(torch.empty(3, device="meta"))
    assert runtime.current_stream(0) == runtime.current_stream_getter()(0) == 0
    assert runtime.has_storage(tensor)
    assert runtime.room(tensor[1:]) == 8
    with runtime.on_stream(0, 0):
        made = runtime.allocate((2, 0, 3), runtime.dtype(dtype("bfloat16")), 0, 0)
    assert (made.shape, made.dtype, made.device.type) == ((2, 0, 3), torch.bfloat16, "cpu")


def test_the_host_allocates_memory_or_nothing() -> None:
    runtime = HostRuntime()
    with pytest.raises(ArgumentValueError, match=r"2\*\*63"):
        runtime.allocate((1 << 40, 1 << 40), torch.float32, 0, 0)
    with FakeTensorMode(), pytest.raises(ArgumentTypeError, match="without memory"):
        runtime.allocate((3,), torch.float32, 0, 0)
    with pytest.raises(RuntimeError, match="negative"):
        runtime.allocate((-1,), torch.float32, 0, 0)


@pytest.mark.parametrize(("devices", "current", "quick"), [(1, 0, True), (2, 0, False), (2, 1, True)])
def test_the_quick_allocator_is_asked_for_the_current_device_only(
    devices: int, current: int, *, quick: bool
) -> None:
    runtime, recorder = TorchRuntime(), RecordingTorch()
    recorder.devices, recorder.current = devices, current
    runtime._torch, runtime._raw_stream, runtime.tensor_type = recorder, lambda _: 7, Made
    asked: list[tuple[Any, ...]] = []
    runtime._strided_on_current = lambda *what: asked.append(what) or "tensor"
    device = 0 if devices == 1 else 1
    assert (runtime.allocate((2, 0, 3), "float32", device, 7) == "tensor") is quick
    assert asked == ([((2, 0, 3), (3, 3, 1), "float32")] if quick else [])
    assert len(recorder.made) == (0 if quick else 1)
    runtime.allocate((5,), "float32", device, 9)
    assert len(asked) == quick, "another stream has another allocator"


def test_memory_that_a_capture_forbids_is_a_capture_error() -> None:
    runtime, recorder = TorchRuntime(), RecordingTorch()
    runtime._torch, runtime._raw_stream, runtime._strided_on_current = recorder, lambda _: 7, None
    runtime._built_with_cuda = True

    def refuse(*_: object, **__: object) -> None:
        raise RuntimeError("operation not permitted")

    recorder.empty = refuse
    with pytest.raises(RuntimeError, match="not permitted"):
        runtime.allocate((2,), torch.float32, 0, 7)
    recorder.captured = 9
    with pytest.raises(RuntimeError, match="not permitted"):
        runtime.allocate((2,), torch.float32, 0, 7)
    for recorder.captured in (7, 2):
        with pytest.raises(CaptureError, match="out="):
            runtime.allocate((2,), torch.float32, 0, recorder.captured)

    recorder.cuda.is_current_stream_capturing = refuse
    with pytest.raises(RuntimeError, match="not permitted"):
        runtime.allocate((2,), torch.float32, 0, 7)

    def run_out(*_: object, **__: object) -> None:
        raise torch.OutOfMemoryError("CUDA out of memory")

    recorder.empty = run_out
    with pytest.raises(torch.OutOfMemoryError):
        runtime.allocate((2,), torch.float32, 0, 7)


UNLIKE: dict[str, Callable[[], torch.Tensor]] = {
    "another extent": lambda: torch.ones(3, 5),
    "another rank": lambda: torch.ones(3, 4, 1),
    "other strides": lambda: torch.ones(4, 3).t(),
    "another type": lambda: torch.ones(3, 4, dtype=torch.float64),
    "another device": lambda: torch.ones(3, 4, device="meta"),
    "a lazy negative": lambda: torch._neg_view(torch.ones(3, 4)),
    "sparse": lambda: torch.ones(3, 4).to_sparse(),
    "a subclass": lambda: torch.nn.Parameter(torch.ones(3, 4)),
    "fake": lambda: fake().expand(3, 4, 3)[..., 0],
}


@pytest.mark.parametrize("kind", UNLIKE)
def test_a_guard_tells_what_is_unlike(kind: str) -> None:
    first, second = torch.ones(3, 4), torch.zeros(3, 4)
    guard = TorchRuntime().guard((first, second))
    assert guard is not None, "this torch has guards"
    assert guard(torch.ones(3, 4), first)
    assert not guard(first, UNLIKE[kind]())
    assert not guard(UNLIKE[kind](), first)


def test_a_guard_tells_a_lazy_conjugate() -> None:
    plain = torch.ones(3, dtype=torch.complex64)
    guard = TorchRuntime().guard((plain,))
    assert guard is not None
    assert guard(plain.clone())
    assert not guard(plain.conj())


def test_a_guard_holds_no_tensor() -> None:
    tensor = torch.ones(3)
    gone = weakref.ref(tensor)
    guard = TorchRuntime().guard((tensor,))
    del tensor
    assert gone() is None
    assert guard is not None


def test_the_simulators_runtime_is_taken_where_it_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    simulator = SimpleNamespace(runtime=object())
    monkeypatch.setattr(sim, "active", lambda: simulator)
    assert default_runtime() is simulator.runtime
    monkeypatch.setattr(sim, "active", lambda: None)
    assert type(default_runtime()) is TorchRuntime


def test_a_torch_without_cuda_has_the_legacy_stream_alone() -> None:
    """Addresses and numbers can be launched with all the same; torch itself has nothing to say of streams."""
    runtime = TorchRuntime()
    assert not torch.backends.cuda.is_built()
    assert runtime.current_stream(0) == runtime.current_stream_getter()(0) == 0


def test_a_torch_without_cuda_allocates_nothing_there() -> None:
    with pytest.raises(BackendUnavailableError, match="built without CUDA"):
        TorchRuntime().allocate((2,), torch.float32, 0, 0)
