/* A libcuda.so.1 that has no device behind it: each entry point forwards to a function that the process registers.
 *
 * ENTRIES is the only list of entry points. Its columns: exported symbol, the base name under which
 * cuGetProcAddress finds it, the least CUDA version of that ABI, and the parameter types (see TYPE_x below).
 * A symbol whose name ends in _ptsz is the same call with the per-thread default stream behind the null stream.
 */
#include <stddef.h>
#include <stdint.h>

#define EXPORT __attribute__((visibility("default")))

#define TYPE_P void *   /* any pointer or handle */
#define TYPE_I int32_t  /* int, CUdevice, every enum */
#define TYPE_U uint32_t /* unsigned int, cuuint32_t */
#define TYPE_L uint64_t /* size_t, cuuint64_t, CUdeviceptr */
#define TYPE_H uint16_t
#define TYPE_B uint8_t

#define ENTRIES \
  E1(cuInit, "cuInit", 2000, U) \
  E1(cuDriverGetVersion, "cuDriverGetVersion", 2020, P) \
  E2(cuGetExportTable, "cuGetExportTable", 3000, P, P) \
  E4(cuGetProcAddress, "cuGetProcAddress", 11030, P, P, I, L) \
  E5(cuGetProcAddress_v2, "cuGetProcAddress", 12000, P, P, I, L, P) \
  E2(cuGetErrorName, "cuGetErrorName", 6000, I, P) \
  E2(cuGetErrorString, "cuGetErrorString", 6000, I, P) \
  E2(cuDeviceGet, "cuDeviceGet", 2000, P, I) \
  E1(cuDeviceGetCount, "cuDeviceGetCount", 2000, P) \
  E3(cuDeviceGetName, "cuDeviceGetName", 2000, P, I, I) \
  E3(cuDeviceGetAttribute, "cuDeviceGetAttribute", 2000, P, I, I) \
  E2(cuDevicePrimaryCtxRetain, "cuDevicePrimaryCtxRetain", 7000, P, I) \
  E1(cuDevicePrimaryCtxRelease, "cuDevicePrimaryCtxRelease", 7000, I) \
  E1(cuDevicePrimaryCtxRelease_v2, "cuDevicePrimaryCtxRelease", 11000, I) \
  E3(cuDevicePrimaryCtxGetState, "cuDevicePrimaryCtxGetState", 7000, I, P, P) \
  E1(cuCtxGetCurrent, "cuCtxGetCurrent", 4000, P) \
  E1(cuCtxSetCurrent, "cuCtxSetCurrent", 4000, P) \
  E1(cuCtxPushCurrent_v2, "cuCtxPushCurrent", 4000, P) \
  E1(cuCtxPopCurrent_v2, "cuCtxPopCurrent", 4000, P) \
  E1(cuCtxGetDevice, "cuCtxGetDevice", 2000, P) \
  E0(cuCtxSynchronize, "cuCtxSynchronize", 2000) \
  E2(cuStreamCreate, "cuStreamCreate", 2000, P, U) \
  E1(cuStreamDestroy_v2, "cuStreamDestroy", 4000, P) \
  E1(cuStreamSynchronize, "cuStreamSynchronize", 2000, P) \
  E1(cuStreamSynchronize_ptsz, "cuStreamSynchronize", 7000, P) \
  E2(cuStreamIsCapturing, "cuStreamIsCapturing", 10000, P, P) \
  E2(cuStreamIsCapturing_ptsz, "cuStreamIsCapturing", 10000, P, P) \
  E2(cuStreamGetCtx, "cuStreamGetCtx", 9020, P, P) \
  E2(cuStreamGetCtx_ptsz, "cuStreamGetCtx", 9020, P, P) \
  E2(cuStreamGetDevice, "cuStreamGetDevice", 12080, P, P) \
  E2(cuStreamGetDevice_ptsz, "cuStreamGetDevice", 12080, P, P) \
  E8(cuLibraryLoadData, "cuLibraryLoadData", 12000, P, P, P, P, U, P, P, U) \
  E1(cuLibraryUnload, "cuLibraryUnload", 12000, P) \
  E3(cuLibraryGetKernel, "cuLibraryGetKernel", 12000, P, P, P) \
  E2(cuKernelGetFunction, "cuKernelGetFunction", 12000, P, P) \
  E4(cuKernelSetAttribute, "cuKernelSetAttribute", 12000, I, I, P, I) \
  E4(cuKernelGetAttribute, "cuKernelGetAttribute", 12000, P, I, P, I) \
  E4(cuKernelGetParamInfo, "cuKernelGetParamInfo", 12040, P, L, P, P) \
  E12(cuTensorMapEncodeTiled, "cuTensorMapEncodeTiled", 12000, P, I, U, P, P, P, P, P, I, I, I, I) \
  E4(cuLaunchKernelEx, "cuLaunchKernelEx", 11060, P, P, P, P) \
  E4(cuLaunchKernelEx_ptsz, "cuLaunchKernelEx", 11060, P, P, P, P) \
  E11(cuLaunchKernel, "cuLaunchKernel", 4000, P, U, U, U, U, U, U, U, P, P, P) \
  E11(cuLaunchKernel_ptsz, "cuLaunchKernel", 7000, P, U, U, U, U, U, U, U, P, P, P) \
  E4(cuMemsetD8Async, "cuMemsetD8Async", 3020, L, B, L, P) \
  E4(cuMemsetD8Async_ptsz, "cuMemsetD8Async", 7000, L, B, L, P) \
  E4(cuMemsetD16Async, "cuMemsetD16Async", 3020, L, H, L, P) \
  E4(cuMemsetD16Async_ptsz, "cuMemsetD16Async", 7000, L, H, L, P) \
  E4(cuMemsetD32Async, "cuMemsetD32Async", 3020, L, U, L, P) \
  E4(cuMemsetD32Async_ptsz, "cuMemsetD32Async", 7000, L, U, L, P)

