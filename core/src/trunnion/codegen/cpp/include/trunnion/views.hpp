// A tensor with its layout, as a kernel takes it by value: the address, the extents that a call decides, then the
// strides that it decides. What no call decides is not there at all, so that nothing lies between the others. Behind an
// odd number of extents a place is left over: it is 0, as all bytes are that nobody fills.
#pragma once

#include <cstdint>
#include <trunnion/refusals.hpp>

namespace trunnion {

template <int Extents, int Strides>
struct View {
  uint64_t address;
  int32_t extents[Extents + Extents % 2] = {};
  int64_t strides[Strides];
};

template <int Extents>
struct View<Extents, 0> {
  uint64_t address;
  int32_t extents[Extents + Extents % 2] = {};
};

template <int Strides>
struct View<0, Strides> {
  uint64_t address;
  int64_t strides[Strides];
};

template <>
struct View<0, 0> {
  uint64_t address;
};

// An extent as a view holds it.
inline bool view_extent(const Name& memory, int32_t axis, int64_t extent, int32_t& held) {
  held = static_cast<int32_t>(extent);
  return TRUNNION_UNLIKELY(held != extent) ? raise_view(memory, axis, extent) : true;
}

}  // namespace trunnion
