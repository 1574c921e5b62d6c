// Outputs on the CPU: as aligned as the program says, which may be more than the caller's allocator knows of.
#pragma once

#include <trunnion/memory.hpp>

namespace trunnion {

bool allocate_host_output(const OutputRule& rule, DLDevice device, const int64_t* shape, Held& held,
                          uint64_t& address);

}  // namespace trunnion
