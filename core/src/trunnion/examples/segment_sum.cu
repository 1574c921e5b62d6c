// sums[key] = the sum of all rows of x with that key: a table that is read and written again and again while the
// matrix streams through the cache once.
//
//   x     fp32 [rows, width] row-major
//   keys  int32 [rows]: a row whose key is not in 0 .. segments - 1 counts nowhere
//   sums  fp32 [segments, width], zeros at the start: what the launch's access-policy window keeps in the L2 cache
//
// Launch: grid rows, block 256.

constexpr int kThreads = 256;

extern "C" __global__ void __launch_bounds__(kThreads)
segment_sum(const float* x, const int* keys, float* sums, int width, int segments) {
  const int key = keys[blockIdx.x];
  if (key < 0 || key >= segments) {
    return;
  }
  const float* from = x + static_cast<long long>(blockIdx.x) * width;
  float* to = sums + static_cast<long long>(key) * width;
#pragma unroll 4
  for (int i = threadIdx.x; i < width; i += kThreads) {
    atomicAdd(&to[i], from[i]);
  }
}
