"""Driver calls as CUPTI tells of them become the events that the simulated driver records."""

from __future__ import annotations

import ctypes
import struct

import pytest

from trunnion.sim.abi import (
    AccessPolicyWindowStruct,
    LaunchAttributeId,
    LaunchAttributeStruct,
    LaunchConfigStruct,
)
from trunnion.sim.launch_attributes import WindowAttribute
from trunnion.sim.status import Status
from trunnion.sim.tensormap import decode
from trunnion.sim.trace import (
    CallRefused,
    Launched,
    LimitSet,
    MemorySet,
    PersistingLinesReset,
    StreamAttributeSet,
    Synchronized,
    TensorMapEncoded,
)
from trunnion.testing.gpu.cupti import DriverCall
from trunnion.testing.gpu.decoding import NAMES, Decoder

_KEPT: list[object] = []


class _Device:
    compute_capability = (9, 0)

    def attribute(self, _):
        return 1 << 27


@pytest.fixture
def decoder():
    _KEPT.clear()
    return Decoder({"kernel_0": (8, 128), "kernel_1": (8, 448)}.get, _Device(), 13000)


def call(name, code="", *values, status=0, symbol="", per_thread=False):
    """Return a call whose arguments lie in a structure, as C lays it out."""
    room = ctypes.create_string_buffer(struct.pack(code, *values) or b"\0")
    _KEPT.append(room)
    return DriverCall(
        name=name,
        per_thread=per_thread,
        arguments=ctypes.addressof(room),
        status=status,
        symbol=symbol,
        device=1,
    )


def array(kind, *values):
    made = (kind * len(values))(*values)
    _KEPT.append(made)
    return ctypes.addressof(made)


def launch(*, attributes=(), stream=0x70, second=bytes(128), symbol="kernel_0", **kwargs):
    parameters = [ctypes.create_string_buffer(data, len(data)) for data in (b"pointers", second)]
    pointers = (ctypes.c_void_p * 2)(*map(ctypes.addressof, parameters))
    held = (LaunchAttributeStruct * max(len(attributes), 1))(*attributes)
    config = LaunchConfigStruct(3, 1, 2, 64, 1, 1, 512, stream, ctypes.addressof(held), len(attributes))
    _KEPT.extend((parameters, pointers, held, config))
    given = ctypes.addressof(config), 0x99, ctypes.addressof(pointers), 0
    return call("cuLaunchKernelEx", "QQQQ", *given, symbol=symbol, **kwargs)


def encode_tiled(to, *, status=0):
    dims, box, ones = array(ctypes.c_uint64, 64), array(ctypes.c_uint32, 4), array(ctypes.c_uint32, 1)
    strides = array(ctypes.c_uint64, 0)
    given = to, 7, 1, 0x1000, dims, strides, box, ones, 0, 0, 1, 0
    return call("cuTensorMapEncodeTiled", "QiIQQQQQiiii", *given, status=status)


def test_a_launch(decoder):
    cluster = LaunchAttributeStruct(id=LaunchAttributeId.CLUSTER_DIMENSION)
    cluster.value.clusterDim.x, cluster.value.clusterDim.y, cluster.value.clusterDim.z = 3, 1, 1
    event = decoder.event(launch(attributes=(cluster,)))
    assert isinstance(event, Launched)
    assert (event.kernel, event.device, event.stream) == ("kernel_0", 1, 0x70)
    assert (event.grid, event.block, event.dynamic_smem_bytes) == ((3, 1, 2), (64, 1, 1), 512)
    assert (event.cluster, event.parameters) == ((3, 1, 1), (b"pointers", bytes(128)))
    assert decoder.given == [(event, event.parameters)]


def test_the_null_stream_of_a_per_thread_call(decoder):
    assert decoder.event(launch(stream=0, per_thread=True)).stream == 2
    assert decoder.event(launch(stream=0)).stream == 0


