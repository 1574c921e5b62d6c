// CUTLASS: its adapter over the kernel whose types the program's own text names, `described.h`.
// tensors: a, b, d; numbers: m, n, k, and the bits of alpha.

#include "described.h"

#include <cutlass/gemm/device/gemm_universal_adapter.h>

#include <string.h>

#include "timed.h"

namespace {

using Adapter = cutlass::gemm::device::GemmUniversalAdapter<Gemm>;

Adapter::Arguments arguments_of(void* const* tensors, const long long* numbers) {
  const int m = static_cast<int>(numbers[0]), n = static_cast<int>(numbers[1]),
            k = static_cast<int>(numbers[2]);
  const int bits = static_cast<int>(numbers[3]);
  float alpha;
  memcpy(&alpha, &bits, sizeof alpha);
  Adapter::Arguments arguments;
  arguments.mode = cutlass::gemm::GemmUniversalMode::kGemm;
  arguments.problem_shape = {m, n, k, 1};
  arguments.mainloop.ptr_A = at<cutlass::half_t>(tensors, 0);
  arguments.mainloop.dA = {k, _1{}, 0};
  arguments.mainloop.ptr_B = at<cutlass::half_t>(tensors, 1);
  arguments.mainloop.dB = {k, _1{}, 0};
  arguments.epilogue.thread.alpha = alpha;
  arguments.epilogue.thread.beta = 0.0f;
  arguments.epilogue.ptr_D = at<float>(tensors, 2);
  arguments.epilogue.dD = {n, _1{}, 0};
  return arguments;
}

}  // namespace

EXPORT double arguments_each_time(long long calls, void* const* tensors, const long long* numbers) {
  Adapter adapter;
  return timed(calls, [&] { return adapter(arguments_of(tensors, numbers)) == cutlass::Status::kSuccess; });
}

EXPORT double parameters_kept(long long calls, void* const* tensors, const long long* numbers) {
  Adapter adapter;
  if (adapter.initialize(arguments_of(tensors, numbers)) != cutlass::Status::kSuccess) return -1;
  return timed(calls, [&] { return adapter() == cutlass::Status::kSuccess; });
}
