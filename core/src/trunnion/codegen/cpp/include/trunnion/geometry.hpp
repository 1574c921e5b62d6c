// Grid and block of a launch, and what is said of those that are out of range.
#pragma once

#include <trunnion/errors.hpp>

namespace trunnion {

TRUNNION_COLD inline bool raise_launch(const Name& kernel, const Text& what, const Text& expected) {
  Text got;
  return raise_argument_value(Name{"", 0}, got << what << " for kernel " << kernel, expected);
}

TRUNNION_COLD inline bool raise_grid(const Name& kernel, int axis, int64_t got, int64_t limit) {
  Text what, expected;
  what << "a grid of " << got << " blocks along " << (axis == 0 ? "x" : axis == 1 ? "y" : "z");
  return raise_launch(kernel, what, expected << "0 to " << limit);
}

TRUNNION_COLD inline bool raise_cluster(const Name& kernel, int axis, int64_t got, int64_t cluster) {
  Text what, expected;
  what << "a grid of " << got << " blocks along " << (axis == 0 ? "x" : axis == 1 ? "y" : "z");
  return raise_launch(kernel, what, expected << "a multiple of the cluster's " << cluster);
}

TRUNNION_COLD inline bool raise_block(const Name& kernel, int axis, int64_t got, int64_t limit) {
  Text what, expected;
  what << got << " threads along " << (axis == 0 ? "x" : axis == 1 ? "y" : "z");
  return raise_launch(kernel, what, expected << "1 to " << limit);
}

TRUNNION_COLD inline bool raise_wide_block(const Name& kernel, int64_t got, int64_t limit) {
  Text what, expected;
  what << "a block of " << got << " threads";
  return raise_launch(kernel, what, expected << "at most " << limit);
}

TRUNNION_COLD inline bool raise_smem_size(const Name& kernel, int64_t got, int64_t limit) {
  Text what, expected;
  what << got << " bytes of shared memory";
  return raise_launch(kernel, what, expected << "0 to " << limit);
}

struct Extents {
  uint32_t x, y, z;
};

}  // namespace trunnion
