// Grid and block of a launch.
#pragma once

#include <cstdint>

namespace trunnion {

struct Extents {
  uint32_t x, y, z;
};

}  // namespace trunnion
