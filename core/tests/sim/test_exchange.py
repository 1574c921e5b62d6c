"""Simulated tensors in native code: by the exchange API's own functions, and through TVM-FFI if it is installed."""

import ctypes
import gc
import subprocess

import pytest
import torch

from trunnion import dlpack
from trunnion.errors import TrunnionError
from trunnion.sim import exchange
from trunnion.sim.tensor import SimTensor
from trunnion.sim.trace import Allocated

pytestmark = pytest.mark.tvm_ffi_abi


STREAM = (ctypes.c_int, ctypes.c_int32, ctypes.c_int32, ctypes.POINTER(ctypes.c_void_p))
ALLOCATE = (
    ctypes.c_int,
    ctypes.POINTER(dlpack.Tensor),
    ctypes.POINTER(exchange._ManagedPointer),
    ctypes.c_void_p,
    ctypes.c_void_p,
)
SET_ERROR = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_char_p)


class Table:
    """The exchange API, read from the capsule as native code reads it."""

    def __init__(self):
        prototype = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)
        get = prototype(("PyCapsule_GetPointer", ctypes.pythonapi))
        self.api = dlpack.ExchangeApi.from_address(
            get(SimTensor.__dlpack_c_exchange_api__, b"dlpack_exchange_api")
        )

    def export(self, tensor):
        out = exchange._ManagedPointer()
        assert ctypes.CFUNCTYPE(*exchange._FROM)(self.api.from_object)(id(tensor), ctypes.byref(out)) == 0
        return out

    def take(self, managed):
        out = ctypes.c_void_p()
        assert ctypes.CFUNCTYPE(*exchange._TO)(self.api.to_object)(managed, ctypes.byref(out)) == 0
        tensor = ctypes.cast(out, ctypes.py_object).value
        ctypes.PYFUNCTYPE(None, ctypes.py_object)(("Py_DecRef", ctypes.pythonapi))(tensor)
        return tensor

    def stream(self, kind, device):
        out = ctypes.c_void_p(1)
        call = ctypes.CFUNCTYPE(*STREAM)(self.api.current_stream)
        assert call(kind, device, ctypes.byref(out)) == 0
        return out.value or 0

    def allocate(self, device, shape, dtype=(2, 32, 1)):
        extents = (ctypes.c_int64 * len(shape))(*shape)
        wanted = dlpack.Tensor(
            None, dlpack.Device(dlpack.CUDA, device), len(shape), dlpack.DataType(*dtype), extents, None, 0
        )
        out, said = exchange._ManagedPointer(), []
        report = SET_ERROR(lambda _, kind, text: said.append((kind, text)))
        call = ctypes.CFUNCTYPE(*ALLOCATE)(self.api.allocate)
        status = call(ctypes.byref(wanted), ctypes.byref(out), None, ctypes.cast(report, ctypes.c_void_p))
        return status, out, said


def test_an_exported_tensor_is_of_its_device(simulator):
    tensor = simulator.tensor(torch.arange(6.0).reshape(2, 3), 1)
    managed = Table().export(tensor)
    seen = managed.contents.tensor
    assert (seen.device.type, seen.device.id, seen.data) == (2, 1, tensor.data_ptr())
    back = Table().take(managed)
    assert isinstance(back, SimTensor)
    assert (str(back.device), back.data_ptr(), back.tolist()) == (
        "cuda:1",
        tensor.data_ptr(),
        tensor.tolist(),
    )


def test_the_stream_is_the_threads_current_one(simulator):
    stream = simulator.new_stream(1)
    with simulator.stream(stream, 1):
        assert (Table().stream(2, 1), Table().stream(2, 0), Table().stream(1, 0)) == (stream, 0, 0)


def test_an_allocation_is_device_memory_until_it_is_given_back(simulator):
    gc.collect()
    before = len(simulator.memory.allocations())
    status, managed, said = Table().allocate(1, (2, 3))
    address = managed.contents.tensor.data
    assert (status, said, simulator.memory.find(address).device) == (0, [], 1)
    assert simulator.trace == (Allocated(address, 24, 1, 0),)
    tensor = Table().take(managed)
    assert (str(tensor.device), tuple(tensor.shape), tensor.data_ptr()) == ("cuda:1", (2, 3), address)
    del tensor
    gc.collect()
    assert len(simulator.memory.allocations()) == before


