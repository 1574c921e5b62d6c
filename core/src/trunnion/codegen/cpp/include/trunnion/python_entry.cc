#include <trunnion/python_memory.hpp>

namespace trunnion {

static void* type_of(void* object) { return static_cast<PyHead*>(object)->type; }

// Convert one argument: 't' a tensor, 'n' one that may be None, 'i' an integer, 'f' a float, 'b' a bool.
static bool convert(const PythonEntry& entry, char kind, void* object, DLTensor& view, TVMFFIAny& given) {
  const CPython& python = entry.python;
  given.zero_padding = 0;
  given.v_int64 = 0;
  if (kind == 't' || (kind == 'n' && object != python.none)) {
    if (type_of(object) != entry.tensor_type) return false;
    given.type_index = kTVMFFIDLTensorPtr;
    given.v_ptr = &view;
    return entry.exchange->dltensor_from_py_object_no_sync(object, &view) == 0;
  }
  if (kind == 'n') {
    given.type_index = kTVMFFINone;
    return true;
  }
  if (kind == 'b') {
    given.type_index = kTVMFFIBool;
    given.v_int64 = object == python.yes;
    return object == python.yes || object == python.no;
  }
  int beyond = 0;
  if (type_of(object) == python.long_type) {
    given.type_index = kTVMFFIInt;
    given.v_int64 = python.as_long(object, &beyond);
    return beyond == 0;
  }
  given.type_index = kTVMFFIFloat;
  if (kind != 'f' || type_of(object) != python.float_type) return false;
  given.v_float64 = python.as_double(object);
  return true;
}

enum class Outcome { kLaunched, kRefused, kFailed, kRaised };

// Return what a call returns: None, its output, or a tuple of its outputs; null: an exception is raised.
static void* returned(const PythonEntry& entry, const CallRule& rule, CallBase& call) {
  const CPython& python = entry.python;
  auto* views =
      static_cast<TVMFFIAny*>(__builtin_alloca(sizeof(TVMFFIAny) * static_cast<size_t>(rule.outputs + 1)));
  rule.outputs_of(call, views);
  void* result = rule.outputs == 0 ? python.none : views[0].v_ptr;
  if (rule.outputs < 2) return python.increase(result), result;
  result = python.new_tuple(rule.outputs);
  for (int32_t index = 0; result != nullptr && index < rule.outputs; ++index) {
    python.increase(views[index].v_ptr);
    python.set_item(result, index, views[index].v_ptr);
  }
  return result;
}

// Allocate what a call allocates, before it is under way: Python may give up its lock meanwhile, and whoever waits for
// the call may have it. A call that comes to nothing after all was ready a moment before, so that is rare.
static Outcome allocate_directly(Program& program, const CallRule& rule, CallBase& call,
                                 PythonMemory& memory) {
  {
    const Flight flight(program);
    if (!flight || !find_state(program, call)) return Outcome::kRefused;
  }
  call.allocator = &memory;
  if (rule.allocate(call, false)) return Outcome::kLaunched;
  return memory.raised() ? Outcome::kRaised : Outcome::kRefused;
}

// Launch; refused: nothing was done, and the general entry may be called with the same arguments.
static Outcome run_directly(Program& program, const CallRule& rule, const PythonEntry& entry,
                            const Arguments& arguments, void*& result) {
  const Begun begun(rule, program, TRUNNION_CALL_MEMORY(rule));
  CallBase& call = *begun;
  if (!rule.check(call, arguments, false) || call.doubtful) return Outcome::kRefused;
  if (!find_stream(call, *entry.exchange)) return Outcome::kRefused;
  PythonMemory memory(entry, rule.outputs, call.place.device, stream_number(call));
  if (rule.allocates) {
    const Outcome outcome = allocate_directly(program, rule, call, memory);
    if (outcome != Outcome::kLaunched) return outcome;
  }
  void* released = nullptr;
  bool good = false;
  {
    // Over before Python's lock is waited for: whoever closes the program waits for this, and may keep the lock meanwhile.
    const Flight flight(program);
    if (!flight || !find_state(program, call)) return Outcome::kRefused;
    released = entry.python.save_thread();
    Entered entered;
    good = enter_call(program, rule, call, entered) && rule.encode(call) && rule.fire(call);
  }
  entry.python.restore_thread(released);
  if (!good) return Outcome::kFailed;
  result = returned(entry, rule, call);
  return Outcome::kLaunched;
}

static void* (*capsule_pointer)(void*, const char*);  // CPython's, once an entry was offered

void* call_from_python(const CallRule& rule, void* self, void* const* args, intptr_t count) {
  PythonEntry& entry = *static_cast<PythonEntry*>(capsule_pointer(self, nullptr));
  const size_t inputs = static_cast<size_t>(rule.inputs);
  auto* given = static_cast<TVMFFIAny*>(__builtin_alloca(inputs * sizeof(TVMFFIAny)));
  auto* views = static_cast<DLTensor*>(__builtin_alloca(inputs * sizeof(DLTensor)));
  Outcome outcome = Outcome::kRefused;
  void* result = nullptr;
  bool plain = count == rule.inputs;
  for (int32_t index = 0; plain && index < rule.inputs; ++index) {
    plain = convert(entry, rule.kinds[index], args[index], views[index], given[index]);
  }
  if (plain) {
    Arguments arguments(given, rule.inputs);
    if (arguments.expect(rule.names, rule.inputs)) {
      outcome = run_directly(*entry.program, rule, entry, arguments, result);
    }
  }
  if (__builtin_expect(outcome == Outcome::kLaunched || outcome == Outcome::kRaised, 1)) return result;
  if (outcome == Outcome::kFailed) return entry.python.vectorcall(entry.failed, nullptr, 0, nullptr);
  Held refusal;
  TVMFFIErrorMoveFromRaised(refusal.out());
  entry.python.clear_error();
  return entry.python.vectorcall(entry.general, args, static_cast<size_t>(count), nullptr);
}

int offer_entry(Program& program, void* (*function)(void*, void* const*, intptr_t), const TVMFFIAny* given,
                int32_t count, TVMFFIAny* result) {
  constexpr Name kNames[] = {{"exchange", 8}, {"general", 7}, {"failed", 6}, {"tensor_type", 11},
                             {"allocate", 8}, {"quick", 5},   {"types", 5}};
  constexpr int32_t kCount = sizeof kNames / sizeof *kNames;
  if (count != kCount) return raise_count(count, kNames, kCount), -1;
  for (int32_t index = 0; index < kCount; ++index) {
    if (given[index].type_index != kTVMFFIInt)
      return raise_trailing(kNames[index].text, given[index], "an address"), -1;
  }
  give_nothing(result);
  result->type_index = kTVMFFIInt;
  auto* made = static_cast<PythonEntry*>(program.own_memory(sizeof(PythonEntry)));
  if (made == nullptr) return raise_no_page(), -1;
  PythonEntry& entry = *made;
  if (!entry.python.find()) return 0;
  capsule_pointer = entry.python.capsule_pointer;
  entry.program = &program;
  entry.exchange = static_cast<const DLPackExchangeAPI*>(given[0].v_ptr);
  entry.general = given[1].v_ptr;
  entry.failed = given[2].v_ptr;
  entry.tensor_type = given[3].v_ptr;
  entry.allocate = given[4].v_ptr;
  entry.quick = given[5].v_ptr;
  entry.types = given[6].v_ptr;
  entry.method = {"entry", function, kFastCall, nullptr};
  const bool whole = entry.exchange->header.version.major == DLPACK_MAJOR_VERSION &&
                     entry.exchange->dltensor_from_py_object_no_sync != nullptr &&
                     entry.exchange->current_work_stream != nullptr;
  if (whole) result->v_ptr = &entry;
  return 0;
}

}  // namespace trunnion
