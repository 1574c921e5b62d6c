// Fills and launches on a stream of the driver.
#pragma once

#include <trunnion/geometry.hpp>
#include <trunnion/memory.hpp>
#include <trunnion/program.hpp>

namespace trunnion {

struct CallBase;

bool fill(const Driver& driver, const FillStep& step, uint64_t address, uint64_t count, CUstream stream);

// One launch, as the driver is given it. Nothing is inline: a program may have many, and a call takes a nanosecond.
class LaunchConfig {
 public:
  LaunchConfig(Extents grid, Extents block, uint32_t dynamic_smem_bytes, CUstream stream);

  void attributes(CUlaunchAttribute* list, uint32_t count) {
    config_.attrs = list;
    config_.numAttrs = count;
  }

  bool launch(const CallBase& call, uint32_t kernel, void** parameters, Name name) {
    const CUresult status = attempt(call, kernel, parameters);
    return __builtin_expect(status == CUDA_SUCCESS, 1) ? true : retry(call, kernel, parameters, name, status);
  }

 private:
  CUresult attempt(const CallBase& call, uint32_t kernel, void** parameters);

  // Launch again, under a context, what was refused for want of one; anything else is an error.
  TRUNNION_COLD bool retry(const CallBase& call, uint32_t kernel, void** parameters, Name name,
                           CUresult status);
  TRUNNION_COLD bool refused(const Program& program, CUresult status, Name name) const;

  CUlaunchConfig config_;
};

// Streams -------------------------------------------------------------------------------------------------------------

inline constexpr uint64_t kFirstStream =
    3;  // below: the driver's own streams, which belong to the current context

inline constexpr uint64_t kPerThreadStream = 2;  // CU_STREAM_PER_THREAD

inline bool is_driver_stream(CUstream stream) { return reinterpret_cast<uint64_t>(stream) < kFirstStream; }

// Refuse a stream that the caller names and that belongs to another device than the tensors. Its device is that of its
// context: cuStreamGetDevice would invalidate a capture.
bool check_stream(const Program& program, CUstream stream, int32_t device);

}  // namespace trunnion
