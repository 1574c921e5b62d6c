#include <trunnion/geometry.hpp>

namespace trunnion {

bool raise_launch(const Name& kernel, const Text& what, const Text& expected) {
  Text got;
  return raise_argument_value(Name{"", 0}, got << what << " for kernel " << kernel, expected);
}

bool raise_grid(const Name& kernel, int axis, int64_t got, int64_t limit) {
  Text what, expected;
  what << "a grid of " << got << " blocks along " << (axis == 0 ? "x" : axis == 1 ? "y" : "z");
  return raise_launch(kernel, what, expected << "0 to " << limit);
}

bool raise_cluster(const Name& kernel, int axis, int64_t got, int64_t cluster) {
  Text what, expected;
  what << "a grid of " << got << " blocks along " << (axis == 0 ? "x" : axis == 1 ? "y" : "z");
  return raise_launch(kernel, what, expected << "a multiple of the cluster's " << cluster);
}

bool raise_block(const Name& kernel, int axis, int64_t got, int64_t limit) {
  Text what, expected;
  what << got << " threads along " << (axis == 0 ? "x" : axis == 1 ? "y" : "z");
  return raise_launch(kernel, what, expected << "1 to " << limit);
}

bool raise_wide_block(const Name& kernel, int64_t got, int64_t limit) {
  Text what, expected;
  what << "a block of " << got << " threads";
  return raise_launch(kernel, what, expected << "at most " << limit);
}

bool raise_smem_size(const Name& kernel, int64_t got, int64_t limit) {
  Text what, expected;
  what << got << " bytes of shared memory";
  return raise_launch(kernel, what, expected << "0 to " << limit);
}

}  // namespace trunnion
