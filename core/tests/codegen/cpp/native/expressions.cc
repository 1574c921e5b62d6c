// Evaluates the expressions of table.inc: reads records of an index and three values, writes a value or an error each.
#include <cinttypes>
#include <trunnion/decimal.cc>
#include <trunnion/errors.cc>
#include <trunnion/numbers.cc>
#include <trunnion/numbers.hpp>
#include <trunnion/refusals.cc>
#include <trunnion/text.cc>

#include "raised.hpp"

namespace trunnion {
#include "table.inc"
}  // namespace trunnion

int main() {
  int64_t record[4];
  while (std::fread(record, sizeof record, 1, stdin) == 1) {
    bool failed = false;
    raised_count = 0;
    const int64_t value = trunnion::table[record[0]](failed, record + 1);
    if (failed != (raised_count != 0) || raised_count > 1) return 3;
    if (failed) {
      std::printf("%s: %s\n", raised_kind, raised_message);
    } else {
      std::printf("%" PRId64 "\n", value);
    }
  }
  return 0;
}
