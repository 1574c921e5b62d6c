/* A libcuda.so.1 that has no device behind it: each entry point forwards to a handler in Python.
 *
 * ENTRIES is the only list of entry points. Its columns: exported symbol, the base name under which
 * cuGetProcAddress finds it, the least CUDA version of that ABI, and the parameter types (see TYPE_x below).
 * A symbol whose name ends in _ptsz or _ptds is the same call with the per-thread default stream in the legacy one's
 * place.
 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))

#define TYPE_P void*    /* any pointer or handle */
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
  E2(cuDeviceTotalMem_v2, "cuDeviceTotalMem", 3020, P, I) \
  E2(cuDevicePrimaryCtxRetain, "cuDevicePrimaryCtxRetain", 7000, P, I) \
  E1(cuDevicePrimaryCtxRelease, "cuDevicePrimaryCtxRelease", 7000, I) \
  E1(cuDevicePrimaryCtxRelease_v2, "cuDevicePrimaryCtxRelease", 11000, I) \
  E3(cuDevicePrimaryCtxGetState, "cuDevicePrimaryCtxGetState", 7000, I, P, P) \
  E3(cuCtxCreate_v2, "cuCtxCreate", 3020, P, U, I) \
  E4(cuCtxCreate_v4, "cuCtxCreate", 12050, P, P, U, I) \
  E1(cuCtxDestroy_v2, "cuCtxDestroy", 4000, P) \
  E4(cuGreenCtxCreate, "cuGreenCtxCreate", 12040, P, P, I, U) \
  E1(cuGreenCtxDestroy, "cuGreenCtxDestroy", 12040, P) \
  E2(cuCtxFromGreenCtx, "cuCtxFromGreenCtx", 12040, P, P) \
  E1(cuCtxGetCurrent, "cuCtxGetCurrent", 4000, P) \
  E1(cuCtxSetCurrent, "cuCtxSetCurrent", 4000, P) \
  E1(cuCtxPushCurrent_v2, "cuCtxPushCurrent", 4000, P) \
  E1(cuCtxPopCurrent_v2, "cuCtxPopCurrent", 4000, P) \
  E1(cuCtxGetDevice, "cuCtxGetDevice", 2000, P) \
  E2(cuCtxGetId, "cuCtxGetId", 12000, P, P) \
  E0(cuCtxSynchronize, "cuCtxSynchronize", 2000) \
  E2(cuCtxGetLimit, "cuCtxGetLimit", 3010, P, I) \
  E2(cuCtxSetLimit, "cuCtxSetLimit", 3010, I, L) \
  E0(cuCtxResetPersistingL2Cache, "cuCtxResetPersistingL2Cache", 11000) \
  E2(cuCtxGetStreamPriorityRange, "cuCtxGetStreamPriorityRange", 5050, P, P) \
  E2(cuStreamCreate, "cuStreamCreate", 2000, P, U) \
  E3(cuStreamCreateWithPriority, "cuStreamCreateWithPriority", 5050, P, U, I) \
  E1(cuStreamDestroy_v2, "cuStreamDestroy", 4000, P) \
  E2(cuStreamGetPriority, "cuStreamGetPriority", 5050, P, P) \
  E2(cuStreamGetPriority_ptsz, "cuStreamGetPriority", 7000, P, P) \
  E2(cuStreamGetFlags, "cuStreamGetFlags", 5050, P, P) \
  E2(cuStreamGetFlags_ptsz, "cuStreamGetFlags", 7000, P, P) \
  E2(cuStreamGetId, "cuStreamGetId", 12000, P, P) \
  E2(cuStreamGetId_ptsz, "cuStreamGetId", 12000, P, P) \
  E2(cuStreamGetCtx, "cuStreamGetCtx", 9020, P, P) \
  E2(cuStreamGetCtx_ptsz, "cuStreamGetCtx", 9020, P, P) \
  E3(cuStreamGetCtx_v2, "cuStreamGetCtx", 12050, P, P, P) \
  E3(cuStreamGetCtx_v2_ptsz, "cuStreamGetCtx", 12050, P, P, P) \
  E2(cuStreamGetDevice, "cuStreamGetDevice", 12080, P, P) \
  E2(cuStreamGetDevice_ptsz, "cuStreamGetDevice", 12080, P, P) \
  E3(cuStreamSetAttribute, "cuStreamSetAttribute", 11000, P, I, P) \
  E3(cuStreamSetAttribute_ptsz, "cuStreamSetAttribute", 11000, P, I, P) \
  E3(cuStreamGetAttribute, "cuStreamGetAttribute", 11000, P, I, P) \
  E3(cuStreamGetAttribute_ptsz, "cuStreamGetAttribute", 11000, P, I, P) \
  E2(cuStreamCopyAttributes, "cuStreamCopyAttributes", 11000, P, P) \
  E2(cuStreamCopyAttributes_ptsz, "cuStreamCopyAttributes", 11000, P, P) \
  E1(cuStreamSynchronize, "cuStreamSynchronize", 2000, P) \
  E1(cuStreamSynchronize_ptsz, "cuStreamSynchronize", 7000, P) \
  E1(cuStreamQuery, "cuStreamQuery", 2000, P) \
  E1(cuStreamQuery_ptsz, "cuStreamQuery", 7000, P) \
  E3(cuStreamWaitEvent, "cuStreamWaitEvent", 3020, P, P, U) \
  E3(cuStreamWaitEvent_ptsz, "cuStreamWaitEvent", 7000, P, P, U) \
  E2(cuEventCreate, "cuEventCreate", 2000, P, U) \
  E1(cuEventDestroy_v2, "cuEventDestroy", 4000, P) \
  E2(cuEventRecord, "cuEventRecord", 2000, P, P) \
  E2(cuEventRecord_ptsz, "cuEventRecord", 7000, P, P) \
  E3(cuEventRecordWithFlags, "cuEventRecordWithFlags", 11010, P, P, U) \
  E3(cuEventRecordWithFlags_ptsz, "cuEventRecordWithFlags", 11010, P, P, U) \
  E1(cuEventQuery, "cuEventQuery", 2000, P) \
  E1(cuEventSynchronize, "cuEventSynchronize", 2000, P) \
  E3(cuEventElapsedTime, "cuEventElapsedTime", 2000, P, P, P) \
  E3(cuEventElapsedTime_v2, "cuEventElapsedTime", 12080, P, P, P) \
  E2(cuStreamBeginCapture_v2, "cuStreamBeginCapture", 10010, P, I) \
  E2(cuStreamBeginCapture_v2_ptsz, "cuStreamBeginCapture", 10010, P, I) \
  E2(cuStreamEndCapture, "cuStreamEndCapture", 10000, P, P) \
  E2(cuStreamEndCapture_ptsz, "cuStreamEndCapture", 10000, P, P) \
  E2(cuStreamIsCapturing, "cuStreamIsCapturing", 10000, P, P) \
  E2(cuStreamIsCapturing_ptsz, "cuStreamIsCapturing", 10000, P, P) \
  E3(cuStreamGetCaptureInfo, "cuStreamGetCaptureInfo", 10010, P, P, P) \
  E3(cuStreamGetCaptureInfo_ptsz, "cuStreamGetCaptureInfo", 10010, P, P, P) \
  E6(cuStreamGetCaptureInfo_v2, "cuStreamGetCaptureInfo", 11030, P, P, P, P, P, P) \
  E6(cuStreamGetCaptureInfo_v2_ptsz, "cuStreamGetCaptureInfo", 11030, P, P, P, P, P, P) \
  E7(cuStreamGetCaptureInfo_v3, "cuStreamGetCaptureInfo", 12030, P, P, P, P, P, P, P) \
  E7(cuStreamGetCaptureInfo_v3_ptsz, "cuStreamGetCaptureInfo", 12030, P, P, P, P, P, P, P) \
  E1(cuThreadExchangeStreamCaptureMode, "cuThreadExchangeStreamCaptureMode", 10010, P) \
  E3(cuGraphGetNodes, "cuGraphGetNodes", 10000, P, P, P) \
  E3(cuGraphGetRootNodes, "cuGraphGetRootNodes", 10000, P, P, P) \
  E4(cuGraphGetEdges, "cuGraphGetEdges", 10000, P, P, P, P) \
  E5(cuGraphGetEdges_v2, "cuGraphGetEdges", 12030, P, P, P, P, P) \
  E3(cuGraphNodeGetDependencies, "cuGraphNodeGetDependencies", 10000, P, P, P) \
  E4(cuGraphNodeGetDependencies_v2, "cuGraphNodeGetDependencies", 12030, P, P, P, P) \
  E2(cuGraphNodeGetType, "cuGraphNodeGetType", 10000, P, P) \
  E2(cuGraphKernelNodeGetParams, "cuGraphKernelNodeGetParams", 10000, P, P) \
  E2(cuGraphKernelNodeGetParams_v2, "cuGraphKernelNodeGetParams", 12000, P, P) \
  E3(cuGraphKernelNodeGetAttribute, "cuGraphKernelNodeGetAttribute", 11000, P, I, P) \
  E2(cuGraphMemsetNodeGetParams, "cuGraphMemsetNodeGetParams", 10000, P, P) \
  E3(cuGraphInstantiateWithFlags, "cuGraphInstantiateWithFlags", 11040, P, P, L) \
  E2(cuGraphUpload, "cuGraphUpload", 11010, P, P) \
  E2(cuGraphUpload_ptsz, "cuGraphUpload", 11010, P, P) \
  E2(cuGraphLaunch, "cuGraphLaunch", 10000, P, P) \
  E2(cuGraphLaunch_ptsz, "cuGraphLaunch", 10000, P, P) \
  E1(cuGraphExecDestroy, "cuGraphExecDestroy", 10000, P) \
  E1(cuGraphDestroy, "cuGraphDestroy", 10000, P) \
  E8(cuLibraryLoadData, "cuLibraryLoadData", 12000, P, P, P, P, U, P, P, U) \
  E1(cuLibraryUnload, "cuLibraryUnload", 12000, P) \
  E3(cuLibraryGetKernel, "cuLibraryGetKernel", 12000, P, P, P) \
  E4(cuLibraryGetGlobal, "cuLibraryGetGlobal", 12000, P, P, P, P) \
  E2(cuLibraryGetKernelCount, "cuLibraryGetKernelCount", 12040, P, P) \
  E3(cuLibraryEnumerateKernels, "cuLibraryEnumerateKernels", 12040, P, U, P) \
  E2(cuKernelGetFunction, "cuKernelGetFunction", 12000, P, P) \
  E2(cuKernelGetLibrary, "cuKernelGetLibrary", 12050, P, P) \
  E2(cuKernelGetName, "cuKernelGetName", 12030, P, P) \
  E4(cuKernelSetAttribute, "cuKernelSetAttribute", 12000, I, I, P, I) \
  E4(cuKernelGetAttribute, "cuKernelGetAttribute", 12000, P, I, P, I) \
  E4(cuKernelGetParamInfo, "cuKernelGetParamInfo", 12040, P, L, P, P) \
  E2(cuFuncGetName, "cuFuncGetName", 12030, P, P) \
  E3(cuFuncSetAttribute, "cuFuncSetAttribute", 9000, P, I, I) \
  E3(cuFuncGetAttribute, "cuFuncGetAttribute", 2020, P, I, P) \
  E4(cuFuncGetParamInfo, "cuFuncGetParamInfo", 12040, P, L, P, P) \
  E4(cuOccupancyMaxActiveBlocksPerMultiprocessor, "cuOccupancyMaxActiveBlocksPerMultiprocessor", 6050, P, P, \
     I, L) \
  E5(cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags, \
     "cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags", 7000, P, P, I, L, U) \
  E4(cuOccupancyAvailableDynamicSMemPerBlock, "cuOccupancyAvailableDynamicSMemPerBlock", 10020, P, P, I, I) \
  E3(cuOccupancyMaxActiveClusters, "cuOccupancyMaxActiveClusters", 11070, P, P, P) \
  E3(cuOccupancyMaxPotentialClusterSize, "cuOccupancyMaxPotentialClusterSize", 11070, P, P, P) \
  E12(cuTensorMapEncodeTiled, "cuTensorMapEncodeTiled", 12000, P, I, U, P, P, P, P, P, I, I, I, I) \
  E15(cuTensorMapEncodeIm2col, "cuTensorMapEncodeIm2col", 12000, P, I, U, P, P, P, P, P, U, U, P, I, I, I, \
      I) \
  E4(cuLaunchKernelEx, "cuLaunchKernelEx", 11060, P, P, P, P) \
  E4(cuLaunchKernelEx_ptsz, "cuLaunchKernelEx", 11060, P, P, P, P) \
  E11(cuLaunchKernel, "cuLaunchKernel", 4000, P, U, U, U, U, U, U, U, P, P, P) \
  E11(cuLaunchKernel_ptsz, "cuLaunchKernel", 7000, P, U, U, U, U, U, U, U, P, P, P) \
  E3(cuMemsetD8_v2, "cuMemsetD8", 3020, L, B, L) \
  E3(cuMemsetD8_v2_ptds, "cuMemsetD8", 7000, L, B, L) \
  E4(cuMemsetD8Async, "cuMemsetD8Async", 3020, L, B, L, P) \
  E4(cuMemsetD8Async_ptsz, "cuMemsetD8Async", 7000, L, B, L, P) \
  E5(cuMemsetD2D8_v2, "cuMemsetD2D8", 3020, L, L, B, L, L) \
  E5(cuMemsetD2D8_v2_ptds, "cuMemsetD2D8", 7000, L, L, B, L, L) \
  E6(cuMemsetD2D8Async, "cuMemsetD2D8Async", 3020, L, L, B, L, L, P) \
  E6(cuMemsetD2D8Async_ptsz, "cuMemsetD2D8Async", 7000, L, L, B, L, L, P) \
  E3(cuMemsetD16_v2, "cuMemsetD16", 3020, L, H, L) \
  E3(cuMemsetD16_v2_ptds, "cuMemsetD16", 7000, L, H, L) \
  E4(cuMemsetD16Async, "cuMemsetD16Async", 3020, L, H, L, P) \
  E4(cuMemsetD16Async_ptsz, "cuMemsetD16Async", 7000, L, H, L, P) \
  E5(cuMemsetD2D16_v2, "cuMemsetD2D16", 3020, L, L, H, L, L) \
  E5(cuMemsetD2D16_v2_ptds, "cuMemsetD2D16", 7000, L, L, H, L, L) \
  E6(cuMemsetD2D16Async, "cuMemsetD2D16Async", 3020, L, L, H, L, L, P) \
  E6(cuMemsetD2D16Async_ptsz, "cuMemsetD2D16Async", 7000, L, L, H, L, L, P) \
  E3(cuMemsetD32_v2, "cuMemsetD32", 3020, L, U, L) \
  E3(cuMemsetD32_v2_ptds, "cuMemsetD32", 7000, L, U, L) \
  E4(cuMemsetD32Async, "cuMemsetD32Async", 3020, L, U, L, P) \
  E4(cuMemsetD32Async_ptsz, "cuMemsetD32Async", 7000, L, U, L, P) \
  E5(cuMemsetD2D32_v2, "cuMemsetD2D32", 3020, L, L, U, L, L) \
  E5(cuMemsetD2D32_v2_ptds, "cuMemsetD2D32", 7000, L, L, U, L, L) \
  E6(cuMemsetD2D32Async, "cuMemsetD2D32Async", 3020, L, L, U, L, L, P) \
  E6(cuMemsetD2D32Async_ptsz, "cuMemsetD2D32Async", 7000, L, L, U, L, L, P) \
  E4(cuMemcpyAsync, "cuMemcpyAsync", 4000, L, L, L, P) \
  E4(cuMemcpyAsync_ptsz, "cuMemcpyAsync", 7000, L, L, L, P) \
  E4(cuMemcpyHtoDAsync_v2, "cuMemcpyHtoDAsync", 3020, L, P, L, P) \
  E4(cuMemcpyHtoDAsync_v2_ptsz, "cuMemcpyHtoDAsync", 7000, L, P, L, P) \
  E4(cuMemcpyDtoHAsync_v2, "cuMemcpyDtoHAsync", 3020, P, L, L, P) \
  E4(cuMemcpyDtoHAsync_v2_ptsz, "cuMemcpyDtoHAsync", 7000, P, L, L, P) \
  E4(cuMemcpyDtoDAsync_v2, "cuMemcpyDtoDAsync", 3020, L, L, L, P) \
  E4(cuMemcpyDtoDAsync_v2_ptsz, "cuMemcpyDtoDAsync", 7000, L, L, L, P) \
  E3(cuMemcpyHtoD_v2, "cuMemcpyHtoD", 3020, L, P, L) \
  E3(cuMemcpyHtoD_v2_ptds, "cuMemcpyHtoD", 7000, L, P, L) \
  E3(cuMemcpyDtoH_v2, "cuMemcpyDtoH", 3020, P, L, L) \
  E3(cuMemcpyDtoH_v2_ptds, "cuMemcpyDtoH", 7000, P, L, L) \
  E3(cuMemcpyDtoD_v2, "cuMemcpyDtoD", 3020, L, L, L) \
  E3(cuMemcpyDtoD_v2_ptds, "cuMemcpyDtoD", 7000, L, L, L)

