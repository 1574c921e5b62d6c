// How each project's host code is timed: a loop in C++ that calls it, and nothing else.
//
// Every file beside this one includes the reader's copy of a project and exports one function for each way to call it:
//
//   double way(long long calls, void* const* tensors, const long long* numbers)
//
// `tensors` are addresses in the order of the program's parameters, with the output behind them; the result is the
// seconds of all calls, or -1 if the project or CUDA's runtime reported an error.

#pragma once

#include <cuda_runtime.h>
#include <time.h>

#define EXPORT extern "C" __attribute__((visibility("default")))

template <class T>
T* at(void* const* tensors, int index) {
  return static_cast<T*>(tensors[index]);
}

// `call` takes the number of the call and returns whether it worked.
template <class Call>
double timed(long long calls, Call call) {
  timespec start, end;
  bool worked = true;
  clock_gettime(CLOCK_MONOTONIC, &start);
  for (long long i = 0; i < calls; i++) worked &= call();
  clock_gettime(CLOCK_MONOTONIC, &end);
  if (!worked || cudaGetLastError() != cudaSuccess) return -1;
  return static_cast<double>(end.tv_sec - start.tv_sec) +
         1e-9 * static_cast<double>(end.tv_nsec - start.tv_nsec);
}
