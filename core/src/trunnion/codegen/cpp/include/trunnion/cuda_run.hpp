// Calls on CUDA devices. Beside what `run.hpp` says, a `Call` has
//
//   static constexpr bool kNeedsContext, kHasWorkspaces;
//   CUstream stream; bool stream_named; DeviceState* state;
#pragma once

#include <trunnion/launching.hpp>
#include <trunnion/maps.hpp>
#include <trunnion/windows.hpp>

namespace trunnion {

template <typename Call>
bool prepare_call(Program& program, Call& call, const Arguments& arguments, bool outputs_given) {
  if (!call.check(arguments, outputs_given) || !program.load()) return false;
  if (call.doubtful && program.asks() && !arguments.are_known()) return raise_doubt();
  if (!check_ordinal(call.place, program.device_count())) return false;
  void* stream = nullptr;
  if (!read_stream(arguments, call.place.device, stream, call.stream_named)) return false;
  call.stream = static_cast<CUstream>(stream);
  if (call.stream_named && !check_stream(program, call.stream, call.place.device)) return false;
  call.state = program.device(call.place.device, &call.stream);
  return call.state != nullptr && call.allocate(outputs_given);
}

// The same for a call that was checked and allocates nothing, on the stream that is current; false: not ready for it.
template <typename Call>
bool prepare_directly(Program& program, Call& call, const DLPackExchangeAPI& exchange) {
  void* stream = nullptr;
  if (exchange.current_work_stream(kDLCUDA, call.place.device, &stream) != 0) return false;
  call.stream = static_cast<CUstream>(stream);
  call.stream_named = false;
  call.state = program.prepared(call.place.device);
  return call.state != nullptr;
}

// Without a context the driver's own streams mean nothing, and in one of another device something else.
template <typename Call>
bool enter_call(const Program& program, const Call& call, Entered& entered) {
  if (!Call::kNeedsContext && !is_driver_stream(call.stream)) return true;
  return entered.enter(program.driver(), *call.state, call.place.device);
}

// Wait for a stream, unless it is being captured; false: the launches failed, or what they do.
bool wait_for(const Driver& driver, CUstream stream, bool fired);

// Allocators know no stream of each thread's own. Memory of a call on that one comes from the legacy stream's, and may
// go to another thread next, whose own stream does not wait for this one: so the call does.
template <typename Call>
bool settle(const Program& program, const Call& call, bool own_outputs, bool fired) {
  const bool waits = call.stream_named && reinterpret_cast<uint64_t>(call.stream) == kPerThreadStream &&
                     (own_outputs || Call::kHasWorkspaces);
  return __builtin_expect(!waits, 1) ? fired : wait_for(program.driver(), call.stream, fired);
}

}  // namespace trunnion

#include <trunnion/run.hpp>

namespace trunnion {

int preload(Program& program, const TVMFFIAny* given, int32_t count, TVMFFIAny* result);

}  // namespace trunnion
