// Module variables: where each lies on a device, and what the program says that it holds.
#pragma once

#include <trunnion/program.hpp>

namespace trunnion {

// Copy a tensor's elements to a variable, in the order of the call's stream.
bool copy_to_variable(const Driver& driver, uint64_t variable, uint64_t source, uint64_t nbytes,
                      CUstream stream);

}  // namespace trunnion
