// Structs that a launcher builds: `put` lays out the fields where the plan says; all bytes between them are 0.

#pragma once

#include <cstddef>

namespace trunnion {

template <size_t Size>
struct BuiltStruct {
  alignas(16) unsigned char bytes[Size] = {};

  template <size_t Offset, size_t Length, typename Value>
  void put(const Value& value) {
    static_assert(sizeof(Value) == Length && Offset + Length <= Size, "a field lies within its struct");
    __builtin_memcpy(bytes + Offset, &value, Length);
  }
};

}  // namespace trunnion
