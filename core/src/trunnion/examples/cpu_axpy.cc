// z = alpha * x + y on the CPU: each call computes one block, the kernel's own loop its elements.
#include <trunnion/block.h>

extern "C" void axpy(float alpha, const float* x, const float* y, float* z, int64_t n,
                     const trunnion_block_t* block) {
  const int64_t width = block->block[0];
  const int64_t first = block->index[0] * width;
  const int64_t last = first + width < n ? first + width : n;
  for (int64_t i = first; i < last; ++i) z[i] = alpha * x[i] + y[i];
}
