// A CUDA driver of one device, as libcuda.so.1: every call succeeds, and each launch is told on standard output.
#include <cuda.h>
#include <stdio.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))

static CUresult nothing(void) { return CUDA_SUCCESS; }

static CUresult version(int* out) { return *out = 13000, CUDA_SUCCESS; }

static CUresult count(int* out) { return *out = 1, CUDA_SUCCESS; }

static CUresult device(CUdevice* out) { return *out = 0, CUDA_SUCCESS; }

static CUresult load(CUlibrary* out, const void* image) {
  printf("image %.4s\n", (const char*)image);
  return *out = (CUlibrary)0x1000, CUDA_SUCCESS;
}

static CUresult kernel(CUkernel* out, CUlibrary library, const char* name) {
  (void)library;
  return *out = (CUkernel)name, CUDA_SUCCESS;
}

static CUresult unload(CUlibrary library) {
  printf("unloaded %d\n", library == (CUlibrary)0x1000);
  return CUDA_SUCCESS;
}

static CUresult launch(const CUlaunchConfig* config, CUfunction function, void** parameters) {
  printf("%s grid %u block %u stream %p", (const char*)function, config->gridDimX, config->blockDimX,
         (void*)config->hStream);
  const float *a = *(float**)parameters[0], *b = *(float**)parameters[1];
  float* c = *(float**)parameters[2];
  const int length = *(int*)parameters[3];
  for (int i = 0; i < length; i++) c[i] = a[i] + b[i];
  printf(" length %d\n", length);
  return CUDA_SUCCESS;
}

EXPORT CUresult cuGetProcAddress_v2(const char* name, void** out, int version_wanted, cuuint64_t flags,
                                    CUdriverProcAddressQueryResult* state) {
  (void)version_wanted, (void)flags, (void)state;
  static const struct {
    const char* name;
    void* function;
  } known[] = {{"cuDriverGetVersion", (void*)version}, {"cuDeviceGetCount", (void*)count},
               {"cuCtxGetDevice", (void*)device},      {"cuLibraryLoadData", (void*)load},
               {"cuLibraryGetKernel", (void*)kernel},  {"cuLibraryUnload", (void*)unload},
               {"cuLaunchKernelEx", (void*)launch}};
  *out = (void*)nothing;
  for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
    if (strcmp(known[i].name, name) == 0) *out = known[i].function;
  }
  return CUDA_SUCCESS;
}
