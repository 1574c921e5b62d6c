// The grid loop of a launch on the CPU: one call of the kernel for each block, on the calling thread or on several.
#pragma once

#include <pthread.h>
#include <sched.h>
#include <trunnion/block.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <trunnion/refusals.hpp>

namespace trunnion {

// A kernel as a host object holds it: the address of each argument, and the block.
using HostKernel = void (*)(void* const* arguments, const trunnion_block_t* block);

constexpr uint64_t kHostScratchAlignment = 64;

// What one thread of a launch does: `count` blocks in a row, the first of which is number `first`.
struct HostShare {
  HostKernel kernel = nullptr;
  void* const* arguments = nullptr;
  trunnion_block_t block = {};
  uint64_t first = 0;
  uint64_t count = 0;
  pthread_t thread = {};
  bool started = false;
};

// Call `kernel` for each block of a grid.
//
//   arguments     the address of each argument; they are read by every call
//   grid, block   extents along x, y, z; a grid with a 0 calls nothing
//   shared_bytes  scratch of a block; each thread has its own, so blocks that run at once never share it
//   threads       how many threads take part, the calling one among them; 0: as many as there are cores
//
// Several threads take consecutive parts of the grid, so that one thread's blocks come in order. Where the system has
// fewer threads, or memory for fewer scratches, fewer take part. False: not a single scratch; the error is raised.
bool run_grid(HostKernel kernel, void* const* arguments, const uint32_t (&grid)[3],
              const uint32_t (&block)[3], uint64_t shared_bytes, uint32_t threads);

}  // namespace trunnion
