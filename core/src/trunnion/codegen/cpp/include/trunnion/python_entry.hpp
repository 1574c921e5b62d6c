// The fastest way in from Python: a function of CPython's own calling convention, beside the exported ones.
//
// TVM-FFI's generic call costs as much as all the rest of a launch on the host. This one converts the arguments of one
// program: plain torch tensors through DLPack's exchange API, and plain Python numbers. Whatever is not plain, and every
// call that is refused, goes to the general entry, which takes everything and says what is wrong: this one only ever
// launches or hands on. Functions of CPython are found in the process and are of its stable ABI alone; nothing here is
// used, or needed, unless trunnion asks for it after loading.
#pragma once

#include <dlfcn.h>

#include <trunnion/run.hpp>

namespace trunnion {

// The head of every object and of a method's definition, as the stable ABI of CPython with its lock has them (object.h,
// methodobject.h).
struct PyHead {
  intptr_t references;
  void* type;
};

struct PyMethod {
  const char* name;
  void* (*function)(void* self, void* const* args, intptr_t count);
  int flags;
  const char* doc;
};

inline constexpr int kFastCall = 0x0080;  // METH_FASTCALL

struct CPython {
  void* (*save_thread)();
  void (*restore_thread)(void*);
  long long (*as_long)(void*, int*);
  double (*as_double)(void*);
  void (*clear_error)();
  void (*increase)(void*);
  void* (*vectorcall)(void*, void* const*, size_t, void*);
  void *long_type, *float_type, *none, *yes, *no;

  bool find() {
    void* functions[7] = {};
    static constexpr const char* kNames[] = {
        "PyEval_SaveThread",  "PyEval_RestoreThread", "PyLong_AsLongLongAndOverflow",
        "PyFloat_AsDouble",   "PyErr_Clear",          "Py_IncRef",
        "PyObject_Vectorcall"};
    for (size_t index = 0; index < 7; ++index) functions[index] = dlsym(RTLD_DEFAULT, kNames[index]);
    std::memcpy(static_cast<void*>(this), functions, sizeof functions);
    long_type = dlsym(RTLD_DEFAULT, "PyLong_Type");
    float_type = dlsym(RTLD_DEFAULT, "PyFloat_Type");
    none = dlsym(RTLD_DEFAULT, "_Py_NoneStruct");
    yes = dlsym(RTLD_DEFAULT, "_Py_TrueStruct");
    no = dlsym(RTLD_DEFAULT, "_Py_FalseStruct");
    for (void* function : functions) {
      if (function == nullptr) return false;
    }
    return long_type != nullptr && float_type != nullptr && none != nullptr && yes != nullptr &&
           no != nullptr;
  }
};

// What the adapter hands in; references to Python objects are its own, and it keeps them for as long as the process runs.
struct PythonEntry {
  CPython python;
  const DLPackExchangeAPI* exchange;
  void* tensor_type;
  void* general;  // takes the arguments again
  void* failed;   // raises what a launch raised
  PyMethod method;
};

inline void* type_of(void* object) { return static_cast<PyHead*>(object)->type; }

// Convert one argument: 't' a tensor, 'n' one that may be None, 'i' an integer, 'f' a float, 'b' a bool.
inline bool convert(const PythonEntry& entry, char kind, void* object, DLTensor& view, TVMFFIAny& given) {
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

enum class Outcome { kLaunched, kRefused, kFailed };

// Launch; refused: nothing was done, and the general entry may be called with the same arguments.
template <typename Call>
Outcome run_directly(Program& program, const PythonEntry& entry, const Arguments& arguments) {
  Call call;
  if (!call.check(arguments, false) || call.doubtful) return Outcome::kRefused;
  if (!prepare_directly(program, call, *entry.exchange) || !call.allocate(false)) return Outcome::kRefused;
  void* released = entry.python.save_thread();
  bool good = false;
  {
    Entered entered;
    good = enter_call(program, call, entered) && call.encode() && call.fire();
  }
  entry.python.restore_thread(released);
  return good ? Outcome::kLaunched : Outcome::kFailed;
}

template <typename Call>
void* call_from_python(Program& program, PythonEntry& entry, void* const* args, intptr_t count) {
  constexpr int32_t kInputs = Call::kInputs;
  TVMFFIAny given[kInputs != 0 ? kInputs : 1];
  DLTensor views[kInputs != 0 ? kInputs : 1];
  Outcome outcome = Outcome::kRefused;
  bool plain = count == kInputs;
  for (int32_t index = 0; plain && index < kInputs; ++index) {
    plain = convert(entry, Call::kKinds[index], args[index], views[index], given[index]);
  }
  if (plain) {
    Arguments arguments(given, kInputs);
    const Flight flight(program);
    if (arguments.expect(Call::kNames, kInputs) && flight)
      outcome = run_directly<Call>(program, entry, arguments);
  }
  if (__builtin_expect(outcome == Outcome::kLaunched, 1)) {
    entry.python.increase(entry.python.none);
    return entry.python.none;
  }
  if (outcome == Outcome::kFailed) return entry.python.vectorcall(entry.failed, nullptr, 0, nullptr);
  Held refusal;
  TVMFFIErrorMoveFromRaised(refusal.out());
  entry.python.clear_error();
  return entry.python.vectorcall(entry.general, args, static_cast<size_t>(count), nullptr);
}

// Take what the entry needs (exchange API, tensor type, general entry, what raises: addresses) and give the address of
// its definition; 0 where this process has no CPython that it could use.
int offer_entry(PythonEntry& entry, void* (*function)(void*, void* const*, intptr_t), const TVMFFIAny* given,
                int32_t count, TVMFFIAny* result);

}  // namespace trunnion
