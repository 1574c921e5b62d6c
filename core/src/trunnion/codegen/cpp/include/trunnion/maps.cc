#include <trunnion/maps.hpp>

namespace trunnion {

static void show_layout(Text& text, const MapRule& rule, const MapLayout& layout, uint64_t address) {
  (text << " (address ").hexadecimal(address) << ", extents, innermost first ";
  describe_numbers(text, layout.dims, static_cast<int32_t>(rule.rank));
  describe_numbers(text << ", strides in bytes ", layout.strides, static_cast<int32_t>(rule.rank) - 1);
  text << ", innermost stride " << layout.innermost_stride << " elements)";
}

static void list(Text& text, const int64_t* numbers, uint32_t count) {
  for (uint32_t index = 0; index < count; ++index) text << (index != 0 ? " " : "") << numbers[index];
}

bool raise_map(const MapRule& rule, const MapLayout& layout, const DeviceState& state, uint64_t address,
               const char* problem) {
  Text message, index, place, dims, strides, inner, capability;
  show_layout(message << "tensor map over " << rule.memory << ": " << problem, rule, layout, address);
  list(dims, layout.dims, rule.rank);
  list(strides, layout.strides, rule.rank - 1);
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

bool raise_encode(const Driver& driver, const MapRule& rule, const MapLayout& layout, uint64_t address,
                  CUresult status) {
  RefusedMap map;
  show_layout(map.shown << "the tensor map is over " << rule.memory, rule, layout, address);
  map.numbers << rule.index << " " << address << " " << layout.innermost_stride << ",";
  list(map.numbers, layout.dims, rule.rank);
  list(map.numbers << ",", layout.strides, rule.rank - 1);
  RefusedCall refused;
  refused.map = &map;
  return raise_driver(driver, rule.tiled ? "cuTensorMapEncodeTiled" : "cuTensorMapEncodeIm2col", status,
                      refused);
}

}  // namespace trunnion
