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

TRUNNION_COLD inline bool raise_kept(int64_t number) {
  Text text, message;
  text << number;
  return Raising("RuntimeError", "Kept")
      .field(text)
      .with(message << "no cache could be set aside for an access-policy window");
}

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
[[gnu::cold]] inline bool read_most_persisting(const Driver& driver, int32_t ordinal, int64_t& most) {
  CUdevice device = 0;
  int value = 0;
  CUresult status = driver.device_get(&device, ordinal);
  if (status != CUDA_SUCCESS) return raise_driver(driver, "cuDeviceGet", status);
  status = driver.device_get_attribute(&value, CU_DEVICE_ATTRIBUTE_MAX_PERSISTING_L2_CACHE_SIZE, device);
  if (status != CUDA_SUCCESS) return raise_driver(driver, "cuDeviceGetAttribute", status);
  most = value;
  return true;
}

inline void remember_asked(DeviceState& state, int64_t nbytes) {
  uint64_t before = __atomic_load_n(&state.set_aside, __ATOMIC_RELAXED);
  const uint64_t asked = static_cast<uint64_t>(nbytes);
  while (before < asked && !__atomic_compare_exchange_n(&state.set_aside, &before, asked, false,
                                                        __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
  }
}

// Have cache set aside for the windows whose lengths are known before any call.
[[gnu::cold]] inline bool set_known_aside(const Program& program, DeviceState& state, int32_t device) {
  if (program.hook() == nullptr) return true;
  int64_t most_persisting = 0, asked = 0;
  if (!read_most_persisting(program.driver(), device, most_persisting)) return false;
  const TVMFFIAny question[] = {to_any("preload"), to_any(device), to_any(state.most_window_bytes),
                                to_any(most_persisting)};
  if (!ask(program, question, asked)) return false;
  remember_asked(state, asked);
  return true;
}

[[gnu::cold]] inline bool set_more_aside(const Site& site, uint32_t kernel, int64_t nbytes) {
  const Program& program = site.program;
  bool capturing = false;
  if (!is_capturing(program.driver(), site.stream, capturing)) return false;
  int64_t most_persisting = 0, asked = 0;
  if (capturing) {
    const uint64_t before = __atomic_load_n(&site.state.set_aside, __ATOMIC_RELAXED);
    const TVMFFIAny question[] = {to_any("captured"), to_any(site.device), to_any(nbytes),
                                  to_any(static_cast<int64_t>(before)), to_any(program.symbol(kernel))};
    return ask(program, question, asked);
  }
  if (!read_most_persisting(program.driver(), site.device, most_persisting)) return false;
  const TVMFFIAny question[] = {to_any("launch"), to_any(site.device), to_any(nbytes),
                                to_any(most_persisting)};
  if (!ask(program, question, asked)) return false;
  remember_asked(site.state, asked);
  return true;
}

// Have cache set aside for a window of a launch, if it is longer than those before it.
inline bool set_aside(const Site& site, uint32_t kernel, int64_t nbytes) {
  const uint64_t asked = __atomic_load_n(&site.state.set_aside, __ATOMIC_RELAXED);
  const bool enough = static_cast<uint64_t>(nbytes) <= asked || site.program.hook() == nullptr;
  return __builtin_expect(enough, 1) ? true : set_more_aside(site, kernel, nbytes);
}

// What the owner of the limit asks of a launcher; after `close` too, because what was set aside outlives the program. --------

inline bool reach_device(Program& program, const TVMFFIAny& device, Entered& entered) {
  if (device.type_index != kTVMFFIInt) return raise_trailing("device", device, "an ordinal");
  if (!program.is_reachable()) return false;
  if (device.v_int64 < 0 || device.v_int64 >= program.device_count())
    return raise_ordinal(device.v_int64, program.device_count());
  return program.reach(static_cast<int32_t>(device.v_int64), entered);
}

// Give the limit in bytes; nothing where the driver has no such limit (MIG, MPS).
inline int persisting_limit(Program& program, const TVMFFIAny* given, int32_t count, TVMFFIAny* result) {
  constexpr Name kDevice{"device", 6};
  if (count != 1) return raise_count(count, &kDevice, 1), -1;
  Entered entered;
  if (!reach_device(program, given[0], entered)) return -1;
  size_t nbytes = 0;
  const CUresult status = program.driver().ctx_get_limit(&nbytes, CU_LIMIT_PERSISTING_L2_CACHE_SIZE);
  give_nothing(result);
  if (status == CUDA_ERROR_UNSUPPORTED_LIMIT) return 0;
  if (status != CUDA_SUCCESS) return raise_driver(program.driver(), "cuCtxGetLimit", status), -1;
  *result = to_any(static_cast<int64_t>(nbytes));
  return 0;
}

inline int set_persisting_limit(Program& program, const TVMFFIAny* given, int32_t count, TVMFFIAny* result) {
  constexpr Name kNames[] = {{"device", 6}, {"nbytes", 6}};
  if (count != 2) return raise_count(count, kNames, 2), -1;
  if (given[1].type_index != kTVMFFIInt) return raise_trailing("nbytes", given[1], "an integer"), -1;
  Entered entered;
  if (!reach_device(program, given[0], entered)) return -1;
  const CUresult status = program.driver().ctx_set_limit(CU_LIMIT_PERSISTING_L2_CACHE_SIZE,
                                                         static_cast<size_t>(given[1].v_int64));
  if (status != CUDA_SUCCESS && status != CUDA_ERROR_UNSUPPORTED_LIMIT)
    return raise_driver(program.driver(), "cuCtxSetLimit", status), -1;
  return give_nothing(result), 0;
}

// Say whom to ask; before the first call.
inline int set_hook(Program& program, const TVMFFIAny* given, int32_t count, TVMFFIAny* result) {
  constexpr Name kHook{"hook", 4};
  if (count != 1) return raise_count(count, &kHook, 1), -1;
  if (given[0].type_index != kTVMFFIFunction) return raise_trailing("hook", given[0], "a function"), -1;
  const Flight flight(program);
  if (!flight) return -1;
  TVMFFIObjectIncRef(given[0].v_obj);
  TVMFFIObjectHandle before = program.set_hook(given[0].v_obj);
  if (before != nullptr) TVMFFIObjectDecRef(before);
  return give_nothing(result), 0;
}

}  // namespace trunnion