/* What DLPack's exchange API asks of simulated tensors (dlpack.h, DLPackExchangeAPI): columns as above. Of `allocate` it is
 * the part that its handler sees. */
#define EXCHANGE \
  E2(allocate, "", 0, P, P) \
  E2(from_object, "", 0, P, P) \
  E2(to_object, "", 0, P, P) \
  E3(current_stream, "", 0, I, I, P) \
  E2(view_object, "", 0, P, P)

/* From here to Python --------------------------------------------------------------------------------------------- */

/* Functions of CPython's stable ABI, found in the process. Not through ctypes: an exception that is raised where Python
 * code begins or ends, as a signal's is, stands in no `try` of that code, and ctypes leaves the status unwritten then. */
#define WEAK __attribute__((weak))
WEAK int PyGILState_Ensure(void);
WEAK void PyGILState_Release(int);
WEAK void* PyTuple_New(intptr_t);
WEAK int PyTuple_SetItem(void*, intptr_t, void*); /* takes the reference, also when it fails */
WEAK void* PyLong_FromLongLong(long long);
WEAK void* PyLong_FromUnsignedLongLong(unsigned long long);
WEAK long PyLong_AsLong(void*);
WEAK void* PyObject_CallObject(void*, void*);
WEAK void* PyErr_Occurred(void);
WEAK void PyErr_Fetch(void**, void**, void**);
WEAK void PyErr_Restore(void*, void*, void*);
WEAK void PyErr_NormalizeException(void**, void**, void**);
WEAK void PyErr_Clear(void);
WEAK int PyException_SetTraceback(void*, void*);
WEAK int PyList_Append(void*, void*);
WEAK void Py_IncRef(void*);
WEAK void Py_DecRef(void*);
WEAK extern char _Py_NoneStruct;

