#include <trunnion/windows.hpp>

namespace trunnion {

bool raise_outside(const WindowRule& rule, int64_t offset, int64_t nbytes, int64_t limit) {
  Text got, expected;
  got << "a window of ";
  if (rule.named) {
    got << nbytes;
  } else {
    got << "all";
  }
  got << " bytes from byte " << offset;
  return raise_argument_value(rule.memory, got, expected << "one that lies within its " << limit << " bytes");
}

bool check_window(const WindowRule& rule, int64_t offset, int64_t nbytes, int64_t limit, int64_t& length) {
  bool good = offset >= 0 && offset <= limit;
  good = good && (!rule.named || (nbytes >= 0 && nbytes <= limit - offset));
  if (TRUNNION_UNLIKELY(!good)) return raise_outside(rule, offset, nbytes, limit);
  length = rule.named ? nbytes : limit - offset;
  return true;
}

bool raise_long_window(const WindowRule& rule, int32_t device, int64_t length, int64_t most) {
  Text requirement, got;
  requirement << "an access-policy window of " << length << " bytes over " << rule.memory;
  got << "device " << device << ", which allows " << most;
  return raise_requirement(requirement, got, "leave nbytes out for as much as the device allows");
}

bool fit_window(const WindowRule& rule, const DeviceState& state, int32_t device, int64_t& length) {
  const int64_t most = state.most_window_bytes;
  if (length <= most) return true;
  if (rule.named) return raise_long_window(rule, device, length, most);
  length = most;
  return true;
}

bool refuse_capture(const Site& site) {
  Entered entered;
  bool capturing = false;
  if (!entered.enter(site.program.driver(), site.state, site.device)) return false;
  if (!is_capturing(site.program.driver(), site.stream, capturing)) return false;
  if (!capturing) return true;
  Text message;
  return raise_capture(
      message << "a window with policy 'stream' cannot be captured, because the call waits for its "
                 "kernel; use policy 'launch'");
}

}  // namespace trunnion
