// y = x / |x| for one long vector in one launch: all blocks add up the squares, wait for one another, and divide.
//
//   x, y      fp32 [n]
//   partial   fp32 [gridDim.x]: each block's sum, in fixed places so that every run adds in the same order
//   arrived   a counter, 0 at the start
//
// The launch is cooperative: the blocks must all be resident at once, or the waiting never ends. Block 256.

constexpr int kThreads = 256;

// Returns, to every thread of the block, the sum of `value` over its threads.
__device__ float block_sum(float value) {
  __shared__ float of_warp[kThreads / 32];
  for (int lanes = 16; lanes > 0; lanes /= 2) {
    value += __shfl_xor_sync(0xFFFFFFFF, value, lanes);
  }
  if (threadIdx.x % 32 == 0) {
    of_warp[threadIdx.x / 32] = value;
  }
  __syncthreads();
  float sum = 0.0f;
  for (int warp = 0; warp < kThreads / 32; ++warp) {
    sum += of_warp[warp];
  }
  __syncthreads();
  return sum;
}

// Returns once every block of the grid has come here; what they wrote before is then visible.
__device__ void grid_sync(unsigned* arrived) {
  __syncthreads();
  if (threadIdx.x == 0) {
    __threadfence();
    unsigned seen = atomicAdd(arrived, 1) + 1;
    while (seen < gridDim.x) {
      asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(seen) : "l"(arrived) : "memory");
    }
    __threadfence();
  }
  __syncthreads();
}

extern "C" __global__ void __launch_bounds__(kThreads)
unit_vector(const float* x, float* y, float* partial, unsigned* arrived, long long n) {
  const long long first = static_cast<long long>(blockIdx.x) * kThreads + threadIdx.x;
  const long long step = static_cast<long long>(gridDim.x) * kThreads;
  float squares = 0.0f;
  for (long long i = first; i < n; i += step) {
    squares += x[i] * x[i];
  }
  const float own = block_sum(squares);
  if (threadIdx.x == 0) {
    partial[blockIdx.x] = own;
  }
  grid_sync(arrived);

  float of_others = 0.0f;
  for (unsigned block = threadIdx.x; block < gridDim.x; block += kThreads) {
    of_others += __ldcg(&partial[block]);  // past the L1 cache, which knows nothing of the other blocks
  }
  const float length = sqrtf(block_sum(of_others));
  for (long long i = first; i < n; i += step) {
    y[i] = x[i] / length;
  }
}
