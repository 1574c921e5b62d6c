// CUDA's own header where there is one, and what it lacks for NVRTC, which brings vector types, dim3 and cudaStream_t.
#pragma once

#ifdef __has_include_next
#if __has_include_next(<cuda_runtime.h>)
#include_next <cuda_runtime.h>
#endif
#else  // NVRTC 13.5 cannot be asked for the next one: for what that includes
#if __has_include(<channel_descriptor.h>)
#include_next <cuda_runtime.h>
#endif
#endif

#ifndef TRUNNION_GRID_DEPENDENCY
#define TRUNNION_GRID_DEPENDENCY
// As templates they give way to NVRTC's own, which it brings for relocatable code alone.
template <class... Nothing>
static __device__ __forceinline__ void cudaTriggerProgrammaticLaunchCompletion(Nothing...) {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.launch_dependents;" :::);
#endif
}

template <class... Nothing>
static __device__ __forceinline__ void cudaGridDependencySynchronize(Nothing...) {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}
#endif
