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

// Launch, or hand on to the general entry; what it returns.
void* call_from_python(Program& program, const CallRule& rule, PythonEntry& entry, void* const* args,
                       intptr_t count);

// Take what the entry needs (exchange API, tensor type, general entry, what raises: addresses) and give the address of
// its definition; 0 where this process has no CPython that it could use.
int offer_entry(PythonEntry& entry, void* (*function)(void*, void* const*, intptr_t), const TVMFFIAny* given,
                int32_t count, TVMFFIAny* result);

}  // namespace trunnion
