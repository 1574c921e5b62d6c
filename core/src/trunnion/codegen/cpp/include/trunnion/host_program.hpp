// One loaded program on the CPU: its kernels are linked with the launcher, so there is little to load.
#pragma once

#include <trunnion/block.h>

#include <trunnion/life.hpp>

// Written by the device compiler into the object that a launcher is linked with. For kernel number i there is, besides,
// `extern "C" void trunnion_kernel_<i>(void* const* arguments, const trunnion_block_t* block)`.
extern "C" {
// On how many threads a launch runs; 0: on as many as there are cores.
extern const uint32_t trunnion_threads __attribute__((visibility("hidden")));
// Whether this machine has the instructions that the kernels were compiled for, and what they are.
bool trunnion_fits() noexcept __attribute__((visibility("hidden")));
extern const char trunnion_architecture[] __attribute__((visibility("hidden")));
}

namespace trunnion {

class Program : public Life {
 public:
  // Refuse a machine that would end the process at the first instruction that it lacks.
  bool load() {
    if (__builtin_expect(is_loaded(), 1)) return true;
    if (!trunnion_fits()) return raise_other_cpu(trunnion_architecture);
    __atomic_store_n(&loaded_, true, __ATOMIC_RELAXED);
    return true;
  }

  bool is_over() const { return Life::is_over(is_loaded()); }
  using Life::forget;

  bool is_loaded() const { return __atomic_load_n(&loaded_, __ATOMIC_RELAXED); }

  // Wait for all launches; what is linked stays.
  bool close() {
    return end([] { return true; });
  }

 private:
  bool loaded_ = false;
};

}  // namespace trunnion
