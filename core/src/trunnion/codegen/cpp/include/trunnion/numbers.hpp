// The arithmetic of a plan's expressions, checked where no proof was found, and numbers as bits of their type.
//
// Division rounds down, as in Python. What a checked operation refuses is raised at once, and `failed` says so.
// What it then returns, the fallback, lies within the operation's bounds: so what follows cannot overflow or
// divide by zero. The statement ends with `if (failed) return -1;`. Only the first refusal is raised.
#pragma once

#include <cstdint>
#include <cstring>
#include <trunnion/refusals.hpp>

namespace trunnion {

// Errors ----------------------------------------------------------------------------------------------------

Text& append_decimal(Text& text, Wide value);

// `text` is the author's own, of the expression that has no value; it holds no null character.
void refuse_unfit(bool& failed, Wide value, const char* text);

void refuse_zero(bool& failed, const char* text);

void refuse_shift(bool& failed, int64_t count, const char* text);

void refuse_range(bool& failed, int64_t value, int64_t low, uint64_t high, const char* type,
                  const char* text);

// Checks ----------------------------------------------------------------------------------------------------

// The value, if it fits 64 signed bits.
inline int64_t fits(bool& failed, Wide value, const char* text, int64_t fallback) {
  const int64_t narrow = static_cast<int64_t>(value);
  if (TRUNNION_UNLIKELY(narrow != value)) {
    refuse_unfit(failed, value, text);
    return fallback;
  }
  return narrow;
}

// The value, if it is not 0; the text is that of the division.
inline int64_t divisor(bool& failed, int64_t value, const char* text, int64_t fallback) {
  if (TRUNNION_UNLIKELY(value == 0)) {
    refuse_zero(failed, text);
    return fallback;
  }
  return value;
}

// By how many bits a shift moves, if it is 0 to 63; the text is that of the shift.
inline int64_t shift_count(bool& failed, int64_t count, const char* text, int64_t fallback) {
  if (TRUNNION_UNLIKELY(count < 0 || count > 63)) {
    refuse_shift(failed, count, text);
    return fallback;
  }
  return count;
}

// The value, if an integer type can hold it; `high` is unsigned because that of uint64 is beyond every int64_t.
inline int64_t in_range(bool& failed, int64_t value, int64_t low, uint64_t high, const char* type,
                        const char* text, int64_t fallback) {
  if (TRUNNION_UNLIKELY(value < low || (value > 0 && static_cast<uint64_t>(value) > high))) {
    refuse_range(failed, value, low, high, type, text);
    return fallback;
  }
  return value;
}

// Operations ------------------------------------------------------------------------------------------------

constexpr int64_t minimum(int64_t a, int64_t b) { return b < a ? b : a; }
constexpr int64_t maximum(int64_t a, int64_t b) { return b > a ? b : a; }

// The quotient rounded down; neither b == 0 nor INT64_MIN / -1.
constexpr int64_t floor_div(int64_t a, int64_t b) {
  return a / b - static_cast<int64_t>(a % b != 0 && (a < 0) != (b < 0));
}

// The quotient rounded up; neither b == 0 nor INT64_MIN / -1.
constexpr int64_t ceil_div(int64_t a, int64_t b) {
  return a / b + static_cast<int64_t>(a % b != 0 && (a < 0) == (b < 0));
}

// What floor_div leaves, with the sign of b; not b == 0. The processor traps on INT64_MIN % -1.
constexpr int64_t floor_mod(int64_t a, int64_t b) {
  if (b == -1) return 0;
  const int64_t rest = a % b;
  return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}

// By 0 to 63 bits, where no bit is lost; the language gives a negative value's shift to the left no meaning.
constexpr int64_t shift_left(int64_t a, int64_t b) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) << b);
}

// The greatest common divisor by Euclid's way; of INT64_MIN and 0 it is 2**63.
constexpr uint64_t common_divisor(int64_t a, int64_t b) {
  uint64_t greater = a < 0 ? 0 - static_cast<uint64_t>(a) : static_cast<uint64_t>(a);
  uint64_t rest = b < 0 ? 0 - static_cast<uint64_t>(b) : static_cast<uint64_t>(b);
  while (rest != 0) {
    const uint64_t next = greater % rest;
    greater = rest;
    rest = next;
  }
  return greater;
}

