// The CUDA driver, found at run time: a launcher loads on a machine without one, and says then what is missing.
#pragma once

#include <cuda.h>
#include <dlfcn.h>

#include <trunnion/refusals.hpp>

namespace trunnion {

static_assert(CUDA_VERSION >= 12080, "cuda.h of CUDA 12.8 or later is needed");

// The entry points, by the names under which cuda.h declares them.
struct Driver {
  decltype(&::cuInit) init;
  decltype(&::cuDriverGetVersion) driver_get_version;
  decltype(&::cuGetErrorName) get_error_name;
  decltype(&::cuGetErrorString) get_error_string;
  decltype(&::cuDeviceGetCount) device_get_count;
  decltype(&::cuDeviceGet) device_get;
  decltype(&::cuDeviceGetAttribute) device_get_attribute;
  decltype(&::cuDevicePrimaryCtxRetain) primary_ctx_retain;
  decltype(&::cuDevicePrimaryCtxRelease) primary_ctx_release;
  decltype(&::cuCtxGetCurrent) ctx_get_current;
  decltype(&::cuCtxGetDevice) ctx_get_device;
  decltype(&::cuCtxGetId) ctx_get_id;
  decltype(&::cuCtxPushCurrent) ctx_push_current;
  decltype(&::cuCtxPopCurrent) ctx_pop_current;
  decltype(&::cuCtxSynchronize) ctx_synchronize;
  decltype(&::cuCtxGetLimit) ctx_get_limit;
  decltype(&::cuCtxSetLimit) ctx_set_limit;
  decltype(&::cuCtxResetPersistingL2Cache) ctx_reset_persisting;
  decltype(&::cuCtxGetStreamPriorityRange) ctx_get_priorities;
  decltype(&::cuStreamGetCtx) stream_get_ctx;
  decltype(&::cuStreamIsCapturing) stream_is_capturing;
  decltype(&::cuThreadExchangeStreamCaptureMode) exchange_capture_mode;
  decltype(&::cuStreamCreate) stream_create;
  decltype(&::cuStreamDestroy) stream_destroy;
  decltype(&::cuStreamSynchronize) stream_synchronize;
  decltype(&::cuStreamSetAttribute) stream_set_attribute;
  decltype(&::cuLibraryLoadData) library_load_data;
  decltype(&::cuLibraryUnload) library_unload;
  decltype(&::cuLibraryGetKernel) library_get_kernel;
  decltype(&::cuLibraryGetGlobal) library_get_global;
  decltype(&::cuKernelSetAttribute) kernel_set_attribute;
  decltype(&::cuOccupancyMaxActiveBlocksPerMultiprocessor) most_active_blocks;
  decltype(&::cuLaunchKernelEx) launch_kernel_ex;
  decltype(&::cuMemcpyHtoDAsync) memcpy_htod;
  decltype(&::cuMemcpyDtoDAsync) memcpy_dtod;
  decltype(&::cuMemsetD8Async) memset_d8;
  decltype(&::cuMemsetD16Async) memset_d16;
  decltype(&::cuMemsetD32Async) memset_d32;
  decltype(&::cuMemsetD2D32Async) memset_2d_d32;
  decltype(&::cuTensorMapEncodeTiled) encode_tiled;
  decltype(&::cuTensorMapEncodeIm2col) encode_im2col;
};

// Name and least CUDA version of each entry point, in the order of `Driver`'s members.
struct EntryPoint {
  const char* name;
  int cuda_version;
};

inline constexpr EntryPoint kEntryPoints[] = {
    {"cuInit", 2000},
    {"cuDriverGetVersion", 2020},
    {"cuGetErrorName", 6000},
    {"cuGetErrorString", 6000},
    {"cuDeviceGetCount", 2000},
    {"cuDeviceGet", 2000},
    {"cuDeviceGetAttribute", 2000},
    {"cuDevicePrimaryCtxRetain", 7000},
    {"cuDevicePrimaryCtxRelease", 11000},
    {"cuCtxGetCurrent", 4000},
    {"cuCtxGetDevice", 2000},
    {"cuCtxGetId", 12000},
    {"cuCtxPushCurrent", 4000},
    {"cuCtxPopCurrent", 4000},
    {"cuCtxSynchronize", 2000},
    {"cuCtxGetLimit", 3010},
    {"cuCtxSetLimit", 3010},
    {"cuCtxResetPersistingL2Cache", 11000},
    {"cuCtxGetStreamPriorityRange", 5050},
    {"cuStreamGetCtx", 9020},
    {"cuStreamIsCapturing", 10000},
    {"cuThreadExchangeStreamCaptureMode", 10010},
    {"cuStreamCreate", 2000},
    {"cuStreamDestroy", 4000},
    {"cuStreamSynchronize", 2000},
    {"cuStreamSetAttribute", 11000},
    {"cuLibraryLoadData", 12000},
    {"cuLibraryUnload", 12000},
    {"cuLibraryGetKernel", 12000},
    {"cuLibraryGetGlobal", 12000},
    {"cuKernelSetAttribute", 12000},
    {"cuOccupancyMaxActiveBlocksPerMultiprocessor", 6050},
    {"cuLaunchKernelEx", 11060},
    {"cuMemcpyHtoDAsync", 3020},
    {"cuMemcpyDtoDAsync", 3020},
    {"cuMemsetD8Async", 3020},
    {"cuMemsetD16Async", 3020},
    {"cuMemsetD32Async", 3020},
    {"cuMemsetD2D32Async", 3020},
    {"cuTensorMapEncodeTiled", 12000},
    {"cuTensorMapEncodeIm2col", 12000},
};

// What a program's image is for, for messages: "sm_90a", of PTX "compute_90a"; empty if it does not say.
struct ImageTarget {
  char text[24] = {};

