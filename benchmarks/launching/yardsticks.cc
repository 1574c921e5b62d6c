// The two yardsticks of the launch benchmark, behind tvm-ffi's C ABI.
//
//   nothing(t0, ..., word)   looks at no argument but the last, checks nothing, launches nothing
//   seen() -> int            the number of arguments of the last `nothing`, times 2^32, plus its last argument
//   raw(kernel, stream, grid, block, maps, encode_each, packed, word, launches, rows, columns, p0, p1, ...) -> float
//                            launches in a loop, and returns its seconds; behind the addresses come the bytes of
//                            further scalars, before the word. Packed, all of it is one struct without gaps, whose
//                            last eight bytes are half of the last scalar and the word
//
// libcuda is found when `raw` is called first, so that this builds and `nothing` works without a driver.

#include <cuda.h>
#include <dlfcn.h>
#include <string.h>
#include <time.h>
#include <tvm/ffi/c_api.h>

#define EXPORT extern "C" __attribute__((visibility("default")))

namespace {

constexpr int kMostTensors = 32;
constexpr int kMostMaps = 3;
constexpr int kLeadingArguments = 11;

int64_t last_count = 0;
int64_t last_word = 0;

int fail(const char* message) {
  TVMFFIErrorSetRaisedFromCStr("RuntimeError", message);
  return -1;
}

struct Driver {
  decltype(&cuLaunchKernelEx) launch = nullptr;
  decltype(&cuTensorMapEncodeTiled) encode = nullptr;
  Driver() {
    void* library = dlopen("libcuda.so.1", RTLD_NOW);
    if (library == nullptr) return;
    launch = reinterpret_cast<decltype(launch)>(dlsym(library, "cuLaunchKernelEx"));
    encode = reinterpret_cast<decltype(encode)>(dlsym(library, "cuTensorMapEncodeTiled"));
  }
};

struct Loop {
  CUfunction kernel;
  CUstream stream;
  unsigned grid, block;
  int maps;
  bool encode_each, packed;
  int word;
  int64_t launches;
  cuuint64_t rows, columns;
  int tensors;
  void* pointers[kMostTensors];
};

CUresult encode(const Driver& driver, const Loop& loop, CUtensorMap* maps) {
  for (int i = 0; i < loop.maps; i++) {
    const cuuint64_t dims[2] = {loop.columns, loop.rows};
    const cuuint64_t strides[1] = {loop.columns * 4};
    const cuuint32_t box[2] = {static_cast<cuuint32_t>(loop.columns), static_cast<cuuint32_t>(loop.rows)};
    const cuuint32_t steps[2] = {1, 1};
    CUresult status =
        driver.encode(&maps[i], CU_TENSOR_MAP_DATA_TYPE_FLOAT32, 2, loop.pointers[i], dims, strides, box,
                      steps, CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_NONE,
                      CU_TENSOR_MAP_L2_PROMOTION_L2_128B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
    if (status != CUDA_SUCCESS) return status;
  }
  return CUDA_SUCCESS;
}

CUresult run(const Driver& driver, Loop& loop) {
  alignas(64) unsigned char all[kMostMaps * sizeof(CUtensorMap) + kMostTensors * sizeof(void*)];
  CUtensorMap* const maps = reinterpret_cast<CUtensorMap*>(all);
  void* parameters[kMostTensors + 1];
  for (int i = 0; i < loop.tensors; i++) {
    parameters[i] = i < loop.maps ? static_cast<void*>(&maps[i]) : static_cast<void*>(&loop.pointers[i]);
  }
  parameters[loop.tensors] = &loop.word;
  if (loop.packed) {
    unsigned char* rest = all + loop.maps * sizeof(CUtensorMap);
    const size_t size = (loop.tensors - loop.maps) * sizeof(void*);
    memcpy(rest, loop.pointers + loop.maps, size);
    memcpy(rest + size - sizeof loop.word, &loop.word, sizeof loop.word);
    parameters[0] = all;
  }
  CUlaunchConfig config;
  memset(&config, 0, sizeof config);
  config.gridDimX = loop.grid;
  config.blockDimX = loop.block;
  config.gridDimY = config.gridDimZ = config.blockDimY = config.blockDimZ = 1;
  config.hStream = loop.stream;
  CUresult status = encode(driver, loop, maps);
  for (int64_t i = 0; i < loop.launches && status == CUDA_SUCCESS; i++) {
    if (loop.encode_each) status = encode(driver, loop, maps);
    if (status == CUDA_SUCCESS) status = driver.launch(&config, loop.kernel, parameters, nullptr);
  }
  return status;
}

double seconds_since(const timespec& start) {
  timespec end;
  clock_gettime(CLOCK_MONOTONIC, &end);
  return static_cast<double>(end.tv_sec - start.tv_sec) +
         1e-9 * static_cast<double>(end.tv_nsec - start.tv_nsec);
}

}  // namespace

EXPORT int __tvm_ffi_nothing(void*, const TVMFFIAny* args, int32_t count, TVMFFIAny* result) {
  last_count = count;
  last_word = args[count - 1].v_int64;
  result->type_index = kTVMFFINone;
  return 0;
}

EXPORT int __tvm_ffi_seen(void*, const TVMFFIAny*, int32_t, TVMFFIAny* result) {
  result->type_index = kTVMFFIInt;
  result->v_int64 = (last_count << 32) + last_word;
  return 0;
}

EXPORT int __tvm_ffi_raw(void*, const TVMFFIAny* args, int32_t count, TVMFFIAny* result) {
  static const Driver driver;
  if (driver.launch == nullptr || driver.encode == nullptr)
    return fail("there is no CUDA driver (libcuda.so.1)");
  const int tensors = count - kLeadingArguments;
  if (tensors < 0 || tensors > kMostTensors || args[4].v_int64 > kMostMaps) return fail("too many arguments");
  Loop loop;
  loop.kernel = reinterpret_cast<CUfunction>(args[0].v_int64);
  loop.stream = reinterpret_cast<CUstream>(args[1].v_int64);
  loop.grid = static_cast<unsigned>(args[2].v_int64);
  loop.block = static_cast<unsigned>(args[3].v_int64);
  loop.maps = static_cast<int>(args[4].v_int64);
  loop.encode_each = args[5].v_int64 != 0;
  loop.packed = args[6].v_int64 != 0;
  loop.word = static_cast<int>(args[7].v_int64);
  loop.launches = args[8].v_int64;
  loop.rows = static_cast<cuuint64_t>(args[9].v_int64);
  loop.columns = static_cast<cuuint64_t>(args[10].v_int64);
  loop.tensors = tensors;
  for (int i = 0; i < tensors; i++)
    loop.pointers[i] = reinterpret_cast<void*>(args[kLeadingArguments + i].v_int64);
  timespec start;
  clock_gettime(CLOCK_MONOTONIC, &start);
  const CUresult status = run(driver, loop);
  const double seconds = seconds_since(start);
  if (status != CUDA_SUCCESS) return fail("the driver refused a tensor map or a launch");
  result->type_index = kTVMFFIFloat;
  result->v_float64 = seconds;
  return 0;
}
