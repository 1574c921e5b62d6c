"""The parts that a Python launcher is made of, each timed alone: where its microseconds go."""

from __future__ import annotations

import ctypes
import functools
import importlib
import operator
import threading
from dataclasses import dataclass
from struct import Struct
from typing import TYPE_CHECKING, Any

import torch

from launching.case import Case
from launching.stage import Stage
from launching.timing import interleave, quiet_rounds, summarise
from launching.trial import PythonCall
from launching.yardsticks import build
from trunnion.call_helper import installed_helper
from trunnion.torch_runtime import TorchRuntime

if TYPE_CHECKING:
    from launching.stage import Device
    from launching.timing import Rounds

__all__ = ["pieces_report"]

_FLOOR = "None"
_YARDSTICK = "pack(buffer, 0, 1, 2, 3, 4)"

_TENSOR = (
    "type(t) is Tensor",
    "isinstance(t, Tensor)",
    "t.__class__ is Tensor",
    "t.layout is strided",
    "t.is_neg()",
    "t.is_conj()",
    "is_neg(t)",
    "t.requires_grad",
    "t.dtype is float32",
    "t.shape",
    "t.shape == shape",
    "len(t.shape)",
    "t.shape[0]",
    "t.size()",
    "t.size(0)",
    "t.dim()",
    "t.ndim",
    "t.numel()",
    "t.stride()",
    "t.get_device()",
    "t.device",
    "t.device.index",
    "t.is_cuda",
    "t.is_contiguous()",
    "is_contiguous(t)",
    "t.data_ptr()",
    "data_ptr(t)",
    "t.storage_offset()",
    "t.untyped_storage()",
    "t.dtype is u.dtype is v.dtype is float32",
    "t.shape == u.shape == v.shape",
    "fields(t)",
    "check_kinds(t, u, v)",
    "check_all(t, u, v)",
)
"""What a launcher may ask of a tensor. The last two are torch.compile's own guards: type, dispatch keys (layout, conj,
neg), dtype, device and rank of three tensors in one call; and these with sizes and strides."""

_PYTHON = (
    "unpack(1024)",
    "0 <= 1024 <= 2147483647",
    "(1024 + 127) // 128",
    "-(-n // 128)",
    _YARDSTICK,
    "pack19(buffer, 0, *twenty)",
    "words64[0] = 1",
    "local.free",
    "free.append(free.pop())",
    "lock.acquire(); lock.release()",
    "get_ident()",
    "function()",
    "function3(t, u, v)",
    "stars(t, u, v)",
    "keywords(t, u, v)",
    "keywords(t, u, v, out=None, stream=None, device=None)",
    "guarded()",
    "known.get((0, 4096, (64, 16), (256,), 1))",
)
"""What it may do without a tensor."""

_ALLOCATIONS = (
    "torch.empty((1024,), dtype=float32, device=device)",
    "torch.empty((1024,), dtype=float32, device='cuda:0')",
    "empty((1024,), dtype=float32, device=device)",
    "torch.empty_strided((1024,), (1,), dtype=float32, device=device)",
    "torch.empty_like(t)",
    "empty_like(t)",
    "t.new_empty((1024,))",
    "new_empty(t, (1024,))",
    "t.new_empty((1024,), dtype=float32)",
    "t.new_empty_strided((1024,), (1,))",
    "torch.zeros((1024,), dtype=float32, device=device)",
    "empty_strided_cuda((1024,), (1,), float32)",
    "torch.ops.aten.empty_like.default(t)",
    "aten_new_empty(t, [1024])",
    "caching_delete(caching_alloc(4096, 0, 0))",
)
"""How it may make an output."""

_DRIVER = (
    "current_stream(0)",
    "torch.cuda.current_stream().cuda_stream",
    "current_device()",
    "cuCtxGetDevice()",
    "cuCtxGetCurrent()",
    "enter(0)",
    "CUstream(0)",
    "config.gridDimX = 8",
    "config.hStream = stream",
    "CUlaunchConfig()",
    "cuLaunchKernelEx(config, kernel, parameters, 0)",
    "cuLaunchKernel(kernel, 8, 1, 1, 128, 1, 1, 0, stream, parameters, 0)",
    "cuLaunchKernel(kernel, 8, 1, 1, 128, 1, 1, 0, 0, parameters, 0)",
    "by_ctypes(config_address, handle, pointers, None)",
    "by_ctypes(*arguments)",
    "by_ctypes_with_gil(config_address, handle, pointers, None)",
    "launch_once()",
    "cuKernelSetAttribute(attribute, 0, kernel, ordinal)",
    "encode()",
)
"""What it asks of the driver and of torch's runtime; ``launch_once`` is compiled, and called through tvm-ffi."""


_HELPED = ("read(t, u, v)", "read_one(t)", "read_unasked(t, u, v)")
"""What a call helper asks in one call: three tensors, one; and three of which no question is asked through Python."""

_HELPED_DRIVER = ("compiled()",)
"""The launch, called by it."""


