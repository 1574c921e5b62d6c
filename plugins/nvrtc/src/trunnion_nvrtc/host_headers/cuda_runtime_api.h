#pragma once

#ifdef __has_include_next
#if __has_include_next(<cuda_runtime_api.h>)
#include_next <cuda_runtime_api.h>
#endif
#else  // NVRTC 13.5 cannot be asked for the next one: for what that includes
#if __has_include(<channel_descriptor.h>)
#include_next <cuda_runtime_api.h>
#endif
#endif
#include <cuda_runtime.h>
