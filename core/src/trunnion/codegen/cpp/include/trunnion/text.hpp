// Text that grows, for messages: no standard library behind it, and an allocation that fails only cuts it short.
#pragma once

#include <cinttypes>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <trunnion/decimal.hpp>

namespace trunnion {

// A name that a user chose, as UTF-8; the only form in which one enters a launcher.
struct Name {
  const char* text;
  uint32_t size;
  const char* place = nullptr;  // where the user gave what it names, if its name alone does not say: "out[0]"
};

// As a launcher writes one.
constexpr Name operator""_name(const char* text, size_t size) {
  return Name{text, static_cast<uint32_t>(size)};
}

class Text {
 public:
  Text() = default;
  ~Text() { std::free(data_); }
  Text(const Text&) = delete;
  Text& operator=(const Text&) = delete;

  const char* data() const { return data_ != nullptr ? data_ : ""; }
  size_t size() const { return size_; }

  Text& append(const char* bytes, size_t count);

  Text& operator<<(const char* text);
  Text& operator<<(const Text& other);

  Text& operator<<(int value);
  Text& operator<<(uint32_t value);

  Text& operator<<(int64_t value);

  Text& operator<<(uint64_t value);

  // The shortest decimal number that reads back as the same double.
  Text& operator<<(double value);

  Text& hexadecimal(uint64_t value);

  // Whatever the other text holds, as UTF-8 that everybody can read: half of a surrogate pair, which no UTF-8 has, as
  // "\\udc80". `doubled`: each backslash is doubled, so that the other text can be had back.
  Text& append_valid(const Text& other, bool doubled);

  // Quoted and escaped; a very long name is cut in the middle.
  Text& operator<<(const Name& name);

 private:
  bool reserve(size_t wanted);

  char* data_ = nullptr;
  size_t size_ = 0;
  size_t room_ = 0;
};

// As Python shows a tuple.
template <typename Number>
[[gnu::cold, gnu::noinline]] void describe_numbers(Text& text, const Number* numbers, int32_t count) {
  text << "(";
  for (int32_t index = 0; index < count; ++index) text << (index != 0 ? ", " : "") << numbers[index];
  text << (count == 1 ? ",)" : ")");
}

}  // namespace trunnion
