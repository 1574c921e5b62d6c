// Cache that is set aside for windows whose hits persist, and the limit that says how much.
//
// A launcher sets nothing aside itself: the limit of a device has one owner in a process, and a hook stands for it. That
// is a function that is asked step by step. It answers a number; a negative one is minus the number of an error that it
// keeps. Without a hook nothing is set aside.
//
//   "preload", device, longest window, most that persists      answers the bytes that the program asks for now
//   "launch", device, bytes, most that persists                likewise
//   "captured", device, bytes, asked for before, kernel        nothing can be set aside; says so
//   "stream", device, bytes, most that persists                answers a ticket
//   "restore", device, ticket, failed                          the ticket is void; after a failure no error is kept
#pragma once

#include <trunnion/calls.hpp>
#include <trunnion/program.hpp>

namespace trunnion {

// Where a call runs.
struct Site {
  Program& program;
  DeviceState& state;
  int32_t device;
  CUstream stream;
};

inline TVMFFIAny to_any(int64_t value) {
  TVMFFIAny any{};
  any.type_index = kTVMFFIInt;
  any.v_int64 = value;
  return any;
}

inline TVMFFIAny to_any(const char* text) {
  TVMFFIAny any{};
  any.type_index = kTVMFFIRawStr;
  any.v_c_str = text;
  return any;
}

bool raise_kept(int64_t number);

template <size_t Count>
[[gnu::cold]] bool ask(const Program& program, const TVMFFIAny (&question)[Count], int64_t& answer) {
  TVMFFIAny said;
  give_nothing(&said);
  if (TVMFFIFunctionCall(program.hook(), const_cast<TVMFFIAny*>(question), Count, &said) != 0) return false;
  if (said.type_index != kTVMFFIInt) {
    raise_trailing("hook", said, "a function that answers integers");
    if (said.type_index >= kTVMFFIStaticObjectBegin) TVMFFIObjectDecRef(said.v_obj);
    return false;
  }
  answer = said.v_int64;
  return answer >= 0 || raise_kept(-answer);
}

// The bytes of a device's cache that can be set aside.
bool read_most_persisting(const Driver& driver, int32_t ordinal, int64_t& most);

// Have cache set aside for the windows whose lengths are known before any call.
bool set_known_aside(const Program& program, DeviceState& state, int32_t device);

bool set_more_aside(const Site& site, uint32_t kernel, int64_t nbytes);

// Have cache set aside for a window of a launch, if it is longer than those before it.
inline bool set_aside(const Site& site, uint32_t kernel, int64_t nbytes) {
  const uint64_t asked = __atomic_load_n(&site.state.set_aside, __ATOMIC_RELAXED);
  const bool enough = static_cast<uint64_t>(nbytes) <= asked || site.program.hook() == nullptr;
  return __builtin_expect(enough, 1) ? true : set_more_aside(site, kernel, nbytes);
}

// What the owner of the limit asks of a launcher; after `close` too, because what was set aside outlives the program. --------

// Give the limit in bytes; nothing where the driver has no such limit (MIG, MPS).
int persisting_limit(Program& program, const TVMFFIAny* given, int32_t count, TVMFFIAny* result);

int set_persisting_limit(Program& program, const TVMFFIAny* given, int32_t count, TVMFFIAny* result);

// Say whom to ask; before the first call.
int set_hook(Program& program, const TVMFFIAny* given, int32_t count, TVMFFIAny* result);

}  // namespace trunnion
