// The few functions of CPython that a launcher calls. They are found in the process, and all but one are of the stable ABI
// since 3.11: PyObject_Vectorcall is since 3.12, and in 3.11 has the same form.
#pragma once

#include <dlfcn.h>

#include <cstddef>
#include <cstdint>
#include <cstring>

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
  void (*decrease)(void*);
  void* (*vectorcall)(void*, void* const*, size_t, void*);
  void* (*from_long)(long long);
  void* (*from_unsigned)(unsigned long long);
  void* (*new_tuple)(intptr_t);
  int (*set_item)(void*, intptr_t, void*);  // takes the reference
  void* (*get_item)(void*, intptr_t);       // lends one
  void* (*capsule_pointer)(void*, const char*);
  void *long_type, *float_type, *none, *yes, *no;

  bool find() {
    static constexpr const char* kNames[] = {"PyEval_SaveThread",
                                             "PyEval_RestoreThread",
                                             "PyLong_AsLongLongAndOverflow",
                                             "PyFloat_AsDouble",
                                             "PyErr_Clear",
                                             "Py_IncRef",
                                             "Py_DecRef",
                                             "PyObject_Vectorcall",
                                             "PyLong_FromLongLong",
                                             "PyLong_FromUnsignedLongLong",
                                             "PyTuple_New",
                                             "PyTuple_SetItem",
                                             "PyTuple_GetItem",
                                             "PyCapsule_GetPointer"};
    constexpr size_t kCount = sizeof kNames / sizeof *kNames;
    void* functions[kCount] = {};
    for (size_t index = 0; index < kCount; ++index) functions[index] = dlsym(RTLD_DEFAULT, kNames[index]);
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

}  // namespace trunnion