@dataclass(frozen=True, slots=True)
class _Guarded:
    """A frame that is marked busy, the cheapest form of a guard."""

    frame: Any

    def __call__(self) -> None:
        frame = self.frame
        frame.busy = True
        try:
            pass
        finally:
            frame.busy = False


class _Frame:
    __slots__ = ("busy",)


class _Local(threading.local):
    def __init__(self) -> None:
        self.free: list[object] = [object()]


def _function() -> None:
    return None


def _function3(_a: object, _b: object, _c: object) -> None:
    return None


def _stars(*arguments: object) -> object:
    _, _, c = arguments
    return c


def _keywords(*arguments: object, out: object = None, stream: object = None, device: object = None) -> object:
    _, _, c = arguments
    return out or stream or device or c


def _unpack(length: int) -> int:
    (one,) = (length,)
    return one


def _guards(tensors: tuple[torch.Tensor, ...], *, dynamic: bool) -> Any:
    """Return the ``check`` of torch.compile's guards; None if this torch has them not, or in another form."""
    try:
        guards: Any = importlib.import_module("torch._C._dynamo.guards").TensorGuards
        free = [[None] if dynamic else [1024]] * len(tensors)
        steps = [[None] if dynamic else [1]] * len(tensors)
        return guards(*tensors, dynamic_dims_sizes=free, dynamic_dims_strides=steps).check
    except (AttributeError, ImportError, TypeError, ValueError):
        return None


def _plain_names(tensors: tuple[torch.Tensor, ...]) -> dict[str, Any]:
    """Everything that the pieces name and that needs no GPU."""
    t, u, v = tensors
    return {
        "t": t,
        "u": u,
        "v": v,
        "Tensor": torch.Tensor,
        "strided": torch.strided,
        "float32": torch.float32,
        "torch": torch,
        "shape": t.shape,
        "n": 1024,
        "device": t.device,
        "empty": torch.empty,
        "is_neg": torch.Tensor.is_neg,
        "is_contiguous": torch.Tensor.is_contiguous,
        "data_ptr": torch.Tensor.data_ptr,
        "new_empty": torch.Tensor.new_empty,
        "empty_like": torch.empty_like,
        "aten_new_empty": torch.ops.aten.new_empty.default,
        "fields": operator.attrgetter("dtype", "shape", "layout", "is_cuda"),
        "check_kinds": _guards(tensors, dynamic=True),
        "check_all": _guards(tensors, dynamic=False),
        "unpack": _unpack,
        "pack": Struct("<QQQi").pack_into,
        "pack19": Struct("<19Qi").pack_into,
        "buffer": bytearray(256),
        "twenty": tuple(range(20)),
        "words64": (ctypes.c_uint64 * 4)(),
        "local": _Local(),
        "free": [object()],
        "lock": threading.Lock(),
        "get_ident": threading.get_ident,
        "function": _function,
        "function3": _function3,
        "stars": _stars,
        "keywords": _keywords,
        "guarded": _Guarded(_Frame()),
        "known": {(0, 4096, (64, 16), (256,), 1): object()},
    }


def _helped_names(tensors: tuple[torch.Tensor, ...]) -> dict[str, Any]:
    """Return what a call helper makes; nothing if none is installed."""
    helper, runtime = installed_helper(), TorchRuntime()
    if helper is None:
        return {}
    bare = helper.tensor_reader(runtime.exchange_api(), torch.Tensor, tensors, ((),) * len(tensors))
    return {"read": runtime.reader(tensors), "read_one": runtime.reader(tensors[:1]), "read_unasked": bare}


def _driver_names(stage: Stage) -> dict[str, Any]:
    """Everything that the pieces name and that needs a GPU."""
    driver: Any = importlib.import_module("cuda.bindings.driver")
    ours: Any = importlib.import_module("trunnion_nvrtc.backend.driver")
    core: Any = torch._C  # noqa: SLF001 - what torch's own launchers call
    addresses = [tensor.data_ptr() for tensor in stage.tensors]
    words = (ctypes.c_uint64 * 4)(*addresses, 0)
    base = ctypes.addressof(words)
    pointers = (ctypes.c_void_p * 4)(*(base + 8 * index for index in range(4)))
    config = driver.CUlaunchConfig()
    for axis in "XYZ":
        setattr(config, f"gridDim{axis}", 1)
        setattr(config, f"blockDim{axis}", 1)
    names = {
        "current_stream": core._cuda_getCurrentRawStream,  # noqa: SLF001 - what torch's own launchers call
        "current_device": core._cuda_getDevice,  # noqa: SLF001 - what torch's own launchers call
        "empty_strided_cuda": getattr(core._dynamo.guards, "_empty_strided_cuda", None),  # noqa: SLF001 - what torch's own launchers call
        "caching_alloc": torch.cuda.caching_allocator_alloc,
        "caching_delete": torch.cuda.caching_allocator_delete,
        "enter": ours.cuda_driver().enter,
        "config": config,
        "stream": driver.CUstream(0),
        "kernel": stage.kernel,
        "words": words,
        "parameters": ctypes.addressof(pointers),
        "attribute": driver.CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
        "ordinal": driver.CUdevice(0),
        "launch_once": functools.partial(
            build().raw, int(stage.kernel), 0, 1, 1, 0, 0, 0, 0, 1, 1, 1, *addresses
        ),
        "encode": _Encode(driver, addresses[0]),
    }
    calls = ("CtxGetDevice", "CtxGetCurrent", "LaunchKernelEx", "LaunchKernel", "KernelSetAttribute")
    names.update({f"cu{call}": getattr(driver, f"cu{call}") for call in calls})
    names.update(_launch_names(config, int(stage.kernel), pointers))
    return names | {"CUstream": driver.CUstream, "CUlaunchConfig": driver.CUlaunchConfig}


