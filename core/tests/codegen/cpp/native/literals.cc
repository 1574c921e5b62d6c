// Writes the names of table.inc, each behind its length.
#include <cstdint>
#include <cstdio>

struct Name {
  const char* text;
  uint32_t size;
};

constexpr Name operator""_name(const char* text, size_t size) { return {text, static_cast<uint32_t>(size)}; }

static const Name table[] = {
#include "table.inc"
};

int main() {
  for (const Name& name : table) {
    std::fwrite(&name.size, sizeof name.size, 1, stdout);
    std::fwrite(name.text, 1, name.size, stdout);
    if (name.text[name.size] != '\0') return 3;
  }
  return 0;
}
