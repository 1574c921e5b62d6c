/* What a kernel of the CPU target is told about the block that it computes. For C and C++.
 *
 * A kernel is a function that returns nothing and whose last parameter is `const trunnion_block_t*`:
 *
 *   extern "C" void scale(const float* x, float* y, int64_t n, float factor, const trunnion_block_t* block)
 *
 * It is called once for each block of the grid. The threads of a block are the kernel's own loop over `block->block`,
 * or no loop at all: the extents are what the launch says, and mean what kernel and launch agree on.
 */
#ifndef TRUNNION_BLOCK_H
#define TRUNNION_BLOCK_H

#include <stddef.h>
#include <stdint.h>

typedef struct trunnion_block_t {
  /* Which block this is, along x, y, z: each less than `grid`. Calls on one thread come with x fastest, then y. */
  uint32_t index[3];

  /* Blocks of the launch along x, y, z. None is 0: such a launch calls nothing. */
  uint32_t grid[3];

  /* Threads of a block along x, y, z, as the launch says: 1 to 1024, 1024, 64. Nobody runs them but the kernel. */
  uint32_t block[3];

  /* Scratch of this block, aligned to 64 bytes; NULL if `shared_bytes` is 0. What it holds at first is undefined, and
   * nothing of it is kept for another block. */
  void* shared;

  /* The size of `shared` in bytes: the launch's dynamic_smem_bytes. */
  uint64_t shared_bytes;
} trunnion_block_t;

/* Host objects are linked with launchers that another compiler may have made. */
#ifdef __cplusplus
#define TRUNNION_BLOCK_ASSERT(condition, message) static_assert(condition, message)
#else
#define TRUNNION_BLOCK_ASSERT(condition, message) _Static_assert(condition, message)
#endif
TRUNNION_BLOCK_ASSERT(sizeof(void*) == 8, "the CPU target has 64-bit addresses");
TRUNNION_BLOCK_ASSERT(offsetof(trunnion_block_t, grid) == 12, "the layout of trunnion_block_t");
TRUNNION_BLOCK_ASSERT(offsetof(trunnion_block_t, block) == 24, "the layout of trunnion_block_t");
TRUNNION_BLOCK_ASSERT(offsetof(trunnion_block_t, shared) == 40, "the layout of trunnion_block_t");
TRUNNION_BLOCK_ASSERT(sizeof(trunnion_block_t) == 56, "the layout of trunnion_block_t");
#undef TRUNNION_BLOCK_ASSERT

#endif /* TRUNNION_BLOCK_H */
