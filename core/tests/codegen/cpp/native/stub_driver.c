// A CUDA driver of two devices that launches nothing: it keeps each launch as bytes, for a test to read.
//
// A test can let launches fail, or hold them until it lets them go. Memory is never touched, so tensors may lie anywhere.
#include <cuda.h>
#include <dlpack/dlpack.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define EXPORT __attribute__((visibility("default")))
#define HELD_SECONDS 60  // longer than anything takes that works: then the launch fails, and the test with it

// What the driver knows of a kernel: it is told the sizes, because a launch brings addresses alone.
struct Kernel {
  const struct Kernel* next;
  char name[64];
  uint32_t number, count;
  uint32_t sizes[];
};

static struct {
  pthread_mutex_t mutex;
  const struct Kernel* kernels;  // the newest first
  pthread_cond_t changed;
  unsigned char* log;
  size_t used, room;
  int64_t launches;      // since the last reset
  int64_t failing_from;  // launches before the one that fails; negative: none fails
  CUresult failure;
  int recording, holding, waiting, loaded;
  int tensors;               // that were allocated and not freed
  int64_t allocations_left;  // before there is no memory
} state = {.mutex = PTHREAD_MUTEX_INITIALIZER,
           .changed = PTHREAD_COND_INITIALIZER,
           .failing_from = -1,
           .recording = 1,
           .allocations_left = INT64_MAX};

static __thread CUcontext current[16];
static __thread int depth;

static CUresult nothing(void) { return CUDA_SUCCESS; }

static CUresult version(int* out) { return *out = 13000, CUDA_SUCCESS; }

static CUresult count_devices(int* out) { return *out = 2, CUDA_SUCCESS; }

static CUresult get_device(CUdevice* out, int ordinal) { return *out = ordinal, CUDA_SUCCESS; }

static CUresult attribute(int* out, CUdevice_attribute which, CUdevice device) {
  (void)device;
  *out = which == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR ? 9 : 1 << 20;
  return CUDA_SUCCESS;
}

static CUresult retain(CUcontext* out, CUdevice device) {
  return *out = (CUcontext)(uintptr_t)(0x1000 + device), CUDA_SUCCESS;
}

static CUresult current_device(CUdevice* out) {
  if (depth == 0) return CUDA_ERROR_INVALID_CONTEXT;
  return *out = (CUdevice)((uintptr_t)current[depth - 1] - 0x1000), CUDA_SUCCESS;
}

static CUresult push(CUcontext context) {
  if (depth == 16) return CUDA_ERROR_OUT_OF_MEMORY;
  return current[depth++] = context, CUDA_SUCCESS;
}

static CUresult pop(CUcontext* out) {
  if (depth == 0) return CUDA_ERROR_INVALID_CONTEXT;
  return *out = current[--depth], CUDA_SUCCESS;
}

static CUresult no_capture(CUstream stream, CUstreamCaptureStatus* out) {
  (void)stream;
  return *out = CU_STREAM_CAPTURE_STATUS_NONE, CUDA_SUCCESS;
}

static CUresult stream_context(CUstream stream, CUcontext* out) {
  (void)stream;
  return *out = (CUcontext)0x1000, CUDA_SUCCESS;
}

