#pragma once

#if __has_include_next(<cuda_runtime_api.h>)
#include_next <cuda_runtime_api.h>
#endif
#include <cuda_runtime.h>
