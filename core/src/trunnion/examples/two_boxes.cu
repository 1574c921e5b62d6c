// Sums of a matrix's rows and of its columns, by two kernels that each read it through a map called `tile`. The
// maps differ in their boxes alone: 8 rows of 64 columns, and 64 rows of 8 columns.
//
//   matrix   fp32 [m, n] row-major, n a multiple of 4
//   rows     fp32 [m]
//   columns  fp32 [n]
//
// Block 64: one warp copies, each thread adds. Target: sm_90 or later.

#include "tensor_copy.cuh"

constexpr int kShort = 8;
constexpr int kLong = 64;
constexpr unsigned kBytes = kShort * kLong * 4;

struct Copy {
  alignas(128) float box[kShort * kLong];
  unsigned long long barrier;
};

__device__ __forceinline__ void start(Copy& copy) {
  if (threadIdx.x == 0) {
    mbarrier_init(shared_address(&copy.barrier), 1);
    fence_proxy_async();
  }
  __syncthreads();
}

// Returns once the box at (column, row) lies in shared memory.
__device__ __forceinline__ void fetch(Copy& copy, const TensorMap& tile, int column, int row, unsigned parity) {
  __syncthreads();  // everybody has read the box before
  if (threadIdx.x == 0) {
    mbarrier_arrive_expect_tx(shared_address(&copy.barrier), kBytes);
    copy_box(shared_address(copy.box), tile, shared_address(&copy.barrier), column, row);
  }
  mbarrier_wait(shared_address(&copy.barrier), parity);
}

// Launch: grid ceildiv(m, 8). Eight threads add a row together.
extern "C" __global__ void __launch_bounds__(kLong)
row_sums(const __grid_constant__ TensorMap tile, float* rows, int m, int n) {
  __shared__ Copy copy;
  start(copy);
  const int row = blockIdx.x * kShort;
  const int own = threadIdx.x / 8;
  float sum = 0.0f;
  for (int column = 0, parity = 0; column < n; column += kLong, parity ^= 1) {
    fetch(copy, tile, column, row, parity);
    for (int i = threadIdx.x % 8; i < kLong; i += 8) {
      sum += copy.box[own * kLong + i];  // zeros beyond the matrix
    }
  }
  for (int lanes = 4; lanes > 0; lanes /= 2) {
    sum += __shfl_xor_sync(0xFFFFFFFF, sum, lanes);
  }
  if (threadIdx.x % 8 == 0 && row + own < m) {
    rows[row + own] = sum;
  }
}

// Launch: grid ceildiv(n, 8). Eight threads add a column together.
extern "C" __global__ void __launch_bounds__(kLong)
column_sums(const __grid_constant__ TensorMap tile, float* columns, int m, int n) {
  __shared__ Copy copy;
  start(copy);
  const int column = blockIdx.x * kShort;
  const int own = threadIdx.x / 8;
  float sum = 0.0f;
  for (int row = 0, parity = 0; row < m; row += kLong, parity ^= 1) {
    fetch(copy, tile, column, row, parity);
    for (int i = threadIdx.x % 8; i < kLong; i += 8) {
      sum += copy.box[i * kShort + own];
    }
  }
  for (int lanes = 4; lanes > 0; lanes /= 2) {
    sum += __shfl_xor_sync(0xFFFFFFFF, sum, lanes);
  }
  if (threadIdx.x % 8 == 0 && column + own < n) {
    columns[column + own] = sum;
  }
}