static CUresult error_name(CUresult code, const char** out) {
  *out = code == CUDA_ERROR_LAUNCH_FAILED ? "CUDA_ERROR_LAUNCH_FAILED" : NULL;
  return *out != NULL ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

static CUresult error_text(CUresult code, const char** out) {
  *out = code == CUDA_ERROR_LAUNCH_FAILED ? "unspecified launch failure" : NULL;
  return *out != NULL ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

static CUresult load(CUlibrary* out, const void* image) {
  (void)image;
  __atomic_add_fetch(&state.loaded, 1, __ATOMIC_SEQ_CST);
  return *out = (CUlibrary)0x2000, CUDA_SUCCESS;
}

static CUresult unload(CUlibrary library) {
  (void)library;
  __atomic_sub_fetch(&state.loaded, 1, __ATOMIC_SEQ_CST);
  return CUDA_SUCCESS;
}

static CUresult get_kernel(CUkernel* out, CUlibrary library, const char* name) {
  (void)library;
  for (const struct Kernel* at = state.kernels; at != NULL; at = at->next) {
    if (strcmp(at->name, name) == 0) return *out = (CUkernel)at, CUDA_SUCCESS;
  }
  return CUDA_ERROR_NOT_FOUND;
}

// A map of the address, and a hash of all else that it was made of.
static void mix(CUtensorMap* map, const void* bytes, size_t count) {
  for (size_t index = 0; index < count; ++index) {
    map->opaque[0] = (map->opaque[0] ^ ((const unsigned char*)bytes)[index]) * 1099511628211u;
  }
}

static CUresult tiled(CUtensorMap* map, CUtensorMapDataType type, cuuint32_t rank, void* address,
                      const cuuint64_t* dims, const cuuint64_t* strides, const cuuint32_t* box,
                      const cuuint32_t* steps, CUtensorMapInterleave interleave, CUtensorMapSwizzle swizzle,
                      CUtensorMapL2promotion promotion, CUtensorMapFloatOOBfill fill) {
  const cuuint64_t numbers[] = {type, rank, interleave, swizzle, promotion, fill};
  memset(map, 0, sizeof *map);
  map->opaque[1] = (cuuint64_t)(uintptr_t)address;
  mix(map, numbers, sizeof numbers);
  mix(map, dims, rank * sizeof *dims);
  mix(map, strides, (rank - 1) * sizeof *strides);
  mix(map, box, rank * sizeof *box);
  mix(map, steps, rank * sizeof *steps);
  return CUDA_SUCCESS;
}

static CUresult im2col(CUtensorMap* map, CUtensorMapDataType type, cuuint32_t rank, void* address,
                       const cuuint64_t* dims, const cuuint64_t* strides, const int* lower, const int* upper,
                       cuuint32_t channels, cuuint32_t pixels, const cuuint32_t* steps,
                       CUtensorMapInterleave interleave, CUtensorMapSwizzle swizzle,
                       CUtensorMapL2promotion promotion, CUtensorMapFloatOOBfill fill) {
  const cuuint64_t numbers[] = {type, rank, channels, pixels, interleave, swizzle, promotion, fill};
  memset(map, 0, sizeof *map);
  map->opaque[1] = (cuuint64_t)(uintptr_t)address;
  mix(map, numbers, sizeof numbers);
  mix(map, dims, rank * sizeof *dims);
  mix(map, strides, (rank - 1) * sizeof *strides);
  mix(map, lower, (rank - 2) * sizeof *lower);
  mix(map, upper, (rank - 2) * sizeof *upper);
  mix(map, steps, rank * sizeof *steps);
  return CUDA_SUCCESS;
}

static void keep(const void* bytes, size_t count) {
  if (state.used + count > state.room) {
    state.room = (state.used + count) * 2;
    state.log = realloc(state.log, state.room);
  }
  memcpy(state.log + state.used, bytes, count);
  state.used += count;
}

// What precedes a launch's parameters in the log; each of these follows its size in 32 bits.
struct Head {
  uint32_t kernel, parameters;
  uint32_t grid[3], block[3];
  uint64_t stream;
  uint32_t smem, device;
};

static void record(const struct Head* head, const struct Kernel* kernel, void** parameters) {
  keep(head, sizeof *head);
  for (uint32_t index = 0; index < kernel->count; ++index) {
    keep(&kernel->sizes[index], sizeof kernel->sizes[index]);
    keep(parameters[index], kernel->sizes[index]);
  }
}

static CUresult launch(const CUlaunchConfig* config, CUfunction function, void** parameters, void** extra) {
  (void)extra;
  const struct Kernel* kernel = (const struct Kernel*)function;
  const struct Head head = {kernel->number,
                            kernel->count,
                            {config->gridDimX, config->gridDimY, config->gridDimZ},
                            {config->blockDimX, config->blockDimY, config->blockDimZ},
                            (uint64_t)(uintptr_t)config->hStream,
                            config->sharedMemBytes,
                            depth != 0 ? (uint32_t)((uintptr_t)current[depth - 1] - 0x1000) : UINT32_MAX};
  CUresult status = CUDA_SUCCESS;
  pthread_mutex_lock(&state.mutex);
  if (state.failing_from >= 0 && state.launches++ >= state.failing_from) status = state.failure;
  if (state.recording) record(&head, kernel, parameters);
  struct timespec until;
  clock_gettime(CLOCK_REALTIME, &until);
  until.tv_sec += HELD_SECONDS;
  ++state.waiting;
  pthread_cond_broadcast(&state.changed);
  while (state.holding && status == CUDA_SUCCESS) {
    if (pthread_cond_timedwait(&state.changed, &state.mutex, &until) != 0) status = CUDA_ERROR_LAUNCH_TIMEOUT;
  }
  --state.waiting;
  pthread_mutex_unlock(&state.mutex);
  return status;
}

// An allocator of device memory ----------------------------------------------------------------------------------------

#define MOST_BYTES (1 << 24)

static void free_tensor(DLManagedTensorVersioned* self) {
  __atomic_sub_fetch(&state.tensors, 1, __ATOMIC_SEQ_CST);
  free(self->manager_ctx);
  free(self->dl_tensor.shape);
  free(self);
}

static int refuse(void* context, void (*raise)(void*, const char*, const char*), const char* why) {
  raise(context, "RuntimeError", why);
  return -1;
}

EXPORT int stub_allocate(DLTensor* wanted, DLManagedTensorVersioned** out, void* context,
                         void (*raise)(void*, const char*, const char*)) {
  size_t bytes = (wanted->dtype.bits * wanted->dtype.lanes + 7) / 8;
  for (int32_t axis = 0; axis < wanted->ndim; ++axis) {
    if (wanted->shape[axis] < 0) return refuse(context, raise, "a negative extent");
    if (__builtin_mul_overflow(bytes, (size_t)wanted->shape[axis], &bytes)) bytes = SIZE_MAX;
  }
  if (bytes > MOST_BYTES) return refuse(context, raise, "too large");
  if (__atomic_fetch_sub(&state.allocations_left, 1, __ATOMIC_SEQ_CST) <= 0)
    return refuse(context, raise, "no memory");
  DLManagedTensorVersioned* made = calloc(1, sizeof *made);
  made->version.major = DLPACK_MAJOR_VERSION;
  made->version.minor = DLPACK_MINOR_VERSION;
  made->deleter = free_tensor;
  made->dl_tensor = *wanted;
  made->dl_tensor.shape = calloc(2 * (size_t)wanted->ndim + 1, sizeof(int64_t));
  made->dl_tensor.strides = made->dl_tensor.shape + wanted->ndim;
  made->dl_tensor.byte_offset = 0;
  int64_t step = 1;
  for (int32_t axis = wanted->ndim - 1; axis >= 0; --axis) {
    made->dl_tensor.shape[axis] = wanted->shape[axis];
    made->dl_tensor.strides[axis] = step;
    step *= wanted->shape[axis] > 0 ? wanted->shape[axis] : 1;
  }
  if (posix_memalign(&made->manager_ctx, 256, bytes != 0 ? bytes : 1) != 0) abort();
  made->dl_tensor.data = made->manager_ctx;
  __atomic_add_fetch(&state.tensors, 1, __ATOMIC_SEQ_CST);
  *out = made;
  return 0;
}

// What a test says ------------------------------------------------------------------------------------------------------

// Make a kernel, and return its number.
EXPORT int stub_declare(const char* name, uint32_t count, const uint32_t* sizes) {
  struct Kernel* kernel = calloc(1, sizeof *kernel + count * sizeof *sizes);
  if (kernel == NULL || strlen(name) >= sizeof kernel->name) return -1;
  strcpy(kernel->name, name);
  memcpy(kernel->sizes, sizes, count * sizeof *sizes);
  kernel->count = count;
  kernel->number = state.kernels != NULL ? state.kernels->number + 1 : 0;
  kernel->next = state.kernels;
  state.kernels = kernel;
  return (int)kernel->number;
}

EXPORT void stub_record(int recording) { state.recording = recording; }

// Forget the log, and let every launch from the `after`-th on fail; negative: none.
EXPORT void stub_reset(int64_t after, int failure) {
  pthread_mutex_lock(&state.mutex);
  state.used = 0, state.launches = 0, state.failing_from = after, state.failure = (CUresult)failure;
  pthread_mutex_unlock(&state.mutex);
}

EXPORT void stub_hold(int holding) {
  pthread_mutex_lock(&state.mutex);
  state.holding = holding;
  pthread_cond_broadcast(&state.changed);
  pthread_mutex_unlock(&state.mutex);
}

// Wait until as many launches are held; 0: they are not, after a time that is long enough for every machine.
EXPORT int stub_await(int wanted) {
  struct timespec until;
  clock_gettime(CLOCK_REALTIME, &until);
  until.tv_sec += HELD_SECONDS / 2;
  int late = 0;
  pthread_mutex_lock(&state.mutex);
  while (state.waiting < wanted && late == 0) {
    late = pthread_cond_timedwait(&state.changed, &state.mutex, &until);
  }
  pthread_mutex_unlock(&state.mutex);
  return late == 0;
}

EXPORT int stub_tensors(void) { return __atomic_load_n(&state.tensors, __ATOMIC_SEQ_CST); }

EXPORT void stub_allocations(int64_t left) {
  __atomic_store_n(&state.allocations_left, left, __ATOMIC_SEQ_CST);
}

EXPORT int stub_loaded(void) { return __atomic_load_n(&state.loaded, __ATOMIC_SEQ_CST); }

EXPORT size_t stub_log(void* out, size_t room) {
  pthread_mutex_lock(&state.mutex);
  const size_t used = state.used;
  if (out != NULL && used <= room) memcpy(out, state.log, used);
  pthread_mutex_unlock(&state.mutex);
  return used;
}

// A variable's name ends with its bytes: "variable_0_16".
static CUresult get_global(CUdeviceptr* address, size_t* nbytes, CUlibrary library, const char* name) {
  (void)library;
  *address = 0x7f0000000000;
  *nbytes = strtoull(strrchr(name, '_') + 1, NULL, 10);
  return CUDA_SUCCESS;
}

EXPORT CUresult cuGetProcAddress_v2(const char* name, void** out, int version_wanted, cuuint64_t flags,
                                    CUdriverProcAddressQueryResult* query) {
  (void)version_wanted, (void)flags, (void)query;
  static const struct {
    const char* name;
    void* function;
  } known[] = {{"cuDriverGetVersion", (void*)version},      {"cuGetErrorName", (void*)error_name},
               {"cuGetErrorString", (void*)error_text},     {"cuDeviceGetCount", (void*)count_devices},
               {"cuDeviceGet", (void*)get_device},          {"cuDeviceGetAttribute", (void*)attribute},
               {"cuDevicePrimaryCtxRetain", (void*)retain}, {"cuCtxGetDevice", (void*)current_device},
               {"cuCtxPushCurrent", (void*)push},           {"cuCtxPopCurrent", (void*)pop},
               {"cuStreamGetCtx", (void*)stream_context},   {"cuStreamIsCapturing", (void*)no_capture},
               {"cuLibraryLoadData", (void*)load},          {"cuLibraryUnload", (void*)unload},
               {"cuLibraryGetKernel", (void*)get_kernel},   {"cuTensorMapEncodeTiled", (void*)tiled},
               {"cuTensorMapEncodeIm2col", (void*)im2col},  {"cuLaunchKernelEx", (void*)launch},
               {"cuLibraryGetGlobal", (void*)get_global}};
  *out = (void*)nothing;
  for (size_t index = 0; index < sizeof known / sizeof *known; ++index) {
    if (strcmp(known[index].name, name) == 0) *out = known[index].function;
  }
  return CUDA_SUCCESS;
}
