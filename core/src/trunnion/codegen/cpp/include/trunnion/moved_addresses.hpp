// The address of an element of memory that is not the first one.
#pragma once

#include <cstdint>
#include <trunnion/refusals.hpp>

namespace trunnion {

// Whether an offset lies within the elements that memory spans; their end does.
inline bool offset_within(const Name& memory, int64_t offset, int64_t limit) {
  return TRUNNION_UNLIKELY(offset < 0 || offset > limit) ? raise_offset(memory, offset, limit) : true;
}

}  // namespace trunnion
