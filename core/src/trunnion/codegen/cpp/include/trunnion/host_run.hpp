// Calls on the CPU: one device, number 0, with no streams; what a call launches is done when it returns.
#pragma once

#include <trunnion/geometry.hpp>
#include <trunnion/host_grid.hpp>
#include <trunnion/host_program.hpp>
#include <trunnion/memory.hpp>

namespace trunnion {

inline constexpr int32_t kHostDevices = 1;

bool raise_stream(const TVMFFIAny& given);

// A stream is refused, but for 0: whoever passes on what they were given has that.
bool refuse_stream(const Arguments& arguments);

template <typename Call>
bool prepare_call(Program& program, Call& call, const Arguments& arguments, bool outputs_given) {
  if (!call.check(arguments, outputs_given) || !program.load()) return false;
  if (call.doubtful && program.asks() && !arguments.are_known()) return raise_doubt();
  return check_ordinal(call.place, kHostDevices) && refuse_stream(arguments) && call.allocate(outputs_given);
}

// The same for a call that was checked and allocates nothing; false: not ready for it.
template <typename Call>
bool prepare_directly(const Program& program, const Call&, const DLPackExchangeAPI&) {
  return program.is_loaded();
}

// Nothing has to be current on the CPU.
struct Entered {};

template <typename Call>
bool enter_call(const Program&, const Call&, Entered&) {
  return true;
}

// What a call launched is done.
template <typename Call>
bool settle(const Program&, const Call&, bool, bool fired) {
  return fired;
}

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

int preload(Program& program, const TVMFFIAny* given, int32_t count, TVMFFIAny* result);

}  // namespace trunnion