// One operation each, exactly; by name, as `Ordered` and `Checked` take it.
constexpr Wide Add(int64_t a, int64_t b) { return static_cast<Wide>(a) + b; }
constexpr Wide Sub(int64_t a, int64_t b) { return static_cast<Wide>(a) - b; }
constexpr Wide Mul(int64_t a, int64_t b) { return static_cast<Wide>(a) * b; }
constexpr Wide FloorDiv(int64_t a, int64_t b) { return b == -1 ? -static_cast<Wide>(a) : floor_div(a, b); }
constexpr Wide CeilDiv(int64_t a, int64_t b) { return b == -1 ? -static_cast<Wide>(a) : ceil_div(a, b); }
constexpr Wide Mod(int64_t a, int64_t b) { return floor_mod(a, b); }
constexpr Wide Min(int64_t a, int64_t b) { return minimum(a, b); }
constexpr Wide Max(int64_t a, int64_t b) { return maximum(a, b); }
constexpr Wide Shl(int64_t a, int64_t b) { return static_cast<Wide>(a) * (Wide{1} << b); }
constexpr Wide Shr(int64_t a, int64_t b) { return a >> b; }
constexpr Wide And(int64_t a, int64_t b) { return a & b; }
constexpr Wide Or(int64_t a, int64_t b) { return a | b; }
constexpr Wide Xor(int64_t a, int64_t b) { return a ^ b; }
constexpr Wide Gcd(int64_t a, int64_t b) { return static_cast<Wide>(common_divisor(a, b)); }
constexpr Wide Eq(int64_t a, int64_t b) { return a == b; }
constexpr Wide Ne(int64_t a, int64_t b) { return a != b; }
constexpr Wide Lt(int64_t a, int64_t b) { return a < b; }
constexpr Wide Le(int64_t a, int64_t b) { return a <= b; }
constexpr Wide Gt(int64_t a, int64_t b) { return a > b; }
constexpr Wide Ge(int64_t a, int64_t b) { return a >= b; }

// An operation whose operands are computed from left to right, so that the error that is raised is the first.
// The language promises that order within braces only: of `a + b` and `f(a, b)` the compiler chooses.
template <Wide (*Operation)(int64_t, int64_t)>
struct Ordered {
  constexpr Ordered(int64_t a, int64_t b) : value(static_cast<int64_t>(Operation(a, b))) {}
  int64_t value;
};

// The same, where the value may leave 64 bits.
template <Wide (*Operation)(int64_t, int64_t)>
struct Checked {
  Checked(bool& failed, int64_t a, int64_t b, const char* text, int64_t fallback)
      : value(fits(failed, Operation(a, b), text, fallback)) {}
  int64_t value;
};

// Floats ----------------------------------------------------------------------------------------------------

// A binary floating-point format of at most 32 bits; the fields of the model's FloatFormat.
struct FloatFormat {
  uint32_t exponent_bits;
  uint32_t mantissa_bits;
  int32_t bias;
  uint32_t greatest;  // the bits of the greatest finite value
  uint32_t nan;
  uint32_t infinity;  // 0: there is none
  bool has_sign;      // without one there is no zero either
  bool negative_zero;
};

// The bits of the positive value nearest to `significand` * 2^(exponent - 52), ties to even; false: none is.
constexpr bool encode_magnitude(uint64_t significand, int32_t exponent, const FloatFormat& format,
                                uint32_t& bits) {
  const int32_t least = format.has_sign ? 1 - format.bias : -format.bias;
  const int32_t scale = exponent > least ? exponent : least;
  const int32_t shift = 52 - static_cast<int32_t>(format.mantissa_bits) + scale - exponent;
  uint64_t rounded = 0;  // beyond 54 bits, what is shifted out is less than half a unit
  if (shift <= 54) {
    const uint64_t half = uint64_t{1} << (shift - 1);
    const uint64_t odd = significand >> shift & 1;
    rounded = (significand + (half - 1) + odd) >> shift;
  }
  const uint64_t hidden = uint64_t{1} << format.mantissa_bits;
  if (rounded < hidden) {
    bits = static_cast<uint32_t>(rounded);
    return format.has_sign;
  }
  // A carry out of the significand raises the exponent by itself, because the fraction is 0 then.
  const uint64_t biased = static_cast<uint64_t>(scale - least) + (format.has_sign ? 1 : 0);
  const uint64_t whole = (biased << format.mantissa_bits) + (rounded - hidden);
  bits = static_cast<uint32_t>(whole);
  return whole <= format.greatest;
}

// The bits of the nearest value, rounded once, ties to even. False: the format cannot hold it. It is finite and
// rounds beyond the greatest value, is an infinity and there is none, or is not positive and there is no sign.
bool encode_float(double value, const FloatFormat& format, uint32_t& bits);

// The nearest float; false: finite, and half a unit or more beyond the greatest one. A NaN keeps its sign.
bool narrow_float(double value, float& single);

}  // namespace trunnion
