// Access-policy windows: their ranges, and the launch or the stream that holds one.
#pragma once

#include <trunnion/l2_persisting.hpp>
#include <trunnion/launching.hpp>

namespace trunnion {

struct WindowRule {
  Name memory;
  uint32_t kernel;
  bool named;  // whether the author named a length
  float hit_ratio;
  CUaccessProperty hit, miss;
};

// Ranges --------------------------------------------------------------------------------------------------------------

// The length of a window, all in bytes: `nbytes` if the author named one, else as far as its memory reaches.
bool check_window(const WindowRule& rule, int64_t offset, int64_t nbytes, int64_t limit, int64_t& length);

// What the device allows of a window; a length that the author named is that or nothing.
bool fit_window(const WindowRule& rule, const DeviceState& state, int32_t device, int64_t& length);

inline void set_window(CUaccessPolicyWindow& window, const WindowRule& rule, uint64_t address,
                       int64_t nbytes) {
  window.base_ptr = reinterpret_cast<void*>(address);
  window.num_bytes = static_cast<size_t>(nbytes);
  window.hitRatio = rule.hit_ratio;
  window.hitProp = rule.hit;
  window.missProp = rule.miss;
}

// Windows that a stream holds --------------------------------------------------------------------------------------------

// Refuse a call that waits for its own kernel, if its stream is being captured.
bool refuse_capture(const Site& site);

// A window that a stream holds for one launch: cache is set aside, the window set; then somebody launches; then the window
// is taken away, the kernel waited for, its persisting lines made normal, and the cache given back. Every step is done,
// whatever an earlier one says, and the first error is raised. A window of no bytes is none.
class StreamWindow {
 public:
  StreamWindow(const Site& site, const WindowRule& rule) : site_(site), rule_(rule) {}

  bool open(uint64_t address, int64_t nbytes) {
    if (nbytes == 0) return true;
    if (!hold(nbytes)) return false;
    address_ = address, is_open_ = true;
    return set(nbytes);
  }

  // `good`: whether all went well so far.
  bool close(bool good) {
    if (!good) TVMFFIErrorMoveFromRaised(first_.out());
    if (is_open_) note(set(0)), note(synchronize()), note(reset());
    if (is_held_) note(restore());
    if (first_.get() == nullptr) return good;  // there was no memory for an error
    TVMFFIErrorSetRaised(first_.get());
    return false;
  }

 private:
  const Driver& driver() const { return site_.program.driver(); }

  // Keep the first error: calls that follow would overwrite it.
  void note(bool done) {
    if (done) return;
    Held later;
    TVMFFIErrorMoveFromRaised(first_.get() == nullptr ? first_.out() : later.out());
  }

  bool hold(int64_t nbytes) {
    if (site_.program.hook() == nullptr) return true;
    int64_t most_persisting = 0;
    if (!read_most_persisting(driver(), site_.device, most_persisting)) return false;
    const TVMFFIAny question[] = {to_any("stream"), to_any(site_.device), to_any(nbytes),
                                  to_any(most_persisting)};
    return is_held_ = ask(site_.program, question, ticket_);
  }

  bool restore() {
    int64_t nothing = 0;
    const TVMFFIAny question[] = {to_any("restore"), to_any(site_.device), to_any(ticket_),
                                  to_any(first_.get() != nullptr ? 1 : 0)};
    return ask(site_.program, question, nothing);
  }

  bool set(int64_t nbytes) {
    CUstreamAttrValue value = {};
    set_window(value.accessPolicyWindow, rule_, address_, nbytes);
    const CUresult status =
        driver().stream_set_attribute(site_.stream, CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW, &value);
    return succeeded(driver(), "cuStreamSetAttribute", status);
  }

  bool synchronize() {
    const RelaxedMode relaxed(driver());
    return succeeded(driver(), "cuStreamSynchronize", driver().stream_synchronize(site_.stream));
  }

  bool reset() { return succeeded(driver(), "cuCtxResetPersistingL2Cache", driver().ctx_reset_persisting()); }

  const Site site_;
  const WindowRule& rule_;
  Held first_;
  uint64_t address_ = 0;
  int64_t ticket_ = 0;
  bool is_open_ = false, is_held_ = false;
};

}  // namespace trunnion
