// c[i] = a[i] + b[i] for 0 <= i < n: the smallest program that uses every part of the way.
//
// One thread adds one element, in blocks of any one-dimensional size. The grid may cover more threads than n.

extern "C" __global__ void vector_add(const float* a, const float* b, float* c, int n) {
  // Widened before the multiplication: the last block of an n close to 2^31 would overflow an int.
  const long long i = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < n) {
    c[i] = a[i] + b[i];
  }
}
