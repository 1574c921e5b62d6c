// Two kernels that compete for the L2 cache: one reads a buffer again and again, the other streams through memory.

// sums[thread] = the sum of what the thread reads of v, in `passes` passes over all of it. Any grid.
extern "C" __global__ void reread(const float4* v, float* sums, long long quads, int passes) {
  const long long first = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
  const long long step = static_cast<long long>(gridDim.x) * blockDim.x;
  float sum = 0.0f;
  for (int pass = 0; pass < passes; ++pass) {
    for (long long i = first; i < quads; i += step) {
      const float4 q = __ldcg(&v[i]);  // from the L2 cache, never the L1
      sum += q.x + q.y + q.z + q.w;
    }
  }
  sums[first] = sum;
}
