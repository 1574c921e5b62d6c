// Outputs on the CPU: as aligned as the program says, which may be more than the caller's allocator knows of.
#pragma once

#include <trunnion/memory.hpp>

namespace trunnion {

bool allocate_host_output(const OutputRule& rule, const Request& request, const int64_t* shape,
                          Memory& memory, uint64_t& address);

}  // namespace trunnion
