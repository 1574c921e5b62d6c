#include <trunnion/decimal.hpp>

namespace trunnion {

uint32_t write_decimal(Wide value, char* out) {
  __extension__ typedef unsigned __int128 Magnitude;
  Magnitude rest = value < 0 ? -static_cast<Magnitude>(value) : static_cast<Magnitude>(value);
  char reversed[40];
  uint32_t digits = 0;
  do {
    reversed[digits++] = static_cast<char>('0' + static_cast<int>(rest % 10));
    rest /= 10;
  } while (rest != 0);
  uint32_t length = 0;
  if (value < 0) out[length++] = '-';
  while (digits != 0) out[length++] = reversed[--digits];
  return length;
}

// Add one to the last digit of a text such as "1.25e+03"; false: it would have to become longer.
static bool increment_significand(char* text) {
  for (char* at = std::strchr(text, 'e'); at-- != text;) {
    if (is_digit(*at) && *at != '9') {
      ++*at;
      return true;
    }
    if (is_digit(*at)) *at = '0';
  }
  return false;
}

// Write the shortest text such as "1.25e+03" that reads back as a finite double which is not negative.
static void write_scientific(double magnitude, char (&text)[40]) {
  for (int precision = 0; precision <= 16; ++precision) {
    std::snprintf(text, sizeof text, "%.*e", precision, magnitude);
    if (std::strtod(text, nullptr) == magnitude) return;
    // Above a power of two lie doubles further apart than below it: the next decimal may read back, too.
    if (increment_significand(text) && std::strtod(text, nullptr) == magnitude) return;
  }
}

// Write a finite double that is not negative as Python's repr, and return the number of characters.
static uint32_t write_magnitude(double magnitude, char* out) {
  char text[40];
  write_scientific(magnitude, text);
  char digits[24];
  int count = 0;
  const char* at = text;
  for (; *at != 'e'; ++at) {
    if (is_digit(*at)) digits[count++] = *at;  // what lies between depends on the locale
  }
  const int exponent = std::atoi(at + 1);
  uint32_t length = 0;
  const auto put = [&](int index) { out[length++] = index >= 0 && index < count ? digits[index] : '0'; };
  if (exponent < -4 || exponent >= 16) {
    put(0);
    if (count > 1) out[length++] = '.';
    for (int index = 1; index < count; ++index) put(index);
    return length + static_cast<uint32_t>(std::snprintf(out + length, 16, "e%+03d", exponent));
  }
  if (exponent < 0) put(-1);
  for (int index = 0; index <= exponent; ++index) put(index);
  out[length++] = '.';
  for (int index = exponent + 1; index == exponent + 1 || index < count; ++index) put(index);
  return length;
}

uint32_t write_double(double value, char* out) {
  if (value != value) {
    std::memcpy(out, "nan", 3);
    return 3;
  }
  uint32_t length = 0;
  if (__builtin_signbit(value)) out[length++] = '-';
  const double magnitude = __builtin_fabs(value);
  if (magnitude - magnitude != 0) {
    std::memcpy(out + length, "inf", 3);
    return length + 3;
  }
  return length + write_magnitude(magnitude, out + length);
}

}  // namespace trunnion
