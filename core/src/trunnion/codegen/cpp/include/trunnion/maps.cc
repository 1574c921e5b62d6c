#include <trunnion/maps.hpp>

namespace trunnion {

bool raise_map(const MapRule& rule, const MapLayout& layout, const DeviceState& state, uint64_t address,
               const char* problem) {
  Text message, index, place, dims, strides, inner, capability;
  message << "tensor map over " << rule.memory << ": " << problem << " (address ";
  message.hexadecimal(address) << ", extents, innermost first ";
  describe_numbers(message, layout.dims, static_cast<int32_t>(rule.rank));
  describe_numbers(message << ", strides in bytes ", layout.strides, static_cast<int32_t>(rule.rank) - 1);
  message << ", innermost stride " << layout.innermost_stride << " elements)";
  for (uint32_t axis = 0; axis < rule.rank; ++axis) dims << (axis != 0 ? " " : "") << layout.dims[axis];
  for (uint32_t axis = 0; axis + 1 < rule.rank; ++axis)
    strides << (axis != 0 ? " " : "") << layout.strides[axis];
  capability << state.capability_major << " " << state.capability_minor;
  return Raising("ValueError", "TensorMapError")
      .field(problem)
      .field(index << rule.index)
      .field(place << address)
      .field(dims)
      .field(strides)
      .field(inner << layout.innermost_stride)
      .field(capability)
      .with(message);
}

}  // namespace trunnion
