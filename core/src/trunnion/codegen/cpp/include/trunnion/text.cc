#include <trunnion/text.hpp>

namespace trunnion {

Text& Text::append(const char* bytes, size_t count) {
  if (count == 0 || !reserve(size_ + count)) return *this;
  std::memcpy(data_ + size_, bytes, count);
  size_ += count;
  return *this;
}

Text& Text::operator<<(const char* text) { return append(text, std::strlen(text)); }

Text& Text::operator<<(const Text& other) { return append(other.data(), other.size()); }

Text& Text::operator<<(int value) { return *this << static_cast<int64_t>(value); }

Text& Text::operator<<(uint32_t value) { return *this << static_cast<uint64_t>(value); }

Text& Text::operator<<(int64_t value) {
  char digits[24];
  return append(digits, static_cast<size_t>(std::snprintf(digits, sizeof digits, "%" PRId64, value)));
}

Text& Text::operator<<(uint64_t value) {
  char digits[24];
  return append(digits, static_cast<size_t>(std::snprintf(digits, sizeof digits, "%" PRIu64, value)));
}

Text& Text::operator<<(double value) {
  char digits[48];
  return append(digits, write_double(value, digits));
}

Text& Text::hexadecimal(uint64_t value) {
  char digits[24];
  return append(digits, static_cast<size_t>(std::snprintf(digits, sizeof digits, "0x%" PRIx64, value)));
}

static bool is_surrogate(const char* bytes, size_t count) {
  return count >= 3 && static_cast<unsigned char>(bytes[0]) == 0xED && (bytes[1] & 0xE0) == 0xA0;
}

static void escape(Text& text, uint32_t code, char mark) {
  char shown[16];
  const char plain = static_cast<char>(code);
  if (code == '\n' || code == '\r' || code == '\t') {
    text << (code == '\n' ? "\\n" : code == '\r' ? "\\r" : "\\t");
  } else if (code == '\\' || code == static_cast<unsigned char>(mark)) {
    text.append("\\", 1).append(&plain, 1);
  } else if (code >= 0x20 && code < 0x7F) {
    text.append(&plain, 1);
  } else {
    const char* format = code < 0x100 ? "\\x%02x" : code < 0x10000 ? "\\u%04x" : "\\U%08x";
    std::snprintf(shown, sizeof shown, format, code);
    text << shown;
  }
}

Text& Text::append_valid(const Text& other, bool doubled) {
  const char* bytes = other.data();
  const size_t count = other.size();
  size_t start = 0;
  for (size_t at = 0; at < count; ++at) {
    const bool half = is_surrogate(bytes + at, count - at);
    if (!half && !(doubled && bytes[at] == '\\')) continue;
    append(bytes + start, at - start);
    if (half) {
      escape(*this, 0xD000U | (bytes[at + 1] & 0x3FU) << 6 | (bytes[at + 2] & 0x3FU), '\'');
      at += 2;
    } else {
      append("\\\\", 2);
    }
    start = at + 1;
  }
  return append(bytes + start, count - start);
}

static bool is_first(char byte) { return (byte & 0xC0) != 0x80; }

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

// Append one character as ASCII; return the bytes that it takes in UTF-8.
static uint32_t point(Text& text, const Name& name, uint32_t at, char mark) {
  const unsigned char first = static_cast<unsigned char>(name.text[at]);
  uint32_t length = first < 0x80 ? 1 : first < 0xE0 ? 2 : first < 0xF0 ? 3 : 4;
  if (length > name.size - at) length = name.size - at;
  uint32_t code = first < 0x80 ? first : first & (0x7FU >> length);
  for (uint32_t next = 1; next < length; ++next) code = code << 6 | (name.text[at + next] & 0x3F);
  escape(text, code, mark);
  return length;
}

// Each half of a name that is cut has the quotation mark that suits it.
static Text& quote(Text& text, const Name& name, bool opened, bool closed) {
  const char mark = has(name, '\'') && !has(name, '"') ? '"' : '\'';
  text.append(&mark, opened ? 1 : 0);
  for (uint32_t at = 0; at < name.size;) at += point(text, name, at, mark);
  return text.append(&mark, closed ? 1 : 0);
}

Text& Text::operator<<(const Name& name) {
  constexpr uint32_t kShown = 80;
  const uint32_t points = count_points(name);
  if (points <= kShown) return quote(*this, name, true, true);
  const uint32_t head = offset(name, kShown / 2);
  const uint32_t tail = offset(name, points - kShown / 2);
  quote(*this, Name{name.text, head}, true, false) << "...";
  quote(*this, Name{name.text + tail, name.size - tail}, false, true);
  return *this << " (" << points << " characters)";
}

bool Text::reserve(size_t wanted) {
  if (wanted <= room_) return true;
  const size_t room = wanted * 2 + 64;
  char* grown = static_cast<char*>(std::realloc(data_, room));
  if (grown == nullptr) return false;
  data_ = grown;
  room_ = room;
  return true;
}

}  // namespace trunnion