/* A list of Python's: a tuple (thread, exception) for each exception that a handler raised. */
EXPORT void* trunnion_sim_pending;

/* A number that no other thread of the process has or had: an operating system's thread identifier is used again. */
EXPORT uint64_t trunnion_sim_thread(void) {
  static uint64_t last;
  static _Thread_local uint64_t serial;
  if (serial == 0) serial = __atomic_add_fetch(&last, 1, __ATOMIC_RELAXED);
  return serial;
}

static _Thread_local int32_t holding;

/* Whether the calling thread held Python's lock when it last called the driver. */
EXPORT int32_t trunnion_sim_holds_lock(void) { return holding; }

static void* argument_of(char kind, va_list* given) {
  if (kind == 'I') return PyLong_FromLongLong(va_arg(*given, int32_t));
  if (kind == 'U') return PyLong_FromUnsignedLongLong(va_arg(*given, uint32_t));
  if (kind == 'L') return PyLong_FromUnsignedLongLong(va_arg(*given, uint64_t));
  if (kind != 'P') return PyLong_FromLongLong(va_arg(*given, int)); /* H, B */
  void* pointer = va_arg(*given, void*);
  if (pointer != NULL) return PyLong_FromUnsignedLongLong((uintptr_t)pointer);
  Py_IncRef(&_Py_NoneStruct);
  return &_Py_NoneStruct;
}

