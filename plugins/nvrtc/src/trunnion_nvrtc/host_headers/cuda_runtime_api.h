#pragma once

#if __has_include(<channel_descriptor.h>)  // which it includes; NVRTC 13.5 has no __has_include_next
#include_next <cuda_runtime_api.h>
#endif
#include <cuda_runtime.h>
