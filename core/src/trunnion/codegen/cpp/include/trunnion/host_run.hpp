// Calls on the CPU: one device, number 0, with no streams; what a call launches is done when it returns.
#pragma once

#include <trunnion/geometry.hpp>
#include <trunnion/host_grid.hpp>
#include <trunnion/host_program.hpp>
#include <trunnion/memory.hpp>

namespace trunnion {

inline constexpr int32_t kHostDevices = 1;

// What every call has, whatever its program.
struct CallBase {
  CallBase(Program& whose, Place where) : program(whose), place(where) {}
  DLDevice device() const { return DLDevice{place.kind, place.device}; }
  bool check_device() const { return check_ordinal(place, kHostDevices); }
  Request request(int32_t which) const { return Request{which, device(), allocator}; }

  Program& program;
  Place place;
  Allocator* allocator = nullptr;  // who allocates; null: TVM-FFI's environment
};

// Nothing has to be current on the CPU.
struct Entered {};

// Launches of one bound call take turns: its outputs and workspaces are the same in each, and the CPU has no stream that
// puts them in order.
class Turns {
 public:
  bool open();  // false: the error is raised
  void close();

 private:
  friend class Turn;
  Gate* gate_ = nullptr;
};

// One launch of a bound call, which waits for those before it; within such a launch, another one does not wait for it.
class Turn {
 public:
  explicit Turn(const Turns& turns) : locked_(*turns.gate_) {}

 private:
  const Locked locked_;
};

// Write a number `count` times. The memory may be aligned to less than the number.
template <typename Number>
void fill_with(const FillStep& step, unsigned char* at, uint64_t count) {
  const Number number = static_cast<Number>(step.value);
  for (uint64_t left = count; left != 0; --left, at += step.pitch) std::memcpy(at, &number, sizeof number);
}

void fill(const FillStep& step, uint64_t address, uint64_t count);

}  // namespace trunnion

#include <trunnion/run.hpp>

namespace trunnion {

// Check and allocate.
bool prepare_call(Program& program, const CallRule& rule, CallBase& call, const Arguments& arguments,
                  bool outputs_given);

// The same for a call that was checked; false: not ready for it. The CPU has no streams.
inline bool find_stream(CallBase&, const DLPackExchangeAPI&) { return true; }
inline bool name_stream(CallBase&, uint64_t handle, bool) { return handle == 0; }
inline bool find_state(const Program& program, const CallBase&) { return program.is_loaded(); }
inline bool check_named_stream(const Program&, const CallBase&) { return true; }
inline uint64_t stream_number(const CallBase&) { return 0; }

inline bool enter_call(const Program&, const CallRule&, const CallBase&, Entered&) { return true; }

// What a call launched is done.
inline bool settle(const Program&, const CallRule&, const CallBase&, bool, bool fired) { return fired; }

// Do for a device what its first launch would do: nothing is left on the CPU.
bool prepare_device(Program& program, int64_t ordinal);

}  // namespace trunnion
