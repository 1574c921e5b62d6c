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
};

class Text {
 public:
  Text() = default;
  ~Text() { std::free(data_); }
  Text(const Text&) = delete;
  Text& operator=(const Text&) = delete;

  const char* data() const { return data_ != nullptr ? data_ : ""; }
  size_t size() const { return size_; }

  Text& append(const char* bytes, size_t count) {
    if (count == 0 || !reserve(size_ + count)) return *this;
    std::memcpy(data_ + size_, bytes, count);
    size_ += count;
    return *this;
  }

  Text& operator<<(const char* text) { return append(text, std::strlen(text)); }
  Text& operator<<(const Text& other) { return append(other.data(), other.size()); }

  Text& operator<<(int value) { return *this << static_cast<int64_t>(value); }
  Text& operator<<(uint32_t value) { return *this << static_cast<uint64_t>(value); }

  Text& operator<<(int64_t value) {
    char digits[24];
    return append(digits, static_cast<size_t>(std::snprintf(digits, sizeof digits, "%" PRId64, value)));
  }

  Text& operator<<(uint64_t value) {
    char digits[24];
    return append(digits, static_cast<size_t>(std::snprintf(digits, sizeof digits, "%" PRIu64, value)));
  }

  // The shortest decimal number that reads back as the same double.
  Text& operator<<(double value) {
    char digits[48];
    return append(digits, write_double(value, digits));
  }

  Text& hexadecimal(uint64_t value) {
    char digits[24];
    return append(digits, static_cast<size_t>(std::snprintf(digits, sizeof digits, "0x%" PRIx64, value)));
  }

  // Whatever the other text holds, as UTF-8 that everybody can read: half of a surrogate pair, which no UTF-8 has, as
  // "\\udc80". `doubled`: each backslash is doubled, so that the other text can be had back.
  Text& append_valid(const Text& other, bool doubled) {
    const char* bytes = other.data();
    const size_t count = other.size();
    size_t start = 0;
    for (size_t at = 0; at < count; ++at) {
      const bool half = is_surrogate(bytes + at, count - at);
      if (!half && !(doubled && bytes[at] == '\\')) continue;
      append(bytes + start, at - start);
      if (half) {
        escape(0xD000U | (bytes[at + 1] & 0x3FU) << 6 | (bytes[at + 2] & 0x3FU), '\'');
        at += 2;
      } else {
        append("\\\\", 2);
      }
      start = at + 1;
    }
    return append(bytes + start, count - start);
  }

  // Quoted and escaped; a very long name is cut in the middle.
  Text& operator<<(const Name& name) {
    const uint32_t points = count_points(name);
    if (points <= kShown) return quote(name, true, true);
    const uint32_t head = offset(name, kShown / 2);
    const uint32_t tail = offset(name, points - kShown / 2);
    quote(Name{name.text, head}, true, false) << "...";
    quote(Name{name.text + tail, name.size - tail}, false, true);
    return *this << " (" << points << " characters)";
  }

 private:
  static constexpr uint32_t kShown = 80;

  static bool is_first(char byte) { return (byte & 0xC0) != 0x80; }

  static bool is_surrogate(const char* bytes, size_t count) {
    return count >= 3 && static_cast<unsigned char>(bytes[0]) == 0xED && (bytes[1] & 0xE0) == 0xA0;
  }

  static uint32_t count_points(const Name& name) {
    uint32_t points = 0;
    for (uint32_t at = 0; at < name.size; ++at) points += is_first(name.text[at]);
    return points;
  }

  // The byte at which a character begins.
  static uint32_t offset(const Name& name, uint32_t point) {
    uint32_t at = 0;
    for (uint32_t points = 0; at < name.size; ++at) {
      if (is_first(name.text[at]) && points++ == point) break;
    }
    return at;
  }

  static bool has(const Name& name, char character) {
    return name.size != 0 && std::memchr(name.text, character, name.size) != nullptr;
  }

  // Each half of a name that is cut has the quotation mark that suits it.
  Text& quote(const Name& name, bool opened, bool closed) {
    const char mark = has(name, '\'') && !has(name, '"') ? '"' : '\'';
    append(&mark, opened ? 1 : 0);
    for (uint32_t at = 0; at < name.size;) at += point(name, at, mark);
    return append(&mark, closed ? 1 : 0);
  }

  // Append one character as ASCII; return the bytes that it takes in UTF-8.
  uint32_t point(const Name& name, uint32_t at, char mark) {
    const unsigned char first = static_cast<unsigned char>(name.text[at]);
    uint32_t length = first < 0x80 ? 1 : first < 0xE0 ? 2 : first < 0xF0 ? 3 : 4;
    if (length > name.size - at) length = name.size - at;
    uint32_t code = first < 0x80 ? first : first & (0x7FU >> length);
    for (uint32_t next = 1; next < length; ++next) code = code << 6 | (name.text[at + next] & 0x3F);
    escape(code, mark);
    return length;
  }

  void escape(uint32_t code, char mark) {
    char shown[16];
    const char plain = static_cast<char>(code);
    if (code == '\n' || code == '\r' || code == '\t') {
      *this << (code == '\n' ? "\\n" : code == '\r' ? "\\r" : "\\t");
    } else if (code == '\\' || code == static_cast<unsigned char>(mark)) {
      append("\\", 1).append(&plain, 1);
    } else if (code >= 0x20 && code < 0x7F) {
      append(&plain, 1);
    } else {
      const char* format = code < 0x100 ? "\\x%02x" : code < 0x10000 ? "\\u%04x" : "\\U%08x";
      std::snprintf(shown, sizeof shown, format, code);
      *this << shown;
    }
  }

  bool reserve(size_t wanted) {
    if (wanted <= room_) return true;
    const size_t room = wanted * 2 + 64;
    char* grown = static_cast<char*>(std::realloc(data_, room));
    if (grown == nullptr) return false;
    data_ = grown;
    room_ = room;
    return true;
  }

  char* data_ = nullptr;
  size_t size_ = 0;
  size_t room_ = 0;
};

}  // namespace trunnion
