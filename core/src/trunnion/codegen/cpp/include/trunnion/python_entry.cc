#include <trunnion/python_call.hpp>
#include <trunnion/python_memory.hpp>

namespace trunnion {

enum class Outcome { kLaunched, kRefused, kFailed, kRaised };

// Return what a call with outputs returns: its output, or a tuple of them; null: an exception is raised.
static void* returned(const CPython& python, const CallRule& rule, void* const* outputs) {
  void* result = outputs[0];
  if (rule.outputs == 1) return python.increase(result), result;
  result = python.new_tuple(rule.outputs);
  for (int32_t index = 0; result != nullptr && index < rule.outputs; ++index) {
    python.increase(outputs[index]);
    python.set_item(result, index, outputs[index]);
  }
  return result;
}

static void* returned(const PythonCall& written, const CPython& python, const CallRule& rule,
                      CallBase& call) {
  if (rule.outputs == 0) return python.increase(python.none), python.none;
  const size_t count = static_cast<size_t>(rule.outputs + 1);
  auto** outputs = static_cast<void**>(__builtin_alloca(sizeof(void*) * count));
  auto* views = static_cast<TVMFFIAny*>(__builtin_alloca(sizeof(TVMFFIAny) * count));
  if (!written.has_destinations()) rule.outputs_of(call, views);
  for (int32_t index = 0; index < rule.outputs; ++index)
    outputs[index] = written.has_destinations() ? written.destination(index) : views[index].v_ptr;
  return returned(python, rule, outputs);
}

// Allocate what a call allocates, before it is under way: Python may give up its lock meanwhile, and whoever waits for
// the call may have it. A call that comes to nothing after all was ready a moment before, so that is rare.
static Outcome allocate_directly(Program& program, const CallRule& rule, CallBase& call, PythonMemory& memory,
                                 bool outputs_given) {
  {
    const Flight flight(program);
    if (!flight || !find_state(program, call)) return Outcome::kRefused;
  }
  call.allocator = &memory;
  if (rule.find_memory(call, outputs_given)) return Outcome::kLaunched;
  return memory.raised() ? Outcome::kRaised : Outcome::kRefused;
}

// Check, and find the stream; what is allocated here is so under the current one.
static bool is_ready(const CallRule& rule, const PythonEntry& entry, const PythonCall& written,
                     CallBase& call, bool allocates) {
  Arguments arguments = written.arguments();
  if (!arguments.expect(rule.names, written.count())) return false;
  if (!rule.check(call, arguments, written.has_destinations()) || !written.is_whole()) return false;
  // Limits of windows are checked before a call allocates, and it does so before it is under way: not both here. Nor can
  // Python's memory be cut to begin at a greater alignment.
  if (allocates && rule.allocates_generally) return false;
  if (!find_stream(call, *entry.exchange)) return false;
  if (!written.names_stream()) return true;
  uint64_t handle = 0;
  return written.read_stream(handle) && name_stream(call, handle, allocates);
}

// Launch; refused: nothing was done, and the general entry may be called with the same arguments. What failed is held
// before anything of Python's can run: whatever runs, a handler or a finalizer, may raise and take errors of its own.
static Outcome run_directly(const CallRule& rule, const PythonEntry& entry, const PythonCall& written,
                            void* memory_of_call, void*& result, Held& failure) {
  Program& program = *entry.program;
  PythonMemory memory(entry, rule.outputs);  // before the call, which gives it back at its end
  const Begun begun(rule, program, memory_of_call);
  CallBase& call = *begun;
  const bool allocates = rule.has_workspaces || (rule.outputs != 0 && !written.has_destinations());
  if (!is_ready(rule, entry, written, call, allocates))
    return written.raised() ? Outcome::kRaised : Outcome::kRefused;
  memory.settle(call.place.device, stream_number(call));
  if (allocates) {
    const Outcome outcome = allocate_directly(program, rule, call, memory, written.has_destinations());
    if (outcome != Outcome::kLaunched) return outcome;
  }
  void* released = nullptr;
  bool ready = false, good = false;
  {
    // Over before Python's lock is waited for: whoever closes the program waits for this, and may keep the lock meanwhile.
    const Flight flight(program);
    if (!flight || !find_state(program, call)) return Outcome::kRefused;
    released = entry.python.save_thread();
    Entered entered;
    // Without Python's lock: a kernel that is asked for the first time may wait for whoever prepares another device.
    ready = allocates || rule.find_memory(call, written.has_destinations());
    good = ready && check_named_stream(program, call) && enter_call(program, rule, call, entered) &&
           rule.prepare(call) && rule.fire(call);
  }
  entry.python.restore_thread(released);
  if (!ready) return Outcome::kRefused;
  if (!good) return TVMFFIErrorMoveFromRaised(failure.out()), Outcome::kFailed;
  result = returned(written, entry.python, rule, call);
  return Outcome::kLaunched;
}

// Raise in Python what failed.
static void* raise_failure(const PythonEntry& entry, const Held& failure) {
  void* error = entry.python.from_unsigned(reinterpret_cast<uint64_t>(failure.get()));
  if (error == nullptr) return nullptr;
  void* result = entry.python.vectorcall(entry.failed, &error, 1, nullptr);
  entry.python.decrease(error);
  return result;
}

// Hand a call on. An exception that Python had meanwhile is dropped where the general entry says what is wrong with the
// call; where nothing is, it was a handler's.
static void* call_generally(const PythonEntry& entry, const PythonCall& written, void* const* args,
                            intptr_t count, void* names) {
  const CPython& python = entry.python;
  void* error[3] = {};  // class, value, traceback
  python.fetch(&error[0], &error[1], &error[2]);
  void* result = python.vectorcall(entry.general, args, static_cast<size_t>(count), names);
  if (error[0] == nullptr) return result;
  if (result != nullptr && written.may_have_raised()) {
    python.decrease(result);
    python.restore(error[0], error[1], error[2]);
    return nullptr;
  }
  for (void* held : error) {
    if (held != nullptr) python.decrease(held);
  }
  return result;
}

static void* (*capsule_pointer)(void*, const char*);  // CPython's, once an entry was offered

void* call_from_python(const CallRule& rule, const PythonRoom& room, void* self, void* const* args,
                       intptr_t count, void* names) {
  PythonEntry& entry = *static_cast<PythonEntry*>(capsule_pointer(self, nullptr));
  PythonCall written(entry, rule, room);
  void* result = nullptr;
  const bool taken = written.take(args, count, names);
  Held failure;
  const Outcome outcome =
      taken ? run_directly(rule, entry, written, room.call, result, failure) : Outcome::kRefused;
  if (__builtin_expect(outcome == Outcome::kLaunched || outcome == Outcome::kRaised, 1)) return result;
  if (outcome == Outcome::kFailed) return raise_failure(entry, failure);
  {
    Held refusal;
    TVMFFIErrorMoveFromRaised(refusal.out());
  }
  return call_generally(entry, written, args, count, names);
}

// Launch what is bound; what it returns is kept by whoever has the function.
static void* call_bound(void* self, void*) {
  const PythonBound& python_bound = *static_cast<PythonBound*>(capsule_pointer(self, nullptr));
  const PythonEntry& entry = *python_bound.entry;
  void* released = entry.python.save_thread();
  const bool good = python_bound.bound->launch();
  entry.python.restore_thread(released);
  if (!good) {
    Held failure;
    TVMFFIErrorMoveFromRaised(failure.out());
    return raise_failure(entry, failure);
  }
  entry.python.increase(python_bound.result);
  return python_bound.result;
}

int raise_held(const TVMFFIAny* given, int32_t count) {
  constexpr Name kError{"error", 5};
  if (count != 1) return raise_count(count, &kError, 1), -1;
  const bool held = given[0].type_index == kTVMFFIInt && given[0].v_ptr != nullptr;
  if (!held) return raise_trailing(kError.text, given[0], "an address"), -1;
  TVMFFIErrorSetRaised(given[0].v_ptr);
  return -1;
}

int offer_bound(Bound& bound, const TVMFFIAny* given, int32_t count, TVMFFIAny* result) {
  constexpr Name kResult{"result", 6};
  if (count != 1) return raise_count(count, &kResult, 1), -1;
  if (given[0].type_index != kTVMFFIInt) return raise_trailing(kResult.text, given[0], "an address"), -1;
  const auto* entry = static_cast<PythonEntry*>(bound.program->own_memory(sizeof(PythonEntry)));
  if (entry == nullptr) return raise_no_own_memory(), -1;
  bound.python = {{"bound", {call_bound}, kNoArguments, nullptr}, entry, &bound, given[0].v_ptr};
  give_nothing(result);
  result->type_index = kTVMFFIInt;
  result->v_ptr = &bound.python;
  return 0;
}

int offer_entry(Program& program, PyFunction function, const TVMFFIAny* given, int32_t count,
                TVMFFIAny* result) {
  constexpr Name kNames[] = {
      {"exchange", 8},        {"general", 7},  {"failed", 6},  {"names", 5}, {"tensor_type", 11},
      {"parameter_type", 14}, {"is_neg", 6},   {"is_conj", 7}, {"room", 4},  {"stream_type", 11},
      {"stream_name", 11},    {"allocate", 8}, {"quick", 5},   {"types", 5}};
  constexpr int32_t kCount = sizeof kNames / sizeof *kNames;
  if (count != kCount) return raise_count(count, kNames, kCount), -1;
  for (int32_t index = 0; index < kCount; ++index) {
    if (given[index].type_index != kTVMFFIInt)
      return raise_trailing(kNames[index].text, given[index], "an address"), -1;
  }
  give_nothing(result);
  result->type_index = kTVMFFIInt;
  auto* made = static_cast<PythonEntry*>(program.own_memory(sizeof(PythonEntry)));
  if (made == nullptr) return raise_no_own_memory(), -1;
  PythonEntry& entry = *made;
  if (!entry.python.find()) return 0;
  capsule_pointer = entry.python.capsule_pointer;
  entry.program = &program;
  entry.exchange = static_cast<const DLPackExchangeAPI*>(given[0].v_ptr);
  void** const held[] = {&entry.general,        &entry.failed,      &entry.names,    &entry.tensor_type,
                         &entry.parameter_type, &entry.is_neg,      &entry.is_conj,  &entry.room,
                         &entry.stream_type,    &entry.stream_name, &entry.allocate, &entry.quick,
                         &entry.types};
  for (size_t index = 0; index < sizeof held / sizeof *held; ++index) *held[index] = given[index + 1].v_ptr;
  entry.method = {"entry", {}, kFastCall | kKeywords, nullptr};
  entry.method.function = function;
  const bool whole = entry.exchange->header.version.major == DLPACK_MAJOR_VERSION &&
                     entry.exchange->dltensor_from_py_object_no_sync != nullptr &&
                     entry.exchange->current_work_stream != nullptr;
  if (whole) result->v_ptr = &entry;
  return 0;
}

}  // namespace trunnion
