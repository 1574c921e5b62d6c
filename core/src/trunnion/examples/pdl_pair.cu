// Two kernels, of which the second starts before the first is done: a programmatic dependent launch (PDL).
//
// `produce` lets its successor start at once. `consume` fetches what does not depend on it, then waits until all
// of `produce` is done and its writes are visible. It reads them from the other end, so that its first block
// needs what the last block of `produce` has written: without the wait the result would be wrong.

// squares[i] = x[i] * x[i] for 0 <= i < n
extern "C" __global__ void produce(const float* x, float* squares, int n) {
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
  const long long i = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < n) {
    squares[i] = x[i] * x[i];
  }
}

// y[i] = squares[n - 1 - i] + bias[i] for 0 <= i < n
extern "C" __global__ void consume(const float* squares, const float* bias, float* y, int n) {
  const long long i = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
  const float own = i < n ? bias[i] : 0.0f;
  asm volatile("griddepcontrol.wait;" ::: "memory");
  if (i < n) {
    y[i] = squares[n - 1 - i] + own;
  }
}