def test_a_launch_of_somebody_elses_kernel_is_none_of_ours(decoder):
    other = launch()
    assert (
        decoder.event(
            DriverCall(**{**{n: getattr(other, n) for n in DriverCall.__slots__}, "symbol": "torch"})
        )
        is None
    )
    assert not decoder.given


def test_a_map_is_shown_as_what_was_asked_for(decoder):
    room = ctypes.create_string_buffer(b"what a driver makes of it".ljust(128, b"."), 128)
    event = decoder.event(encode_tiled(ctypes.addressof(room)))
    assert isinstance(event, TensorMapEncoded)
    assert (event.request.dims, event.request.strides, event.request.box) == ((64,), (), (4,))
    shown = decoder.event(launch(second=room.raw)).parameters[1]
    assert decode(shown) == event.request
    assert decoder.given[-1][1][1] == room.raw


def test_maps_within_a_struct_are_shown_as_what_was_asked_for(decoder):
    room = ctypes.create_string_buffer(b"what a driver makes of it".ljust(128, b"."), 128)
    request = decoder.event(encode_tiled(ctypes.addressof(room))).request
    struct_bytes = b"a" * 64 + room.raw + room.raw + b"b" * 128
    shown = decoder.event(launch(second=struct_bytes, symbol="kernel_1")).parameters[1]
    assert decode(shown[64:192]) == decode(shown[192:320]) == request
    assert (shown[:64], shown[320:]) == (b"a" * 64, b"b" * 128)
    assert decoder.given[-1][1][1] == struct_bytes


def test_what_the_driver_refused(decoder):
    room = ctypes.create_string_buffer(128)
    for refused in (encode_tiled(ctypes.addressof(room), status=1), launch(status=1)):
        event = decoder.event(refused)
        assert isinstance(event, CallRefused)
        assert event.status is Status.INVALID_VALUE
    assert not decoder.given


@pytest.mark.parametrize(
    ("made", "event"),
    [
        (("cuMemsetD8Async", "QBQQ", 64, 7, 5, 0x70), MemorySet(64, 7, 1, 5, 1, 0x70)),
        (("cuMemsetD16Async", "QHQQ", 64, 7, 5, 0x70), MemorySet(64, 7, 2, 5, 1, 0x70)),
        (("cuMemsetD32Async", "QIQQ", 64, 7, 5, 0x70), MemorySet(64, 7, 4, 5, 1, 0x70)),
        (
            ("cuMemsetD2D32Async", "QQIQQQ", 64, 32, 7, 5, 3, 0x70),
            MemorySet(64, 7, 4, 5, 1, 0x70, rows=3, pitch=32),
        ),
        (("cuCtxSetLimit", "iQ", 6, 4096), LimitSet(6, 4096, 4096, 1)),
        (("cuCtxResetPersistingL2Cache", ""), PersistingLinesReset(1)),
        (("cuStreamSynchronize", "Q", 0x70), Synchronized(1, 0x70)),
    ],
)
def test_what_else_a_launcher_asks_for(decoder, made, event):
    assert decoder.event(call(*made)) == event


def test_a_window_that_a_stream_holds_is_in_force(decoder):
    raw = AccessPolicyWindowStruct(0x2000, 4096, 0.5, 2, 0)
    _KEPT.append(raw)
    setting = call("cuStreamSetAttribute", "QiQ", 0x70, 1, ctypes.addressof(raw))
    window = WindowAttribute(0x2000, 4096, 0.5, 2, 0)
    assert decoder.event(setting) == StreamAttributeSet(1, window, 1, 0x70)
    assert decoder.event(launch()).window == window
    assert decoder.event(launch(stream=0x80)).window is None


def test_every_name_is_decoded(decoder):
    assert {"cuLaunchKernel", "cuLaunchKernelEx", "cuTensorMapEncodeIm2col", "cuMemsetD2D8Async"} <= set(
        NAMES
    )