static void* arguments_of(const char* signature, va_list* given) {
  void* arguments = PyTuple_New((intptr_t)strlen(signature));
  for (intptr_t index = 0; arguments != NULL && signature[index] != 0; ++index) {
    void* argument = argument_of(signature[index], given);
    if (argument != NULL && PyTuple_SetItem(arguments, index, argument) == 0) continue;
    Py_DecRef(arguments);
    return NULL;
  }
  return arguments;
}

/* Keep the exception that is raised, with no step in Python, where the next one could be raised. */
static void keep_raised(void) {
  void *type, *value, *traceback;
  PyErr_Fetch(&type, &value, &traceback);
  PyErr_NormalizeException(&type, &value, &traceback);
  if (value != NULL && traceback != NULL) PyException_SetTraceback(value, traceback);
  void* pair = PyTuple_New(2);
  if (pair != NULL && value != NULL) {
    Py_IncRef(value);
    PyTuple_SetItem(pair, 0, PyLong_FromUnsignedLongLong(trunnion_sim_thread()));
    PyTuple_SetItem(pair, 1, value);
    PyList_Append(trunnion_sim_pending, pair);
  }
  if (pair != NULL) Py_DecRef(pair);
  if (type != NULL) Py_DecRef(type);
  if (value != NULL) Py_DecRef(value);
  if (traceback != NULL) Py_DecRef(traceback);
  PyErr_Clear();
}