@pytest.mark.parametrize(("device", "dtype"), [(7, (2, 32, 1)), (0, (99, 3, 1))])
def test_an_allocation_that_fails_says_so(simulator, device, dtype):
    status, _, said = Table().allocate(device, (2,), dtype)
    assert (status, said[0][0]) == (-1, b"RuntimeError")
    with pytest.raises(TrunnionError):
        simulator.raise_pending()


SOURCE = r"""
#include <tvm/ffi/container/tensor.h>
#include <tvm/ffi/extra/c_env_api.h>
#include <tvm/ffi/function.h>

tvm::ffi::Tensor Twice(tvm::ffi::TensorView x) {
  tvm::ffi::Tensor y = tvm::ffi::Tensor::FromEnvAlloc(TVMFFIEnvTensorAlloc, x.shape(), x.dtype(), x.device());
  for (int64_t i = 0; i < x.numel(); ++i) {
    static_cast<float*>(y.data_ptr())[i] = 2 * static_cast<const float*>(x.data_ptr())[i];
  }
  return y;
}
int64_t Stream(tvm::ffi::TensorView x) {
  return reinterpret_cast<int64_t>(TVMFFIEnvGetStream(x.device().device_type, x.device().device_id));
}
int64_t Device(tvm::ffi::TensorView x) { return x.device().device_type * 100 + x.device().device_id; }
TVM_FFI_DLL_EXPORT_TYPED_FUNC(twice, Twice)
TVM_FFI_DLL_EXPORT_TYPED_FUNC(stream, Stream)
TVM_FFI_DLL_EXPORT_TYPED_FUNC(device, Device)
"""


@pytest.fixture(scope="module")
def module(tmp_path_factory):
    tvm_ffi = pytest.importorskip("tvm_ffi", reason="the extra 'cpp' is not installed")
    folder = tmp_path_factory.mktemp("module")
    (folder / "module.cc").write_text(SOURCE)
    from tvm_ffi import libinfo

    includes = [f"-I{path}" for path in libinfo.include_paths()]
    command = ["c++", "-std=c++17", "-O0", "-shared", "-fPIC", *includes, "module.cc", "-o", "module.so"]
    subprocess.run(command, cwd=folder, check=True)
    return tvm_ffi.load_module(str(folder / "module.so"))


@pytest.mark.parametrize("device", [0, 1])
def test_native_code_sees_the_device_and_the_current_stream(simulator, module, device):
    tensor = simulator.tensor(torch.arange(3.0), device)
    assert module.device(tensor) == 200 + device
    stream = simulator.new_stream(device)
    with simulator.stream(stream, device):
        assert module.stream(tensor) == stream
    assert module.stream(tensor) == 0


def test_native_code_allocates_device_memory(simulator, module):
    tensor = simulator.tensor(torch.arange(6.0).reshape(2, 3), 1)
    stream = simulator.new_stream(1)
    simulator.clear_trace()
    with simulator.stream(stream, 1), simulator.reraise():
        result = module.twice(tensor)
    assert isinstance(result, SimTensor)
    assert (str(result.device), tuple(result.shape)) == ("cuda:1", (2, 3))
    assert torch.equal(result.cpu(), tensor.cpu() * 2)
    assert simulator.trace == (Allocated(result.data_ptr(), 24, 1, stream),)
    assert simulator.memory.find(result.data_ptr()).device == 1


def test_nothing_leaks_through_native_code(simulator, module):
    tensor = simulator.tensor(torch.arange(6.0))
    gc.collect()
    before = len(simulator.memory.allocations())
    for _ in range(20):
        result = module.twice(tensor)
    del result
    gc.collect()
    assert len(simulator.memory.allocations()) == before


def test_a_failed_allocation_is_an_error(simulator, module):
    tensor = simulator.tensor(torch.arange(6.0))
    tensor._ordinal = 7  # a device that is not there
    with pytest.raises(Exception, match="device"), simulator.reraise():
        module.twice(tensor)
