#include <trunnion/host_grid.hpp>

namespace trunnion {

// Call the kernel for each block of a share, x fastest, then y, then z.
static void run_share(HostShare* share) {
  trunnion_block_t block = share->block;
  const uint64_t width = block.grid[0];
  const uint64_t height = block.grid[1];
  block.index[0] = static_cast<uint32_t>(share->first % width);
  block.index[1] = static_cast<uint32_t>(share->first / width % height);
  block.index[2] = static_cast<uint32_t>(share->first / width / height);
  for (uint64_t left = share->count; left != 0; --left) {
    share->kernel(share->arguments, &block);
    if (++block.index[0] == block.grid[0]) {
      block.index[0] = 0;
      if (++block.index[1] == block.grid[1]) {
        block.index[1] = 0;
        ++block.index[2];
      }
    }
  }
}

static void* run_share_on_thread(void* share) {
  run_share(static_cast<HostShare*>(share));
  return nullptr;
}

// The cores that this process may run on.
static uint32_t host_cores() {
  cpu_set_t allowed;
  if (sched_getaffinity(0, sizeof allowed, &allowed) == 0) return static_cast<uint32_t>(CPU_COUNT(&allowed));
  const long online = sysconf(_SC_NPROCESSORS_ONLN);  // more cores than a cpu_set_t can tell apart
  return online > 0 ? static_cast<uint32_t>(online) : 1;
}

// Shares with their scratch: as many as there is memory for, at most `wanted`; 0 if there is none for a single one.
static uint32_t allocate_shares(HostShare* shares, uint32_t wanted, uint64_t shared_bytes) {
  if (shared_bytes == 0) return wanted;
  const uint64_t rounded =
      (shared_bytes + kHostScratchAlignment - 1) / kHostScratchAlignment * kHostScratchAlignment;
  for (uint32_t index = 0; index < wanted; ++index) {
    shares[index].block.shared =
        rounded < shared_bytes ? nullptr : std::aligned_alloc(kHostScratchAlignment, rounded);
    if (shares[index].block.shared == nullptr) return index;
  }
  return wanted;
}

// Run every share: the first on the calling thread, each other on one of its own, or here too if there is no thread.
static void run_shares(HostShare* shares, uint32_t count) {
  for (uint32_t index = 1; index < count; ++index) {
    HostShare& share = shares[index];
    share.started = pthread_create(&share.thread, nullptr, run_share_on_thread, &share) == 0;
  }
  run_share(&shares[0]);
  for (uint32_t index = 1; index < count; ++index) {
    if (!shares[index].started) run_share(&shares[index]);
  }
  for (uint32_t index = 1; index < count; ++index) {
    if (shares[index].started) pthread_join(shares[index].thread, nullptr);
  }
}

bool run_grid(HostKernel kernel, void* const* arguments, const uint32_t (&grid)[3],
              const uint32_t (&block)[3], uint64_t shared_bytes, uint32_t threads) {
  // At most 2**31 * 2**16 * 2**16 blocks: a launch with more was refused.
  const uint64_t blocks = static_cast<uint64_t>(grid[0]) * grid[1] * grid[2];
  if (blocks == 0) return true;
  uint64_t wanted = threads != 0 ? threads : host_cores();
  if (wanted > blocks) wanted = blocks;
  HostShare alone;
  HostShare* several = nullptr;
  if (wanted > 1) several = static_cast<HostShare*>(std::calloc(wanted, sizeof(HostShare)));
  HostShare* shares = several != nullptr ? several : &alone;
  const uint32_t room = several != nullptr ? static_cast<uint32_t>(wanted) : 1;
  const uint32_t count = allocate_shares(shares, room, shared_bytes);
  uint64_t next = 0;
  for (uint32_t index = 0; index < count; ++index) {
    HostShare& share = shares[index];
    share.kernel = kernel;
    share.arguments = arguments;
    for (int axis = 0; axis < 3; ++axis) {
      share.block.grid[axis] = grid[axis];
      share.block.block[axis] = block[axis];
    }
    share.block.shared_bytes = shared_bytes;
    share.first = next;
    share.count = blocks / count + (index < blocks % count ? 1 : 0);
    next += share.count;
  }
  if (count != 0) run_shares(shares, count);
  for (uint32_t index = 0; index < count; ++index) std::free(shares[index].block.shared);
  std::free(several);
  return count != 0 || raise_no_scratch(shared_bytes);
}

}  // namespace trunnion
