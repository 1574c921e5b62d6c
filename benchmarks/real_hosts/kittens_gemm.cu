// ThunderKittens' bfloat16 GEMM: the function that makes its three layouts, with their tensor maps, and launches.
// tensors: a, b, c; numbers: m, n, k.

#define main main_of_the_project
#include "kernels/gemm/bf16_h100/bf16_h100_gemm.cu"
#undef main

#include "timed.h"

EXPORT double maps_each_time(long long calls, void* const* tensors, const long long* numbers) {
  using Matrices = matmul_template<2, 4, 8>;
  const size_t m = numbers[0], n = numbers[1], k = numbers[2];
  const dim3 grid = Matrices::grid(m, n, k), block(kittens::prototype::detail::NUM_THREADS_v<Matrices>);
  const auto attribute = cudaFuncAttributeMaxDynamicSharedMemorySize;
  if (cudaFuncSetAttribute(kittens::prototype::lcf::kernel<Matrices>, attribute, MAX_SHARED_MEMORY - 1024))
    return -1;
  return timed(calls, [=] {
    inner_run<Matrices>(at<bf16>(tensors, 0), at<bf16>(tensors, 1), at<bf16>(tensors, 2), m, n, k, grid,
                        block);
    return true;
  });
}