/* What a function answers while nothing is registered, because the process is ending or has not begun; and where its
 * handler raised. */
struct answers {
  int32_t unregistered, raised;
};

static int32_t forward(void** slot, struct answers answers, const char* signature, ...) {
  if (__atomic_load_n(slot, __ATOMIC_ACQUIRE) == NULL) return answers.unregistered;
  const int locked = PyGILState_Ensure();
  holding = locked == 0; /* PyGILState_LOCKED: it was held */
  void *handler = *slot, *type, *value, *traceback;
  PyErr_Fetch(&type, &value, &traceback); /* of whoever calls, on whose behalf this runs */
  if (handler != NULL) Py_IncRef(handler);
  va_list given;
  va_start(given, signature);
  void* arguments = handler != NULL ? arguments_of(signature, &given) : NULL;
  va_end(given);
  void* result = arguments != NULL ? PyObject_CallObject(handler, arguments) : NULL;
  int32_t status = result != NULL ? (int32_t)PyLong_AsLong(result) : answers.raised;
  if (PyErr_Occurred() != NULL) {
    status = answers.raised;
    keep_raised();
  }
  if (result != NULL) Py_DecRef(result);
  if (arguments != NULL) Py_DecRef(arguments);
  if (handler != NULL) Py_DecRef(handler);
  PyErr_Restore(type, value, traceback);
  PyGILState_Release(locked);
  return handler != NULL ? status : answers.unregistered;
}

