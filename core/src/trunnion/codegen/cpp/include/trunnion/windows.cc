#include <trunnion/windows.hpp>

namespace trunnion {

TRUNNION_COLD static bool raise_outside(const WindowRule& rule, int64_t offset, int64_t nbytes,
                                        int64_t limit) {
  Text length;
  if (rule.named) length << nbytes;
  return raise_window_outside(rule.memory, rule.named ? Words(length) : "all", offset, limit);
}

bool check_window(const WindowRule& rule, int64_t offset, int64_t nbytes, int64_t limit, int64_t& length) {
  bool good = offset >= 0 && offset <= limit;
  good = good && (!rule.named || (nbytes >= 0 && nbytes <= limit - offset));
  if (TRUNNION_UNLIKELY(!good)) return raise_outside(rule, offset, nbytes, limit);
  length = rule.named ? nbytes : limit - offset;
  return true;
}

bool fit_window(const WindowRule& rule, const DeviceState& state, int32_t device, int64_t& length) {
  const int64_t most = state.most_window_bytes;
  if (length <= most) return true;
  if (rule.named) return raise_long_window(length, rule.memory, device, most);
  length = most;
  return true;
}

bool refuse_capture(const Site& site) {
  Entered entered;
  bool capturing = false;
  if (!entered.enter(site.program.driver(), site.state, site.device)) return false;
  if (!is_capturing(site.program.driver(), site.stream, capturing)) return false;
  return !capturing || raise_window_in_capture();
}

}  // namespace trunnion
