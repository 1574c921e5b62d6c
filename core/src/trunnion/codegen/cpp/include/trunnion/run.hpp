// From a call to its launches, on any kind of device. What one program computes is a `Call`, which the emitter writes; a
// `CallRule` is what the shared runtime knows of it, so that all of this is compiled once, for all launchers.
//
// What differs by kind of device stands before this: the classes `Program`, `Entered`, `CallBase`, `Turns` and `Turn` (who
// may launch a bound call now), and the functions `prepare_call` (up to the allocations), `enter_call` (whatever must be
// current while it launches) and `settle` (what must be over before memory of the call is given back).
#pragma once

#include <new>
#include <trunnion/cpython.hpp>
#include <trunnion/instances.hpp>
#include <trunnion/memory.hpp>
#include <trunnion/moved_addresses.hpp>
#include <trunnion/structs.hpp>
#include <trunnion/views.hpp>

namespace trunnion {

struct CallRule {
  int32_t inputs, outputs;
  const Name* names;   // of the inputs, then of the outputs
  const char* kinds;   // a letter for each input, for `python_call.hpp`
  bool needs_context;  // whatever its stream
  bool has_workspaces;
  bool allocates_generally;  // what it allocates the general entry of `python_entry.hpp` does
  uint32_t size, alignment;  // bytes of one call
  CallBase* (*begin)(void* memory, Program& program);
  void (*end)(CallBase& call);
  bool (*check)(CallBase& call, const Arguments& arguments,
                bool outputs_given);  // everything; nothing is touched
  bool (*allocate)(CallBase& call,
                   bool outputs_given);  // outputs and workspaces; null: nothing of a call asks for it
  bool (*encode)(CallBase& call);        // what else a device needs before the launches; or null
  bool (*fire)(CallBase& call);          // fills and launches; may be repeated
  void (*outputs_of)(CallBase& call, TVMFFIAny* views);  // a view of each allocated output

  bool find_memory(CallBase& call, bool outputs_given) const {
    return allocate == nullptr || allocate(call, outputs_given);
  }
  bool prepare(CallBase& call) const { return encode == nullptr || encode(call); }
};

template <typename Call>
constexpr CallRule call_rule(int32_t inputs, int32_t outputs, const Name* names, const char* kinds,
                             bool needs_context, bool has_workspaces, bool allocates_generally,
                             bool allocates, bool encodes) {
  return {inputs,
          outputs,
          names,
          kinds,
          needs_context,
          has_workspaces,
          allocates_generally,
          sizeof(Call),
          alignof(Call),
          [](void* memory, Program& program) -> CallBase* { return new (memory) Call(program); },
          [](CallBase& call) { static_cast<Call&>(call).~Call(); },
          [](CallBase& call, const Arguments& arguments, bool outputs_given) {
            return static_cast<Call&>(call).check(arguments, outputs_given);
          },
          !allocates ? nullptr
                     : +[](CallBase& call,
                           bool outputs_given) { return static_cast<Call&>(call).allocate(outputs_given); },
          !encodes ? nullptr : +[](CallBase& call) { return static_cast<Call&>(call).encode(); },
          [](CallBase& call) { return static_cast<Call&>(call).fire(); },
          [](CallBase& call, TVMFFIAny* views) { static_cast<Call&>(call).outputs(views); }};
}

inline constexpr size_t kCallAlignment = 128;  // of every `Call`: a tensor map wants the most

// Memory for one call on the stack of the function that it stands in.
#define TRUNNION_CALL_MEMORY(rule) __builtin_alloca_with_align((rule).size, 8 * kCallAlignment)

// One call, over memory of somebody's.
class Begun {
 public:
  Begun(const CallRule& rule, Program& program, void* memory)
      : rule_(rule), call_(*rule.begin(memory, program)) {}
  ~Begun() { rule_.end(call_); }
  Begun(const Begun&) = delete;
  Begun& operator=(const Begun&) = delete;
  CallBase& operator*() const { return call_; }

 private:
  const CallRule& rule_;
  CallBase& call_;
};

// A bound call as a function of CPython's own, once that was asked for.
struct PythonBound {
  PyMethod method;
  const struct PythonEntry* entry;
  const struct Bound* bound;
  void* result;  // what it returns
};

// A call whose arguments are decided. Whoever binds keeps the tensors alive that it was given.
struct Bound {
  // Launch; false: an error is raised.
  bool launch() const;

  // The function of TVM-FFI's, which takes nothing, or what `offer_bound` does.
  static int run(void* self, const TVMFFIAny* given, int32_t count, TVMFFIAny* result);
  static void destroy(void* self);

  Program* program;
  const CallRule* rule;
  CallBase* call;
  bool own_outputs;
  mutable Turns turns;
  PythonBound python;
};

// Take the address of what a call from Python is to return, and give that of the call's definition (`PythonBound`), which
// is there for as long as the call; only where `offer_entry` gave one.
int offer_bound(Bound& bound, const TVMFFIAny* given, int32_t count, TVMFFIAny* result);

int run_call(Program& program, const CallRule& rule, const TVMFFIAny* given, int32_t count,
             bool outputs_given, TVMFFIAny* result);

// Give the function that launches again; behind it, in an array, the outputs that were allocated.
int bind_call(Program& program, const CallRule& rule, const TVMFFIAny* given, int32_t count,
              bool outputs_given, TVMFFIAny* result);

int load(Program& program, TVMFFIAny* result);

int preload(Program& program, const TVMFFIAny* given, int32_t count, TVMFFIAny* result);

int close(Program& program, TVMFFIAny* result);

}  // namespace trunnion