/* Behind the parameters: the signature, then the arguments. */
#define FORWARD(name, parameters, ...) \
  static void* handler_##name; \
  SHOWN int32_t name parameters { return forward(&handler_##name, (struct answers)ANSWERS, __VA_ARGS__); }

#define E0(name, base, since) FORWARD(name, (void), "")
#define E1(name, base, since, A) FORWARD(name, (TYPE_##A a), #A, a)
#define E2(name, base, since, A, B) FORWARD(name, (TYPE_##A a, TYPE_##B b), #A #B, a, b)
#define E3(name, base, since, A, B, C) FORWARD(name, (TYPE_##A a, TYPE_##B b, TYPE_##C c), #A #B #C, a, b, c)
#define E4(name, base, since, A, B, C, D) \
  FORWARD(name, (TYPE_##A a, TYPE_##B b, TYPE_##C c, TYPE_##D d), #A #B #C #D, a, b, c, d)
#define E5(name, base, since, A, B, C, D, E) \
  FORWARD(name, (TYPE_##A a, TYPE_##B b, TYPE_##C c, TYPE_##D d, TYPE_##E e), #A #B #C #D #E, a, b, c, d, e)
#define E6(name, base, since, A, B, C, D, E, F) \
  FORWARD(name, (TYPE_##A a, TYPE_##B b, TYPE_##C c, TYPE_##D d, TYPE_##E e, TYPE_##F f), #A #B #C #D #E #F, \
          a, b, c, d, e, f)
#define E7(name, base, since, A, B, C, D, E, F, G) \
  FORWARD(name, (TYPE_##A a, TYPE_##B b, TYPE_##C c, TYPE_##D d, TYPE_##E e, TYPE_##F f, TYPE_##G g), \
          #A #B #C #D #E #F #G, a, b, c, d, e, f, g)
#define E8(name, base, since, A, B, C, D, E, F, G, H) \
  FORWARD(name, \
          (TYPE_##A a, TYPE_##B b, TYPE_##C c, TYPE_##D d, TYPE_##E e, TYPE_##F f, TYPE_##G g, TYPE_##H h), \
          #A #B #C #D #E #F #G #H, a, b, c, d, e, f, g, h)
#define E11(name, base, since, A, B, C, D, E, F, G, H, I, J, K) \
  FORWARD(name, \
          (TYPE_##A a, TYPE_##B b, TYPE_##C c, TYPE_##D d, TYPE_##E e, TYPE_##F f, TYPE_##G g, TYPE_##H h, \
           TYPE_##I i, TYPE_##J j, TYPE_##K k), \
          #A #B #C #D #E #F #G #H #I #J #K, a, b, c, d, e, f, g, h, i, j, k)
#define E12(name, base, since, A, B, C, D, E, F, G, H, I, J, K, L) \
  FORWARD(name, \
          (TYPE_##A a, TYPE_##B b, TYPE_##C c, TYPE_##D d, TYPE_##E e, TYPE_##F f, TYPE_##G g, TYPE_##H h, \
           TYPE_##I i, TYPE_##J j, TYPE_##K k, TYPE_##L l), \
          #A #B #C #D #E #F #G #H #I #J #K #L, a, b, c, d, e, f, g, h, i, j, k, l)
#define E15(name, base, since, A, B, C, D, E, F, G, H, I, J, K, L, M, N, O) \
  FORWARD(name, \
          (TYPE_##A a, TYPE_##B b, TYPE_##C c, TYPE_##D d, TYPE_##E e, TYPE_##F f, TYPE_##G g, TYPE_##H h, \
           TYPE_##I i, TYPE_##J j, TYPE_##K k, TYPE_##L l, TYPE_##M m, TYPE_##N n, TYPE_##O o), \
          #A #B #C #D #E #F #G #H #I #J #K #L#M #N #O, a, b, c, d, e, f, g, h, i, j, k, l, m, n, o)

#define ANSWERS {4, 999} /* CUDA_ERROR_DEINITIALIZED, CUDA_ERROR_UNKNOWN */
#define SHOWN EXPORT
ENTRIES
#undef SHOWN
#undef ANSWERS

#define ANSWERS {-1, -1}
#define SHOWN static
EXCHANGE
#undef SHOWN
#undef ANSWERS

typedef void set_error(void* context, const char* kind, const char* message);

EXPORT int32_t trunnion_sim_allocate(void* prototype, void* out, void* context, set_error* refuse) {
  const int32_t status = allocate(prototype, out);
  if (status != 0 && refuse != NULL) refuse(context, "RuntimeError", "the simulated allocation failed");
  return status;
}

#undef E0
#undef E1
#undef E2
#undef E3
#undef E4
#undef E5
#undef E6
#undef E7
#undef E8
#undef E11
#undef E12
#undef E15

struct trunnion_sim_entry {
  const char* symbol;
  const char* base;
  const char* signature; /* one letter for each parameter */
  void* address;
  void* handler; /* the address of the variable that holds the registered handler */
  uint32_t since;
};

#define ROW(name, base, since, signature) \
  {#name, base, signature, (void*)(uintptr_t)&name, (void*)&handler_##name, since},
#define E0(name, base, since) ROW(name, base, since, "")
#define E1(name, base, since, A) ROW(name, base, since, #A)
#define E2(name, base, since, A, B) ROW(name, base, since, #A #B)
#define E3(name, base, since, A, B, C) ROW(name, base, since, #A #B #C)
#define E4(name, base, since, A, B, C, D) ROW(name, base, since, #A #B #C #D)
#define E5(name, base, since, A, B, C, D, E) ROW(name, base, since, #A #B #C #D #E)
#define E6(name, base, since, A, B, C, D, E, F) ROW(name, base, since, #A #B #C #D #E #F)
#define E7(name, base, since, A, B, C, D, E, F, G) ROW(name, base, since, #A #B #C #D #E #F #G)
#define E8(name, base, since, A, B, C, D, E, F, G, H) ROW(name, base, since, #A #B #C #D #E #F #G #H)
#define E11(name, base, since, A, B, C, D, E, F, G, H, I, J, K) \
  ROW(name, base, since, #A #B #C #D #E #F #G #H #I #J #K)
#define E12(name, base, since, A, B, C, D, E, F, G, H, I, J, K, L) \
  ROW(name, base, since, #A #B #C #D #E #F #G #H #I #J #K #L)
#define E15(name, base, since, A, B, C, D, E, F, G, H, I, J, K, L, M, N, O) \
  ROW(name, base, since, #A #B #C #D #E #F #G #H #I #J #K #L#M #N #O)

#define END {NULL, NULL, NULL, NULL, NULL, 0}
EXPORT const struct trunnion_sim_entry trunnion_sim_entries[] = {ENTRIES END};
EXPORT const struct trunnion_sim_entry trunnion_sim_exchange[] = {EXCHANGE END};
