// Integers beyond 64 signed bits, as TVM-FFI carries them from 0.1.15 on.
#pragma once

#include <tvm/ffi/c_api.h>

#include <trunnion/text.hpp>

namespace trunnion {

inline constexpr int32_t kBigInt = 78;  // kTVMFFIBigInt, which older headers do not name

// Words of 64 bits in two's complement, the least significant first: two or more, and no more than it takes.
struct BigInt {
  uint64_t count;
  const uint64_t* words;

  explicit BigInt(const TVMFFIAny& given) {
    const char* behind = reinterpret_cast<const char*>(given.v_obj) + sizeof(TVMFFIObject);
    count = *reinterpret_cast<const uint64_t*>(behind);
    words = reinterpret_cast<const uint64_t*>(behind + sizeof count);
  }

  // Two words as one number; the sign is that of the upper one.
  Wide pair(uint64_t lower) const {
    const Wide high = static_cast<int64_t>(words[lower + 1]);
    return high * (static_cast<Wide>(1) << 64) + words[lower];
  }

  // The nearest double, ties to even; infinite beyond all of them.
  double real() const {
    const uint64_t lower = count - 2;
    bool more = false;
    for (uint64_t index = 0; index < lower; ++index) more = more || words[index] != 0;
    // The upper two words have more bits than a double: what lies below only says that there is no tie.
    double result = static_cast<double>(pair(lower) | static_cast<Wide>(more));
    for (uint64_t index = 0; index < lower; ++index) result *= 0x1p64;
    return result;
  }

  bool fits_unsigned() const { return count == 2 && words[1] == 0; }

  bool is_negative() const { return words[count - 1] >> 63 != 0; }

  // Bits of the magnitude.
  uint64_t bits() const;
};

// Say what it is as the Python launcher does: as a decimal number if its magnitude has at most 256 bits.
Text& operator<<(Text& text, const BigInt& number);

}  // namespace trunnion
