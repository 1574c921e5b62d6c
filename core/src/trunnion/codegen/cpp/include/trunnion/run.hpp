// From a call to its launches, on any kind of device. `Call` is what the emitter writes for one program:
//
//   static constexpr int32_t kInputs, kOutputs; static constexpr const Name* kNames;
//   bool doubtful; Place place;
//   bool check(const Arguments&, bool outputs_given);  every check and every value; nothing is touched
//   bool allocate(bool outputs_given);                 outputs and workspaces
//   bool encode();                                     what else a device needs before its launches
//   bool fire();                                       fills and launches; may be repeated
//   void outputs(TVMFFIAny*);                          a view of each allocated output
//
// What differs by kind of device stands before this: the classes `Program` and `Entered`, and the templates
// `prepare_call` (up to the allocations), `enter_call` (whatever must be current while it launches) and `settle` (what
// must be over before memory of the call is given back).
#pragma once

#include <new>
#include <trunnion/life.hpp>
#include <trunnion/memory.hpp>

namespace trunnion {

template <typename Call>
bool give_outputs(Call& call, TVMFFIAny* result) {
  TVMFFIAny views[Call::kOutputs != 0 ? Call::kOutputs : 1];
  call.outputs(views);
  if (Call::kOutputs > 1) return give_array(views, Call::kOutputs, result);
  give_nothing(result);
  if (Call::kOutputs == 1) {
    *result = views[0];
    TVMFFIObjectIncRef(result->v_obj);
  }
  return true;
}

// Launch, and see to the memory that the call allocated: its workspaces, and its outputs if they are its own.
template <typename Call>
bool fire_call(const Program& program, Call& call, bool own_outputs) {
  const bool fired = call.fire();
  return settle(program, call, Call::kOutputs != 0 && own_outputs, fired);
}

template <typename Call>
int run_call(Program& program, const TVMFFIAny* given, int32_t count, bool outputs_given, TVMFFIAny* result) {
  Arguments arguments(given, count);
  if (!arguments.expect(Call::kNames, Call::kInputs + (outputs_given ? Call::kOutputs : 0))) return -1;
  const Flight flight(program);
  if (!flight) return -1;
  Call call;
  if (!prepare_call(program, call, arguments, outputs_given)) return -1;
  Entered entered;
  if (!enter_call(program, call, entered) || !call.encode()) return -1;
  if (!fire_call(program, call, !outputs_given)) return -1;
  if (outputs_given) return give_nothing(result), 0;
  return give_outputs(call, result) ? 0 : -1;
}

// A call whose arguments are decided. Whoever binds keeps the tensors alive that it was given.
template <typename Call>
struct Bound {
  static int run(void* self, const TVMFFIAny*, int32_t, TVMFFIAny* result) {
    Call& call = static_cast<Bound*>(self)->call;
    Program& program = *static_cast<Bound*>(self)->program;
    const Flight flight(program);
    if (!flight) return -1;
    Entered entered;
    if (!enter_call(program, call, entered)) return -1;
    if (!fire_call(program, call, static_cast<Bound*>(self)->own_outputs)) return -1;
    return give_nothing(result), 0;
  }

  static void destroy(void* self) {
    static_cast<Bound*>(self)->~Bound();
    std::free(self);
  }

  Program* program;
  bool own_outputs;
  Call call;
};

// Give the function that launches again; behind it, in an array, the outputs that were allocated.
template <typename Call>
int bind_call(Program& program, const TVMFFIAny* given, int32_t count, TVMFFIAny* result) {
  Arguments arguments(given, count);
  const bool outputs_given = count >= Call::kInputs + Call::kOutputs + kTrailing;
  if (!arguments.expect(Call::kNames, Call::kInputs + (outputs_given ? Call::kOutputs : 0))) return -1;
  const Flight flight(program);
  if (!flight) return -1;
  void* memory = nullptr;
  if (posix_memalign(&memory, alignof(Bound<Call>) > 64 ? alignof(Bound<Call>) : 64, sizeof(Bound<Call>)) !=
      0) {
    Text message;
    return raise_plain("MemoryError", "MemoryError", message << "no memory for a bound launch"), -1;
  }
  auto* bound = new (memory) Bound<Call>{&program, !outputs_given, {}};
  Held function;
  if (TVMFFIFunctionCreate(bound, Bound<Call>::run, Bound<Call>::destroy, function.out()) != 0) {
    return Bound<Call>::destroy(bound), -1;
  }
  Entered entered;
  Call& call = bound->call;
  if (!prepare_call(program, call, arguments, outputs_given) || !enter_call(program, call, entered))
    return -1;
  if (!call.encode()) return -1;
  TVMFFIAny views[Call::kOutputs + 1];
  views[0] = function.view(kTVMFFIFunction);
  if (!outputs_given) call.outputs(views + 1);
  return give_array(views, outputs_given ? 1 : Call::kOutputs + 1, result) ? 0 : -1;
}

int load(Program& program, TVMFFIAny* result);

// From now on calls say whether their tensors are known not to be lazy.
int ask(Program& program, TVMFFIAny* result);

int close(Program& program, TVMFFIAny* result);

}  // namespace trunnion
