"""What the tests of C++ launchers share: every compiler of this machine, and a launcher that needs no other text."""

from __future__ import annotations

import shutil

import pytest

from trunnion.contract.compiler import DeviceImage
from trunnion.contract.spec import Target

COMPILERS = [name for name in ("g++", "clang++") if shutil.which(name)]

STAND_IN = """
#include <cuda.h>
#include <tvm/ffi/c_api.h>
#include <cstring>

extern "C" {
extern const unsigned char trunnion_image[] __attribute__((visibility("hidden")));
extern const unsigned char trunnion_image_end[] __attribute__((visibility("hidden")));
extern const char trunnion_kernel_names[] __attribute__((visibility("hidden")));

static int32_t answer(const void* data, uint64_t size, TVMFFIAny* result) {
  TVMFFIByteArray bytes{static_cast<const char*>(data), size};
  TVMFFIAny view;
  view.type_index = kTVMFFIByteArrayPtr;
  view.zero_padding = 0;
  view.v_ptr = &bytes;
  return TVMFFIAnyViewToOwnedAny(&view, result);
}

__attribute__((visibility("default"))) int32_t __tvm_ffi_image(void*, const TVMFFIAny*, int32_t, TVMFFIAny* result) {
  return answer(trunnion_image, trunnion_image_end - trunnion_image, result);
}

__attribute__((visibility("default"))) int32_t __tvm_ffi_names(void*, const TVMFFIAny*, int32_t, TVMFFIAny* result) {
  const char* name = trunnion_kernel_names;
  while (*name) name += strlen(name) + 1;
  return answer(trunnion_kernel_names, name - trunnion_kernel_names, result);
}

__attribute__((visibility("default"))) int32_t __tvm_ffi_placed(void*, const TVMFFIAny*, int32_t, TVMFFIAny* result) {
  static_assert(sizeof(CUtensorMap) == 128 && CU_LAUNCH_ATTRIBUTE_PREFERRED_CLUSTER_DIMENSION != 0);
  result->type_index = kTVMFFIInt;
  result->zero_padding = 0;
  result->v_int64 = reinterpret_cast<uintptr_t>(trunnion_image) % 64;
  return 0;
}
}
"""
"""Returns what was embedded, through TVM-FFI."""


@pytest.fixture(params=COMPILERS or ["g++"])
def cxx(request, monkeypatch):
    """Each compiler that this machine has; without one, the tests say so by failing."""
    monkeypatch.setenv("CXX", request.param)
    return request.param


@pytest.fixture
def stand_in():
    return STAND_IN


@pytest.fixture
def embedded():
    """Make an image that is embedded."""

    def make(data: bytes = b"\x7fELF stand-in", kind: str = "cubin") -> DeviceImage:
        return DeviceImage(kind=kind, data=data, target=Target("cuda", "sm_90a"), kernels=())

    return make
