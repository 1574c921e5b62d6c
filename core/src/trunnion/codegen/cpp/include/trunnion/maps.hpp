// Tensor maps: checked against the rules that a call can break, then encoded by the driver, unless the thread's last map
// of the same rule was of the same memory.
//
// The rules are those of trunnion.model.tensormap.rules. What the emitter knew, it has judged; here stands what address,
// extents and strides decide. Which rule is broken the adapter says, from the numbers that the error carries.
#pragma once

#include <trunnion/numbers.hpp>
#include <trunnion/program.hpp>
#include <trunnion/tensors.hpp>

namespace trunnion {

inline constexpr uint32_t kMostDims = 5;

// On which devices the constant fields of a map are allowed, by compute capability.
struct MapRule {
  uint32_t index;  // the map's slot
  Name memory;
  uint32_t rank;
  uint32_t unit;         // bytes that address and strides are multiples of
  uint32_t extent_unit;  // elements that the innermost extent is a multiple of
  uint32_t element_bits;
  bool before_hopper, hopper, since_blackwell;
  CUtensorMapDataType data_type;
  CUtensorMapInterleave interleave;
  CUtensorMapSwizzle swizzle;
  CUtensorMapL2promotion l2_promotion;
  CUtensorMapFloatOOBfill oob_fill;
  cuuint32_t element_strides[kMostDims];
  // Tiled: box. Im2col: corners of the box of base pixels, channels per pixel, pixels per column.
  bool tiled;
  cuuint32_t box[kMostDims];
  int lower[kMostDims - 2], upper[kMostDims - 2];
  cuuint32_t channels, pixels;
};

// What a call decides of a map; strides are those of every dimension but the innermost, in bytes.
struct MapLayout {
  int64_t dims[kMostDims];
  int64_t strides[kMostDims - 1];
  int64_t innermost_stride;  // elements
};

// What a thread encoded last by one rule, and of what. The serial number of what was prepared for a device says which
// program it was for, too; 0 is nobody's.
struct KnownMap {
  uint64_t serial;
  uint64_t address;
  MapLayout layout;
  CUtensorMap map;

  bool is_of(const MapRule& rule, const MapLayout& other, const DeviceState& state, uint64_t at) const {
    bool same = serial == state.serial && address == at && layout.innermost_stride == other.innermost_stride;
    for (uint32_t axis = 0; axis < rule.rank; ++axis) same &= layout.dims[axis] == other.dims[axis];
    for (uint32_t axis = 0; axis + 1 < rule.rank; ++axis) same &= layout.strides[axis] == other.strides[axis];
    return same;
  }
};

bool raise_map(const MapRule& rule, const MapLayout& layout, const DeviceState& state, uint64_t address,
               const char* problem);

// What the driver refused to encode, although no rule is broken.
bool raise_encode(const Driver& driver, const MapRule& rule, const MapLayout& layout, uint64_t address,
                  CUresult status);

// From the first to the last along one dimension, in units of the step; no further than 2**90, where no memory reaches.
inline Wide reach(int64_t extent, int64_t step) {
  constexpr Wide kMost = static_cast<Wide>(1) << 90;
  const Wide distance = (static_cast<Wide>(extent) - 1) * step;
  return distance > kMost ? kMost : distance < -kMost ? -kMost : distance;
}

// Check that a map lies in its memory; a map with an extent of 0 breaks a rule of its own.
inline bool check_within(const MapRule& rule, const MapLayout& layout, int64_t offset, int64_t limit) {
  const Wide bits = rule.element_bits;
  const Wide last = reach(layout.dims[0], layout.innermost_stride) * bits;
  Wide end = offset + (last + bits + 7) / 8;
  for (uint32_t axis = 0; axis < rule.rank; ++axis) {
    if (layout.dims[axis] == 0) return true;
    if (axis != 0) end += reach(layout.dims[axis], layout.strides[axis - 1]);
  }
  if (offset >= 0 && end <= limit) return true;
  Text to;
  return raise_map_outside(rule.memory, offset, append_decimal(to, end), limit);
}

inline bool is_allowed_on(const MapRule& rule, const DeviceState& state) {
  if (state.capability_major < 9) return rule.before_hopper;
  return state.capability_major == 9 ? rule.hopper : rule.since_blackwell;
}

// Along each spatial dimension the bounding box has room, on Hopper with its end counted in 32 signed bits too.
inline bool has_pixels(const MapRule& rule, const MapLayout& layout, bool hopper) {
  // Channels are the innermost dimension; with an interleave there are blocks of them, next to the images.
  const uint32_t width = rule.interleave == CU_TENSOR_MAP_INTERLEAVE_NONE ? 1 : 0;
  for (uint32_t index = 0; index + 2 < rule.rank; ++index) {
    const int64_t end = layout.dims[width + index] + rule.upper[index];
    if (end <= rule.lower[index]) return false;
    if (hopper && static_cast<int32_t>(static_cast<uint32_t>(end)) <= rule.lower[index]) return false;
  }
  return true;
}

inline bool follows_rules(const MapRule& rule, const MapLayout& layout, const DeviceState& state,
                          uint64_t address) {
  constexpr int64_t kMostExtent = int64_t{1} << 32, kStrideEnd = int64_t{1} << 40;
  const bool hopper = state.capability_major == 9;
  bool good = is_allowed_on(rule, state) && address != 0 && address % rule.unit == 0;
  good = good && (!hopper || address < uint64_t{1} << 57);
  good =
      good && (layout.innermost_stride == 1 || layout.dims[0] == 1) && layout.dims[0] % rule.extent_unit == 0;
  for (uint32_t axis = 0; axis < rule.rank; ++axis) {
    good = good && layout.dims[axis] >= 1 && layout.dims[axis] <= kMostExtent;
    if (axis == 0) continue;
    const int64_t stride = layout.strides[axis - 1];
    good = good && stride >= 0 && stride < kStrideEnd && stride % rule.unit == 0;
  }
  return good && (rule.tiled || has_pixels(rule, layout, hopper));
}

inline bool encode(const Driver& driver, const MapRule& rule, const MapLayout& layout,
                   const DeviceState& state, uint64_t address, KnownMap& known, CUtensorMap& map) {
  if (known.is_of(rule, layout, state, address)) {
    map = known.map;
    return true;
  }
  if (!__builtin_expect(follows_rules(rule, layout, state, address), 1)) {
    return raise_map(rule, layout, state, address, "a rule of the driver's is broken");
  }
  cuuint64_t dims[kMostDims], strides[kMostDims];
  for (uint32_t axis = 0; axis < rule.rank; ++axis) dims[axis] = static_cast<cuuint64_t>(layout.dims[axis]);
  for (uint32_t axis = 0; axis + 1 < rule.rank; ++axis)
    strides[axis] = static_cast<cuuint64_t>(layout.strides[axis]);
  void* at = reinterpret_cast<void*>(address);
  const CUresult status =
      rule.tiled ? driver.encode_tiled(&map, rule.data_type, rule.rank, at, dims, strides, rule.box,
                                       rule.element_strides, rule.interleave, rule.swizzle, rule.l2_promotion,
                                       rule.oob_fill)
                 : driver.encode_im2col(&map, rule.data_type, rule.rank, at, dims, strides, rule.lower,
                                        rule.upper, rule.channels, rule.pixels, rule.element_strides,
                                        rule.interleave, rule.swizzle, rule.l2_promotion, rule.oob_fill);
  if (__builtin_expect(status != CUDA_SUCCESS, 0)) return raise_encode(driver, rule, layout, address, status);
  known = {state.serial, address, layout, map};
  return true;
}

}  // namespace trunnion
