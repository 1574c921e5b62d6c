// C = relu(A * B^T) for a long k: the first launch splits k over blocks, which add into a workspace of zeros; the
// second finishes what has been added up.
//
//   A    fp32 [m, k] row-major
//   B    fp32 [n, k] row-major
//   sum  fp32 [m, n], zeros at the start
//   C    fp32 [m, n]

constexpr int kTile = 32;

// sum += A * B^T over one part of k. Launch: grid (ceildiv(m, 32), ceildiv(n, 32), parts), block (32, 8).
extern "C" __global__ void __launch_bounds__(256)
multiply_part(const float* a, const float* b, float* sum, int m, int n, int k, int k_of_part) {
  __shared__ float of_a[kTile][kTile + 1];
  __shared__ float of_b[kTile][kTile + 1];
  const int row = blockIdx.x * kTile;
  const int column = blockIdx.y * kTile;
  const int begin = blockIdx.z * k_of_part;
  const int end = min(k, begin + k_of_part);
  float d[4] = {};  // rows threadIdx.y, 8 further, ...
  for (int depth = begin; depth < end; depth += kTile) {
    const int at = depth + threadIdx.x;
#pragma unroll
    for (int i = threadIdx.y; i < kTile; i += 8) {
      of_a[i][threadIdx.x] = at < end && row + i < m ? a[static_cast<long long>(row + i) * k + at] : 0.0f;
      of_b[i][threadIdx.x] = at < end && column + i < n ? b[static_cast<long long>(column + i) * k + at] : 0.0f;
    }
    __syncthreads();
    for (int j = 0; j < kTile; ++j) {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        d[i] += of_a[threadIdx.y + i * 8][j] * of_b[threadIdx.x][j];
      }
    }
    __syncthreads();
  }
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const int at_row = row + threadIdx.y + i * 8;
    const int at_column = column + threadIdx.x;
    if (at_row < m && at_column < n) {
      atomicAdd(&sum[static_cast<long long>(at_row) * n + at_column], d[i]);
    }
  }
}

// c[i] = max(sum[i], 0) for 0 <= i < count
extern "C" __global__ void finish(const float* sum, float* c, long long count) {
  const long long i = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < count) {
    c[i] = fmaxf(sum[i], 0.0f);
  }
}
