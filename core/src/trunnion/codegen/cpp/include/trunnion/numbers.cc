#include <trunnion/numbers.hpp>

namespace trunnion {

Text& append_decimal(Text& text, Wide value) {
  char digits[40];
  return text.append(digits, write_decimal(value, digits));
}

void refuse_unfit(bool& failed, Wide value, const char* text) {
  Text shown;
  if (!failed) raise_unfit(append_decimal(shown, value), text);
  failed = true;
}

void refuse_zero(bool& failed, const char* text) {
  if (!failed) raise_division(text);
  failed = true;
}

void refuse_shift(bool& failed, int64_t count, const char* text) {
  if (!failed) raise_shift(count, text);
  failed = true;
}

void refuse_range(bool& failed, int64_t value, int64_t low, uint64_t high, const char* type,
                  const char* text) {
  if (!failed) raise_cast(value, low, high, type, text);
  failed = true;
}

bool encode_float(double value, const FloatFormat& format, uint32_t& bits) {
  uint64_t given;
  std::memcpy(&given, &value, sizeof given);
  const bool negative = given >> 63 != 0;
  const uint32_t exponent = given >> 52 & 0x7FF;
  const uint64_t fraction = given & ((uint64_t{1} << 52) - 1);
  if (exponent == 0x7FF && fraction != 0) {
    bits = format.nan;
    return true;
  }
  if (!format.has_sign && negative) return false;
  if (exponent == 0x7FF) {
    bits = format.infinity;
    if (format.infinity == 0) return false;
  } else {
    const uint64_t significand = exponent != 0 ? fraction | uint64_t{1} << 52 : fraction;
    const int32_t power = exponent != 0 ? static_cast<int32_t>(exponent) - 1023 : -1022;
    if (!encode_magnitude(significand, power, format, bits)) return false;
  }
  if (negative && (bits != 0 || format.negative_zero))
    bits |= 1U << (format.exponent_bits + format.mantissa_bits);
  return true;
}

bool narrow_float(double value, float& single) {
  constexpr double kLimit = 0x1.ffffffp+127;
  const bool beyond = (value >= kLimit || value <= -kLimit) && value - value == 0;
  single = beyond ? 0.0F : static_cast<float>(value);
  return !beyond;
}

}  // namespace trunnion
