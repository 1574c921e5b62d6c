#include <trunnion/big_integer.hpp>

namespace trunnion {

static constexpr uint64_t kMostBits = 256;
static constexpr uint64_t kMostWords = kMostBits / 64 + 1;  // a sign takes a bit more

uint64_t BigInt::bits() const {
  const uint64_t flip = is_negative() ? ~static_cast<uint64_t>(0) : 0;
  uint64_t top = count;
  while (top != 0 && (words[top - 1] ^ flip) == 0) --top;
  if (top == 0) return flip & 1;  // -1, or 0
  const uint64_t highest = words[top - 1] ^ flip;
  const uint64_t within = 64 - static_cast<uint64_t>(__builtin_clzll(highest));
  // What was flipped is one less than the magnitude, which has a bit more if these are all ones.
  bool ones = flip != 0 && highest == ~static_cast<uint64_t>(0) >> (64 - within);
  for (uint64_t index = 0; index + 1 < top; ++index) ones = ones && words[index] == 0;
  return 64 * (top - 1) + within + (ones ? 1 : 0);
}

// Divide a number of words, the least significant first, by ten, and return the rest.
static uint64_t divide_by_ten(uint64_t (&words)[kMostWords]) {
  UnsignedWide rest = 0;
  for (uint64_t index = kMostWords; index-- != 0;) {
    rest = rest << 64 | words[index];
    words[index] = static_cast<uint64_t>(rest / 10);
    rest %= 10;
  }
  return static_cast<uint64_t>(rest);
}

Text& operator<<(Text& text, const BigInt& number) {
  const uint64_t bits = number.bits();
  if (bits > kMostBits) return text << "an integer of " << bits << " bits";
  uint64_t magnitude[kMostWords] = {};
  UnsignedWide carry = number.is_negative() ? 1 : 0;
  for (uint64_t index = 0; index < number.count; ++index) {
    carry += number.is_negative() ? ~number.words[index] : number.words[index];
    magnitude[index] = static_cast<uint64_t>(carry);
    carry >>= 64;
  }
  char digits[80];
  size_t at = sizeof digits;
  uint64_t left = 0;
  do {
    digits[--at] = static_cast<char>('0' + divide_by_ten(magnitude));
    left = 0;
    for (const uint64_t word : magnitude) left |= word;
  } while (left != 0);
  if (number.is_negative()) digits[--at] = '-';
  return text.append(digits + at, sizeof digits - at);
}

}  // namespace trunnion
