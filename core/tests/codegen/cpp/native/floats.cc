// Encodes doubles: reads records of a format's number and a double, writes four bytes each; all ones if it is refused.
#include <trunnion/decimal.cc>
#include <trunnion/errors.cc>
#include <trunnion/numbers.cc>
#include <trunnion/numbers.hpp>
#include <trunnion/refusals.cc>
#include <trunnion/text.cc>

#include "raised.hpp"

using namespace trunnion;

// The formats of the model's table, and `table`, which has the address of each.
#include "table.inc"

constexpr uint64_t kNarrowed = sizeof table / sizeof *table;  // the number of narrow_float

struct Record {
  uint64_t format;
  double value;
};

int main() {
  static Record records[4096];
  static uint32_t results[4096];
  for (size_t count; (count = std::fread(records, sizeof *records, 4096, stdin)) != 0;) {
    for (size_t index = 0; index < count; ++index) {
      const Record& record = records[index];
      uint32_t bits = 0;
      bool held;
      if (record.format == kNarrowed) {
        float single;
        held = narrow_float(record.value, single);
        std::memcpy(&bits, &single, sizeof bits);
      } else {
        held = encode_float(record.value, *table[record.format], bits);
      }
      results[index] = held ? bits : 0xFFFFFFFF;
    }
    std::fwrite(results, sizeof *results, count, stdout);
  }
  return 0;
}
