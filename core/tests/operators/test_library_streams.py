"""An operator in C++ runs on the stream that torch says is current on its tensors' device, which is simulated."""

from __future__ import annotations

import ctypes
import subprocess

import pytest
import torch

import trunnion
from trunnion import examples
from trunnion.dlpack import CUDA
from trunnion.sim.trace import Launched
from trunnion.toolchain.host_headers import ffi_files

# What an operator finds in torch's library of CUDA, which is not there.
TORCH_CUDA = """
#include <cstdint>
extern "C" {
void* current_streams[2];
int32_t aoti_torch_get_current_cuda_stream(int32_t device, void** stream) {
  *stream = current_streams[device];
  return 0;
}
}
"""


@pytest.fixture(scope="session")
def torch_cuda(tmp_path_factory):
    """Return what stays loaded for the rest of the process: the streams that it says are current."""
    folder = tmp_path_factory.mktemp("torch_cuda")
    source, library = folder / "cuda.cc", folder / "libtorch_cuda.so"
    source.write_text(TORCH_CUDA)
    words = ["-shared", "-fPIC", "-Wl,-soname,libtorch_cuda.so", "-o", library, source]
    subprocess.run(["c++", *words], check=True)
    return (ctypes.c_void_p * 2).in_dll(ctypes.CDLL(str(library)), "current_streams")


@pytest.fixture
def current_streams(torch_cuda):
    yield torch_cuda
    torch_cuda[:] = [None, None]  # these are streams of a simulator, which may end before the process


def on_cuda(tensor, device, monkeypatch):
    """Return a tensor's memory as a tensor of CUDA's."""
    monkeypatch.setattr(torch.cuda, "_lazy_init", lambda: None)
    capsule = torch.utils.dlpack.to_dlpack(tensor)
    get = ctypes.pythonapi.PyCapsule_GetPointer
    get.restype, get.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    place = (ctypes.c_int32 * 2).from_address(get(capsule, b"dltensor") + ctypes.sizeof(ctypes.c_void_p))
    place[:] = (CUDA, device)
    return torch._C._from_dlpack(capsule)


def stream_of_tvm_ffi(device):
    """Return the stream that others of TVM-FFI's functions run on."""
    get = ctypes.CDLL(ffi_files("tests").library).TVMFFIEnvGetStream
    get.restype, get.argtypes = ctypes.c_void_p, [ctypes.c_int32, ctypes.c_int32]
    return get(CUDA, device)


@pytest.mark.skipif(torch.version.cuda is not None, reason="torch's own library of CUDA would be asked")
def test_it_runs_on_the_current_stream_of_its_tensors_device(simulator, current_streams, name, monkeypatch):
    program = trunnion.compile(examples.load("vector_add").program, "tvm_ffi", target="sm_90a")
    op = trunnion.torch_op(program, name, cpp=True)
    for device in (1, 0, 1):
        current_streams[:] = [simulator.new_stream(one) for one in range(2)]
        x, y, z = (on_cuda(torch.ones(8), device, monkeypatch) for _ in range(3))
        simulator.clear_trace()
        op.out(x, y, out=z)
        launched = [one for one in simulator.trace if isinstance(one, Launched)]
        assert [one.stream for one in launched] == [current_streams[device]]
        assert stream_of_tvm_ffi(device) is None, "as it was before"
