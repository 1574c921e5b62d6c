// Calls on CUDA devices.
#pragma once

#include <trunnion/launching.hpp>
#include <trunnion/maps.hpp>
#include <trunnion/memory.hpp>
#include <trunnion/variables.hpp>
#include <trunnion/windows.hpp>

namespace trunnion {

// What every call has, whatever its program.
struct CallBase {
  CallBase(Program& whose, Place where) : program(whose), place(where) {}
  DLDevice device() const { return DLDevice{place.kind, place.device}; }
  // Before the image is loaded nobody knows how many devices there are; whoever loads it looks again.
  bool check_device() const {
    return program.device_count() == 0 || check_ordinal(place, program.device_count());
  }
  Request request(int32_t which) const { return Request{which, device(), allocator}; }

  Program& program;
  Place place;
  Allocator* allocator = nullptr;  // who allocates; null: TVM-FFI's environment
  CUstream stream;
  bool stream_named;
  DeviceState* state;
};

// The stream puts what bound calls launch in order.
struct Turns {
  bool open() { return true; }
  void close() {}
};

struct Turn {
  explicit Turn(const Turns&) {}
};

}  // namespace trunnion

#include <trunnion/run.hpp>

namespace trunnion {

// Check, find stream and device, and allocate.
bool prepare_call(Program& program, const CallRule& rule, CallBase& call, const Arguments& arguments,
                  bool outputs_given);

// The same for a call that was checked, step by step: the stream that is current; another one that is named, if nothing is
// allocated under the current one; what is known of the device. False: not ready for it.
bool find_stream(CallBase& call, const DLPackExchangeAPI& exchange);
bool name_stream(CallBase& call, uint64_t handle, bool allocates);
bool find_state(Program& program, CallBase& call);

// Whether a stream that a call names is one of the call's device; the driver is asked.
bool check_named_stream(const Program& program, const CallBase& call);

inline uint64_t stream_number(const CallBase& call) { return reinterpret_cast<uint64_t>(call.stream); }

// Without a context the driver's own streams mean nothing, which a launch finds out; in one of another device something
// else, where there is another.
bool enter_call(const Program& program, const CallRule& rule, const CallBase& call, Entered& entered);

// Allocators know no stream of each thread's own. Memory of a call on that one comes from the legacy stream's, and may
// go to another thread next, whose own stream does not wait for this one: so the call does.
bool settle(const Program& program, const CallRule& rule, const CallBase& call, bool own_outputs, bool fired);

// Load the image: the launcher's own if nothing is given, else the one that is, with its kernels' names.
int load_image(Program& program, const TVMFFIAny* given, int32_t count, TVMFFIAny* result);

// Do for a device what its first launch would do.
bool prepare_device(Program& program, int64_t ordinal);

}  // namespace trunnion
