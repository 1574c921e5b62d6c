"""What a producer of tensors can say that torch never does."""

from __future__ import annotations

import ctypes

import pytest

from trunnion import examples
from trunnion.codegen.cpp.loader import load_library


class DLTensor(ctypes.Structure):
    _fields_ = (
        ("data", ctypes.c_void_p),
        ("device", ctypes.c_int32 * 2),
        ("ndim", ctypes.c_int32),
        ("dtype", ctypes.c_uint8 * 4),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    )


class Any(ctypes.Structure):
    _fields_ = (("type_index", ctypes.c_int32), ("padding", ctypes.c_uint32), ("value", ctypes.c_void_p))


_DLTENSOR = 7  # kTVMFFIDLTensorPtr
_CUDA = 2  # kDLCUDA


class ErrorCell(ctypes.Structure):  # TVMFFIErrorCell, behind the head of an object
    _fields_ = (
        ("head", ctypes.c_uint64 * 3),
        ("kind", ctypes.c_void_p),
        ("kind_size", ctypes.c_size_t),
        ("message", ctypes.c_void_p),
        ("message_size", ctypes.c_size_t),
    )


@pytest.fixture
def said(built, simulator, tmp_path):
    """Call ``main_out`` of vector_add on three tensors of one extent and device; return what it raised."""
    library = built(examples.load("vector_add").program)
    load_library(library, "test")  # brings TVM-FFI into the process
    (tmp_path / "launcher.so").write_bytes(library)
    launcher = ctypes.CDLL(tmp_path / "launcher.so")

    def call(extent: int, device: int) -> str:
        memory = ctypes.create_string_buffer(512)
        address = (ctypes.addressof(memory) + 255) // 256 * 256
        shape = (ctypes.c_int64 * 1)(extent)
        places, dtype = (ctypes.c_int32 * 2)(_CUDA, device), (ctypes.c_uint8 * 4)(2, 32, 1, 0)
        tensor = DLTensor(address, places, 1, dtype, shape, None, 0)
        args = (Any * 3)(*(Any(_DLTENSOR, 0, ctypes.addressof(tensor)) for _ in range(3)))
        assert launcher["__tvm_ffi_main_out"](None, args, 3, ctypes.byref(Any())) == -1
        error = ctypes.POINTER(ErrorCell)()
        launcher.TVMFFIErrorMoveFromRaised(ctypes.byref(error))
        cell = error.contents
        return ctypes.string_at(cell.message, cell.message_size).decode()

    return call


def test_a_negative_extent_is_refused(said, simulator):
    assert said(-3, 0) == "argument 'a': got extent -3 along dimension 0, expected at least 0"


@pytest.mark.parametrize("device", [-1, 7])
def test_a_device_that_is_not_there_is_refused(said, simulator, device):
    last = simulator.devices - 1
    assert said(4, device) == f"argument 'device': got {device}, expected an integer, 0 to {last}"
