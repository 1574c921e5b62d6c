// y = leaky(x * gain + bias + offset): a matrix with any strides, a bias that may be absent, scalars of four types.
//
//   x     fp32 [m, n], element (i, j) at i * stride_m + j * stride_n
//   bias  fp32 [n], or null: no bias
//   y     fp32 [m, n] row-major
//   leaky(z) = z, or where z < 0 and `rectify`: z * slope
//
// Launch: grid (ceildiv(n, 256), m), block 256.

// A bfloat16 is the upper half of a float; a struct of its own so that no header is needed.
struct BFloat16 {
  unsigned short bits;
};

extern "C" __global__ void affine(const float* x, const float* bias, float* y, long long stride_m,
                                  long long stride_n, long long n, float gain, long long offset, bool rectify,
                                  BFloat16 slope) {
  const long long i = blockIdx.y;
  const long long j = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (j >= n) {
    return;
  }
  float z = x[i * stride_m + j * stride_n] * gain + static_cast<float>(offset);
  if (bias != nullptr) {
    z += bias[j];
  }
  if (rectify && z < 0.0f) {
    z *= __uint_as_float(static_cast<unsigned>(slope.bits) << 16);
  }
  y[i * n + j] = z;
}
