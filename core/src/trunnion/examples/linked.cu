// y[i] = smooth_step(x[i]) for 0 <= i < n. The function comes from another part of the program, `linked_step.cu`,
// and meets the kernel when both are linked.

extern __device__ float smooth_step(float x);

extern "C" __global__ void linked(const float* x, float* y, long long n) {
  const long long i = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < n) {
    y[i] = smooth_step(x[i]);
  }
}