def _launch_names(config: Any, kernel: int, pointers: ctypes.Array[ctypes.c_void_p]) -> dict[str, Any]:
    """Return what launches without the bindings, and what it is called with."""
    launch_ex = ctypes.CDLL("libcuda.so.1").cuLaunchKernelEx
    function = ctypes.cast(launch_ex, ctypes.c_void_p).value or 0
    address, handle = ctypes.c_void_p(int(config.getPtr())), ctypes.c_void_p(kernel)
    given = (address.value or 0, kernel, ctypes.addressof(pointers), 0)
    referred = [ctypes.byref(ctypes.c_char.from_address(one)) for one in given[:3]]
    return {
        "by_ctypes": launch_ex,
        "by_ctypes_with_gil": ctypes.PyDLL("libcuda.so.1").cuLaunchKernelEx,
        "config_address": address,
        "handle": handle,
        "pointers": pointers,
        "arguments": (*referred, None),
        "compiled": TorchRuntime().caller(function, given, (config, pointers)),
    }


class _Encode:
    """A tensor map through the bindings, its arguments made beforehand."""

    def __init__(self, driver: Any, address: int) -> None:
        wide, narrow = driver.cuuint64_t, driver.cuuint32_t
        self._call = driver.cuTensorMapEncodeTiled
        self._arguments = (
            driver.CUtensorMapDataType(7),
            2,
            address,
            [wide(64), wide(16)],
            [wide(256)],
            [narrow(64), narrow(16)],
            [narrow(1), narrow(1)],
            driver.CUtensorMapInterleave(0),
            driver.CUtensorMapSwizzle(0),
            driver.CUtensorMapL2promotion(2),
            driver.CUtensorMapFloatOOBfill(0),
        )

    def __call__(self) -> Any:
        return self._call(*self._arguments)


def _texts(*, on_gpu: bool, helped: bool) -> tuple[str, ...]:
    driver = (*_ALLOCATIONS, *_DRIVER, *(_HELPED_DRIVER if helped else ())) if on_gpu else ()
    return (_FLOOR, *_TENSOR, *(_HELPED if helped else ()), *_PYTHON, *driver)


def _possible(texts: tuple[str, ...], names: dict[str, Any]) -> tuple[dict[str, PythonCall], list[str]]:
    """Return the pieces that work here, and a line for each that does not: some have no public name."""
    trials, refused = {}, []
    for text in texts:
        trial = PythonCall(text, names)
        try:
            trial.seconds(1)
        except (AttributeError, RuntimeError, TypeError, ValueError) as error:
            refused.append(f"not here: {text}: {type(error).__name__}: {error}".partition("\n")[0])
        else:
            trials[text] = trial
    return trials, refused


def pieces_report(device: Device | None, plan: Rounds) -> str:
    """Time every piece and return a table in nanoseconds, the empty loop taken off.

    Parameters
    ----------
    device
        Where the tensors are; without a GPU they are on the host, and what needs a GPU is left out.
    plan
        How much is measured.
    """
    gpu = device if device is not None and device.simulator is None else None
    if gpu is not None:
        stage = Stage(Case(3), gpu)
        names, synchronize = _plain_names(stage.tensors) | _driver_names(stage), gpu.synchronize
    else:
        names, synchronize = _plain_names(tuple(torch.zeros(1024) for _ in range(3))), lambda: None
    tensors = (names["t"], names["u"], names["v"])
    helped = _helped_names(tensors)
    trials, refused = _possible(_texts(on_gpu=gpu is not None, helped=bool(helped)), names | helped)
    every = interleave({"pieces": trials}, synchronize, plan)["pieces"]
    quiet = quiet_rounds(every[_YARDSTICK])
    samples = {text: [taken[index] for index in quiet] for text, taken in every.items()}
    floor = summarise(samples[_FLOOR]).median
    lines = [
        f"ns of one piece, without the {floor * 1e3:.0f} ns of the timing loop; median, quartiles; {len(quiet)} rounds"
    ]
    for text, taken in samples.items():
        one = summarise([value - floor for value in taken])
        lines.append(f"{one.median * 1e3:8.0f}  ({one.low * 1e3:6.0f} to {one.high * 1e3:6.0f})  {text}")
    where = gpu.name if gpu else "no GPU: tensors on the host, nothing that asks the driver"
    return "\n".join([where, *lines, *refused])
