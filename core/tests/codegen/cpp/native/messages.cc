// Writes the parts of messages: reads doubles, writes one line each; then the names of table.inc.
#include <trunnion/decimal.cc>
#include <trunnion/text.cc>
#include <trunnion/text.hpp>

using trunnion::operator""_name;

static const trunnion::Name table[] = {
#include "table.inc"
};

static void print(const trunnion::Text& text) {
  std::fwrite(text.data(), 1, text.size(), stdout);
  std::fputc('\n', stdout);
}

int main() {
  double value;
  while (std::fread(&value, sizeof value, 1, stdin) == 1) {
    trunnion::Text text;
    print(text << value);
  }
  for (const trunnion::Name& name : table) {
    trunnion::Text text;
    print(text << name);
  }
  return 0;
}
