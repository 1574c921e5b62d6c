#pragma once

#ifdef __has_include_next
#if __has_include_next(<cuda_runtime_api.h>)
#include_next <cuda_runtime_api.h>
#endif
#elif __has_include(<channel_descriptor.h>)  // which it includes: NVRTC 13.5 cannot be asked for the next one
#include_next <cuda_runtime_api.h>
#endif
#include <cuda_runtime.h>
