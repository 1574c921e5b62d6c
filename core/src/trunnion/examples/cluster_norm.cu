// Rows to mean 0 and variance 1, each by one cluster, whose blocks exchange sums through distributed shared memory.
//
//   x, y  fp32 [rows, n] row-major
//
// Launch: grid (kBlocks, rows), cluster (kBlocks, 1, 1), block 256. Block b of a cluster has the b-th of kBlocks
// pieces of the row. More than 8 blocks are a non-portable cluster size.
// Target: sm_90 or later.

constexpr int kThreads = 256;

// All blocks of the cluster arrive; what they wrote before is visible after.
__device__ __forceinline__ void cluster_sync() {
  asm volatile("barrier.cluster.arrive.release;" ::: "memory");
  asm volatile("barrier.cluster.wait.acquire;" ::: "memory");
}

__device__ __forceinline__ unsigned cluster_rank() {
  unsigned rank;
  asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  return rank;
}

// Returns what lies in another block's shared memory where `own` lies in this block's.
__device__ __forceinline__ float read_of_block(const float* own, unsigned rank) {
  const unsigned address = static_cast<unsigned>(__cvta_generic_to_shared(own));
  unsigned mapped;
  float value;
  asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(mapped) : "r"(address), "r"(rank));
  asm volatile("ld.shared::cluster.f32 %0, [%1];" : "=f"(value) : "r"(mapped) : "memory");
  return value;
}

// Returns, to every thread of the block, the sum of `value` over its threads. `scratch` is free again on return.
__device__ float block_sum(float value, float* scratch) {
  for (int lanes = 16; lanes > 0; lanes /= 2) {
    value += __shfl_xor_sync(0xFFFFFFFF, value, lanes);
  }
  if (threadIdx.x % 32 == 0) {
    scratch[threadIdx.x / 32] = value;
  }
  __syncthreads();
  float sum = 0.0f;
  for (int warp = 0; warp < kThreads / 32; ++warp) {
    sum += scratch[warp];
  }
  __syncthreads();
  return sum;
}

// Returns, to every thread of the cluster, the sum of `value` over its threads. `shared` must not be used again.
template <int kBlocks>
__device__ float cluster_sum(float value, float* scratch, float* shared) {
  const float own = block_sum(value, scratch);
  if (threadIdx.x == 0) {
    *shared = own;
  }
  cluster_sync();
  float sum = 0.0f;
  for (unsigned rank = 0; rank < kBlocks; ++rank) {
    sum += read_of_block(shared, rank);
  }
  return sum;
}

template <int kBlocks>
__global__ void __launch_bounds__(kThreads) cluster_norm(const float* x, float* y, int n, float epsilon) {
  __shared__ float scratch[kThreads / 32];
  __shared__ float sums[2];  // one for each exchange: a slow block may still read the first
  const int piece = (n + kBlocks - 1) / kBlocks;
  const long long row = static_cast<long long>(blockIdx.y) * n;
  const int begin = cluster_rank() * piece;
  const int end = min(n, begin + piece);

  float sum = 0.0f;
  for (int i = begin + threadIdx.x; i < end; i += kThreads) {
    sum += x[row + i];
  }
  const float mean = cluster_sum<kBlocks>(sum, scratch, &sums[0]) / n;

  float squares = 0.0f;
  for (int i = begin + threadIdx.x; i < end; i += kThreads) {
    const float off = x[row + i] - mean;
    squares += off * off;
  }
  const float variance = cluster_sum<kBlocks>(squares, scratch, &sums[1]) / n;

  const float factor = rsqrtf(variance + epsilon);
  for (int i = begin + threadIdx.x; i < end; i += kThreads) {
    y[row + i] = (x[row + i] - mean) * factor;
  }
  cluster_sync();  // no block may leave while others read its shared memory
}
