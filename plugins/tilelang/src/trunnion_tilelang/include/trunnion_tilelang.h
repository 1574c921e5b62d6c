// What TileLang's CUDA C++ takes for granted and NVRTC does not give; included before each of its sources.
#pragma once

// The parts of the C++ library that TileLang's headers name.
#include <tl_templates/cuda/nvrtc_std.h>

// The compiler's cuda_runtime.h has these too, for sources that include it.
#ifndef TRUNNION_GRID_DEPENDENCY
#define TRUNNION_GRID_DEPENDENCY
// CUDA's own functions stand in a header that needs others, which no machine without a toolkit has. As templates they
// give way to CUDA's where a source includes that header itself.
template <class... Nothing>
static __device__ __forceinline__ void cudaTriggerProgrammaticLaunchCompletion(Nothing...) {
  asm volatile("griddepcontrol.launch_dependents;" :::);
}

template <class... Nothing>
static __device__ __forceinline__ void cudaGridDependencySynchronize(Nothing...) {
  asm volatile("griddepcontrol.wait;" ::: "memory");
}
#endif
