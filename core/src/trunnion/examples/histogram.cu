// How often values fall into bins, how many fall into none, and, if asked for, the share of each bin.
//
//   x        fp32 [n]
//   range    the bins: `bins` equal ones from `low` to below `high`
//   weights  int32 [n] at an address, or null: each value counts once
//   counts   int32 [bins], zeros at the start
//   outside  int32, 0 at the start
//   shares   fp32 [bins]

struct Range {
  float low;
  float high;
};

// Launch: grid ceildiv(n, 256), block 256.
extern "C" __global__ void count(const float* x, Range range, const int* weights, int* counts, int* outside,
                                 int bins, int n) {
  const long long i = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= n) {
    return;
  }
  const int weight = weights == nullptr ? 1 : weights[i];
  const float at = (x[i] - range.low) / (range.high - range.low) * bins;
  if (at >= 0.0f && at < bins) {
    atomicAdd(&counts[static_cast<int>(at)], weight);
  } else {
    atomicAdd(outside, weight);  // NaN too
  }
}

// shares[i] = counts[i] over all that was counted. Launch: one block.
extern "C" __global__ void share(const int* counts, const int* outside, float* shares, int bins) {
  long long all = *outside;
  for (int i = 0; i < bins; ++i) {
    all += counts[i];
  }
  for (int i = threadIdx.x; i < bins; i += blockDim.x) {
    shares[i] = all == 0 ? 0.0f : static_cast<float>(static_cast<double>(counts[i]) / static_cast<double>(all));
  }
}
