"""torch as a launcher sees it: on plain tensors of a CPU build, and on a recording stand-in for what needs a GPU."""

from __future__ import annotations

from contextlib import contextmanager
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensorMode

from trunnion import sim
from trunnion.errors import DeviceRequirementError
from trunnion.model.dtypes import dtype
from trunnion.torch_runtime import TorchRuntime, default_runtime

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
        self.cuda = SimpleNamespace(stream=self.stream, ExternalStream=self.external)

    def external(self, handle: int, device: Any) -> tuple[int, str]:
        return handle, str(device)

    @contextmanager
    def stream(self, entered: tuple[int, str]) -> Iterator[None]:
        self.entered.append(entered)
        yield
        self.entered.pop()

    def device(self, kind: str, ordinal: int) -> tuple[str, int]:
        return kind, ordinal

    def empty(self, shape: tuple[int, ...], *, dtype: object, device: object) -> str:
        self.made.append((shape, dtype, device, tuple(self.entered)))
        return "tensor"


@pytest.mark.parametrize(("stream", "entered"), [(7, ()), (9, ((9, "1"),)), (0, ((0, "1"),))])
def test_memory_is_taken_under_the_calls_stream(stream: int, entered: tuple[object, ...]) -> None:
    runtime, recorder = TorchRuntime(), RecordingTorch()
    asked: list[int] = []
    runtime._torch = recorder
    runtime._raw_stream = lambda device: asked.append(device) or 7
    assert runtime.allocate((2, 3), "float32", 1, stream) == "tensor"
    assert recorder.made == [((2, 3), "float32", ("cuda", 1), entered)]
    assert recorder.entered == []
    assert asked == [1]


def test_the_simulators_runtime_is_taken_where_it_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    simulator = SimpleNamespace(runtime=object())
    monkeypatch.setattr(sim, "active", lambda: simulator)
    assert default_runtime() is simulator.runtime
    monkeypatch.setattr(sim, "active", lambda: None)
    assert type(default_runtime()) is TorchRuntime