/* CUDA_ERROR_DEINITIALIZED: nothing is registered, because the process is ending or has not begun. */
#define UNREGISTERED 4

#define FORWARD(name, parameters, arguments) \
  static int32_t(*handler_##name) parameters; \
  EXPORT int32_t name parameters { return handler_##name ? handler_##name arguments : UNREGISTERED; }

#define E0(name, base, since) FORWARD(name, (void), ())
#define E1(name, base, since, A) FORWARD(name, (TYPE_##A a), (a))
#define E2(name, base, since, A, B) FORWARD(name, (TYPE_##A a, TYPE_##B b), (a, b))
#define E3(name, base, since, A, B, C) FORWARD(name, (TYPE_##A a, TYPE_##B b, TYPE_##C c), (a, b, c))
#define E4(name, base, since, A, B, C, D) \
  FORWARD(name, (TYPE_##A a, TYPE_##B b, TYPE_##C c, TYPE_##D d), (a, b, c, d))
#define E5(name, base, since, A, B, C, D, E) \
  FORWARD(name, (TYPE_##A a, TYPE_##B b, TYPE_##C c, TYPE_##D d, TYPE_##E e), (a, b, c, d, e))
#define E8(name, base, since, A, B, C, D, E, F, G, H) \
  FORWARD(name, \
          (TYPE_##A a, TYPE_##B b, TYPE_##C c, TYPE_##D d, TYPE_##E e, TYPE_##F f, TYPE_##G g, TYPE_##H h), \
          (a, b, c, d, e, f, g, h))
#define E11(name, base, since, A, B, C, D, E, F, G, H, I, J, K) \
  FORWARD(name, \
          (TYPE_##A a, TYPE_##B b, TYPE_##C c, TYPE_##D d, TYPE_##E e, TYPE_##F f, TYPE_##G g, TYPE_##H h, \
           TYPE_##I i, TYPE_##J j, TYPE_##K k), \
          (a, b, c, d, e, f, g, h, i, j, k))
#define E12(name, base, since, A, B, C, D, E, F, G, H, I, J, K, L) \
  FORWARD(name, \
          (TYPE_##A a, TYPE_##B b, TYPE_##C c, TYPE_##D d, TYPE_##E e, TYPE_##F f, TYPE_##G g, TYPE_##H h, \
           TYPE_##I i, TYPE_##J j, TYPE_##K k, TYPE_##L l), \
          (a, b, c, d, e, f, g, h, i, j, k, l))

ENTRIES

#undef E0
#undef E1
#undef E2
#undef E3
#undef E4
#undef E5
#undef E8
#undef E11
#undef E12

struct trunnion_sim_entry {
  const char *symbol;
  const char *base;
  const char *signature; /* one letter for each parameter */
  void *address;
  void *handler; /* the address of the variable that holds the registered function */
  uint32_t since;
};

#define ROW(name, base, since, signature) \
  {#name, base, signature, (void *)(uintptr_t)&name, (void *)&handler_##name, since},
#define E0(name, base, since) ROW(name, base, since, "")
#define E1(name, base, since, A) ROW(name, base, since, #A)
#define E2(name, base, since, A, B) ROW(name, base, since, #A #B)
#define E3(name, base, since, A, B, C) ROW(name, base, since, #A #B #C)
#define E4(name, base, since, A, B, C, D) ROW(name, base, since, #A #B #C #D)
#define E5(name, base, since, A, B, C, D, E) ROW(name, base, since, #A #B #C #D #E)
#define E8(name, base, since, A, B, C, D, E, F, G, H) ROW(name, base, since, #A #B #C #D #E #F #G #H)
#define E11(name, base, since, A, B, C, D, E, F, G, H, I, J, K) \
  ROW(name, base, since, #A #B #C #D #E #F #G #H #I #J #K)
#define E12(name, base, since, A, B, C, D, E, F, G, H, I, J, K, L) \
  ROW(name, base, since, #A #B #C #D #E #F #G #H #I #J #K #L)

EXPORT const struct trunnion_sim_entry trunnion_sim_entries[] = {ENTRIES{NULL, NULL, NULL, NULL, NULL, 0}};

/* A number that no other thread of the process has or had: an operating system's thread identifier is used again. */
EXPORT uint64_t trunnion_sim_thread(void) {
  static uint64_t last;
  static _Thread_local uint64_t serial;
  if (serial == 0) serial = __atomic_add_fetch(&last, 1, __ATOMIC_RELAXED);
  return serial;
}
