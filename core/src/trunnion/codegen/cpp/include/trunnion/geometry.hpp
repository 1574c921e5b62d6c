// Grid and block of a launch, and what is said of those that are out of range.
#pragma once

#include <trunnion/errors.hpp>

namespace trunnion {

bool raise_launch(const Name& kernel, const Text& what, const Text& expected);

bool raise_grid(const Name& kernel, int axis, int64_t got, int64_t limit);

bool raise_cluster(const Name& kernel, int axis, int64_t got, int64_t cluster);

bool raise_block(const Name& kernel, int axis, int64_t got, int64_t limit);

bool raise_wide_block(const Name& kernel, int64_t got, int64_t limit);

bool raise_smem_size(const Name& kernel, int64_t got, int64_t limit);

struct Extents {
  uint32_t x, y, z;
};

}  // namespace trunnion
