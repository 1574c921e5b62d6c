// Runs the grid loop: requests from stdin, what the kernel was told to stdout. Threads and memory can be refused.
#include <pthread.h>

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "raised.hpp"

static uint32_t threads_left;
static uint32_t scratches_left;
static std::atomic<uint32_t> threads_made;

static int counted_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*start)(void*),
                          void* given) {
  if (threads_left == 0) return 11;  // EAGAIN
  --threads_left;
  ++threads_made;
  return pthread_create(thread, attributes, start, given);
}

namespace std {
static void* counted_alloc(size_t alignment, size_t bytes) {
  if (scratches_left == 0) return nullptr;
  --scratches_left;
  return aligned_alloc(alignment, bytes);
}
}  // namespace std

#define pthread_create counted_create
#define aligned_alloc counted_alloc
#include <trunnion/decimal.cc>
#include <trunnion/errors.cc>
#include <trunnion/host_grid.cc>
#include <trunnion/host_grid.hpp>
#include <trunnion/refusals.cc>
#include <trunnion/text.cc>
#undef aligned_alloc
#undef pthread_create

namespace {

struct Request {
  uint32_t grid[3];
  uint32_t block[3];
  uint64_t shared_bytes;
  uint32_t threads;
  uint32_t threads_left;
  uint32_t scratches_left;
  uint32_t unused;
};

// One call of the kernel.
struct Call {
  uint32_t turn;    // of the calls on this thread
  uint32_t thread;  // by the order of their first calls
  uint32_t index[3];
  uint32_t grid[3];
  uint32_t block[3];
  uint32_t good;  // arguments are those given, and scratch is what was asked for
  uint64_t shared_bytes;
};

struct Answer {
  uint32_t ok;
  uint32_t raised;
  uint32_t threads_made;
  uint32_t calls;
};

constexpr uint32_t kMost = 1U << 16;
Call calls[kMost];
std::atomic<uint32_t> call_count;
std::atomic<uint32_t> thread_count;
std::atomic<uint32_t> launch_count;
int given;

void kernel(void* const* arguments, const trunnion_block_t* block) {
  static thread_local uint32_t launch = 0;
  static thread_local uint32_t thread = 0;
  static thread_local uint32_t turn = 0;
  if (launch != launch_count) {
    launch = launch_count;
    thread = thread_count++;
    turn = 0;
  }
  const uint32_t at = call_count++;
  if (at >= kMost) std::abort();
  Call& call = calls[at];
  call.turn = turn++;
  call.thread = thread;
  std::memcpy(call.index, block->index, sizeof call.index);
  std::memcpy(call.grid, block->grid, sizeof call.grid);
  std::memcpy(call.block, block->block, sizeof call.block);
  call.shared_bytes = block->shared_bytes;
  const bool aligned = reinterpret_cast<uintptr_t>(block->shared) % 64 == 0;
  call.good = arguments[0] == &given && aligned && (block->shared != nullptr) == (block->shared_bytes != 0);
  // Whoever shares it with another block that runs now sees other bytes.
  unsigned char* bytes = static_cast<unsigned char*>(block->shared);
  for (uint64_t byte = 0; byte < block->shared_bytes; ++byte) bytes[byte] = static_cast<unsigned char>(at);
  for (uint64_t byte = 0; byte < block->shared_bytes; ++byte) {
    if (bytes[byte] != static_cast<unsigned char>(at)) call.good = 0;
  }
}

}  // namespace

int main() {
  Request request;
  while (std::fread(&request, sizeof request, 1, stdin) == 1) {
    threads_left = request.threads_left;
    scratches_left = request.scratches_left;
    threads_made = call_count = thread_count = 0;
    raised_count = 0;
    ++launch_count;
    void* arguments[1] = {&given};
    const bool ok = trunnion::run_grid(kernel, arguments, request.grid, request.block, request.shared_bytes,
                                       request.threads);
    const Answer answer{ok, static_cast<uint32_t>(raised_count), threads_made, call_count};
    std::fwrite(&answer, sizeof answer, 1, stdout);
    std::fwrite(calls, sizeof(Call), call_count, stdout);
  }
  return 0;
}