  void read(const void* image, size_t nbytes);
};

inline constexpr int kLeastVersion = 12000;  // of CUDA, which brought cuLibraryLoadData and its like
inline constexpr size_t kVersionEntryPoint = 1, kNameEntryPoint = 2, kTextEntryPoint = 3;
inline constexpr size_t kEntryPointCount = sizeof kEntryPoints / sizeof *kEntryPoints;
static_assert(sizeof(Driver) == kEntryPointCount * sizeof(void*), "a row for each member");

// Find every entry point. The library stays open: drivers do not survive being closed.
bool find_driver(Driver& driver);

// The mode of the calling thread is relaxed, so that what it asks the driver breaks no capture of somebody else's stream.
class RelaxedMode {
 public:
  explicit RelaxedMode(const Driver& driver)
      : driver_(driver), status_(driver.exchange_capture_mode(&mode_)) {}
  RelaxedMode(const RelaxedMode&) = delete;
  RelaxedMode& operator=(const RelaxedMode&) = delete;
  ~RelaxedMode() {
    if (status_ == CUDA_SUCCESS) driver_.exchange_capture_mode(&mode_);
  }

  CUresult status() const { return status_; }

  static constexpr const char* kCall = "cuThreadExchangeStreamCaptureMode";

 private:
  const Driver& driver_;
  CUstreamCaptureMode mode_ = CU_STREAM_CAPTURE_MODE_RELAXED;
  CUresult status_;
};

// A launch that was refused, for the error: the kernel's name, the attributes as one word each, "id:number,number", the
// least and the greatest number that is a priority, if they are known, and the grid and the block, six numbers.
struct RefusedLaunch {
  Name kernel;
  Text attributes, priorities, shape;
};

// A kernel that the driver refuses, by its exact name; the device is none where it is looked up for all of them. Or a
// variable.
struct RefusedKernel {
  const char* symbol;
  int32_t device;
  const char* what = "kernel";

  static constexpr int32_t kNoDevice = -1;
};

// A tensor map that was to be encoded: for people, and what it was encoded from, in numbers.
struct RefusedMap {
  Text shown, numbers;
};

// What is known of a call that failed.
struct RefusedCall {
  const CUstream* stream = nullptr;       // that the call was given, if it takes one
  const Text* more = nullptr;             // what else failed
  const RefusedLaunch* launch = nullptr;  // what it was to launch
  const ImageTarget* image = nullptr;     // what was loaded, if that may be for another device
  const RefusedKernel* kernel = nullptr;  // what it is about
  const RefusedMap* map = nullptr;        // what it was to encode
};

// The status of a call that failed.
bool raise_driver(const Driver& driver, const char* call, CUresult code, const RefusedCall& refused = {});

// Whether a call did what it was to do; else its status is raised.
inline bool succeeded(const Driver& driver, const char* call, CUresult status,
                      const RefusedCall& refused = {}) {
  return __builtin_expect(status == CUDA_SUCCESS, 1) || raise_driver(driver, call, status, refused);
}

// What fails while everything is done all the same: the first is raised at the end, and says what followed.
class Failures {
 public:
  explicit Failures(const Driver& driver) : driver_(driver) {}

  void note(const char* call, CUresult status);

  // False if there is any: it is raised.
  bool settle() const;

 private:
  const Driver& driver_;
  const char* call_ = nullptr;
  CUresult status_ = CUDA_SUCCESS;
  Text more_;
};

}  // namespace trunnion
