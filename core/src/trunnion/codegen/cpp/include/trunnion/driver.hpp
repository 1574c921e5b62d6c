// The CUDA driver, found at run time: a launcher loads on a machine without one, and says then what is missing.
#pragma once

#include <cuda.h>
#include <dlfcn.h>

#include <trunnion/refusals.hpp>

namespace trunnion {

static_assert(CUDA_VERSION >= 12080, "cuda.h of CUDA 12.8 or later is needed");

// The entry points: the name under which cuda.h declares each, what it is called here, and its least version of CUDA.
#define TRUNNION_ENTRY_POINTS(X) \
  X(cuInit, init, 2000) \
  X(cuDriverGetVersion, driver_get_version, 2020) \
  X(cuGetErrorName, get_error_name, 6000) \
  X(cuGetErrorString, get_error_string, 6000) \
  X(cuDeviceGetCount, device_get_count, 2000) \
  X(cuDeviceGet, device_get, 2000) \
  X(cuDeviceGetAttribute, device_get_attribute, 2000) \
  X(cuDevicePrimaryCtxRetain, primary_ctx_retain, 7000) \
  X(cuDevicePrimaryCtxRelease, primary_ctx_release, 11000) \
  X(cuCtxGetCurrent, ctx_get_current, 4000) \
  X(cuCtxGetDevice, ctx_get_device, 2000) \
  X(cuCtxGetId, ctx_get_id, 12000) \
  X(cuCtxPushCurrent, ctx_push_current, 4000) \
  X(cuCtxPopCurrent, ctx_pop_current, 4000) \
  X(cuCtxSynchronize, ctx_synchronize, 2000) \
  X(cuCtxGetLimit, ctx_get_limit, 3010) \
  X(cuCtxSetLimit, ctx_set_limit, 3010) \
  X(cuCtxResetPersistingL2Cache, ctx_reset_persisting, 11000) \
  X(cuCtxGetStreamPriorityRange, ctx_get_priorities, 5050) \
  X(cuStreamGetCtx, stream_get_ctx, 9020) \
  X(cuStreamIsCapturing, stream_is_capturing, 10000) \
  X(cuThreadExchangeStreamCaptureMode, exchange_capture_mode, 10010) \
  X(cuStreamCreate, stream_create, 2000) \
  X(cuStreamDestroy, stream_destroy, 4000) \
  X(cuStreamSynchronize, stream_synchronize, 2000) \
  X(cuStreamSetAttribute, stream_set_attribute, 11000) \
  X(cuLibraryLoadData, library_load_data, 12000) \
  X(cuLibraryUnload, library_unload, 12000) \
  X(cuLibraryGetKernel, library_get_kernel, 12000) \
  X(cuLibraryGetGlobal, library_get_global, 12000) \
  X(cuKernelSetAttribute, kernel_set_attribute, 12000) \
  X(cuOccupancyMaxActiveBlocksPerMultiprocessor, most_active_blocks, 6050) \
  X(cuLaunchKernelEx, launch_kernel_ex, 11060) \
  X(cuMemcpyHtoDAsync, memcpy_htod, 3020) \
  X(cuMemcpyDtoDAsync, memcpy_dtod, 3020) \
  X(cuMemsetD8Async, memset_d8, 3020) \
  X(cuMemsetD16Async, memset_d16, 3020) \
  X(cuMemsetD32Async, memset_d32, 3020) \
  X(cuMemsetD2D32Async, memset_2d_d32, 3020) \
  X(cuTensorMapEncodeTiled, encode_tiled, 12000) \
  X(cuTensorMapEncodeIm2col, encode_im2col, 12000)

#define TRUNNION_MEMBER(function, member, version) decltype(&::function) member;
struct Driver {
  TRUNNION_ENTRY_POINTS(TRUNNION_MEMBER)
};
#undef TRUNNION_MEMBER

// Name and version of each, in the order of `Driver`'s members.
struct EntryPoint {
  const char* name;
  int cuda_version;
};

#define TRUNNION_ROW(function, member, version) {#function, version},
inline constexpr EntryPoint kEntryPoints[] = {TRUNNION_ENTRY_POINTS(TRUNNION_ROW)};
#undef TRUNNION_ROW

// What a program's image is for, for messages: "sm_90a", of PTX "compute_90a"; empty if it does not say.
struct ImageTarget {
  char text[24] = {};

  void read(const void* image, size_t nbytes);
};

inline constexpr int kLeastVersion = 12000;  // of CUDA, which brought cuLibraryLoadData and its like
inline constexpr size_t kVersionEntryPoint = 1, kNameEntryPoint = 2, kTextEntryPoint = 3;
inline constexpr size_t kEntryPointCount = sizeof kEntryPoints / sizeof *kEntryPoints;

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
