// cuda-samples, reductionMultiBlockCG: the function that launches its cooperative kernel.
// tensors: x, partial sums, total; numbers: elements, threads of a block.

#define main main_of_the_sample
#include "reductionMultiBlockCG.cu"
#undef main

#include "timed.h"

namespace {

// The sample, too, asks once how many blocks fit, before it launches many times.
int blocks_of(int size, int threads) {
  int device = 0, processors = 0, held = 0;
  cudaGetDevice(&device);
  cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, device);
  cudaOccupancyMaxActiveBlocksPerMultiprocessor(&held, reduceSinglePassMultiBlockCG, threads,
                                                threads * sizeof(double));
  return min((size + threads - 1) / threads, processors * held);
}

}  // namespace

EXPORT double two_launches(long long calls, void* const* tensors, const long long* numbers) {
  const int size = static_cast<int>(numbers[0]), threads = static_cast<int>(numbers[1]);
  const int blocks = blocks_of(size, threads);
  return timed(calls, [=] {
    call_reduceSinglePassMultiBlockCG(size, threads, blocks, at<float>(tensors, 0), at<float>(tensors, 1));
    call_reduceSinglePassMultiBlockCG(1, threads, 1, at<float>(tensors, 1), at<float>(tensors, 2));
    return true;
  });
}
