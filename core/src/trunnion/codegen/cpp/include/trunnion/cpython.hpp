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

using PyFunction = void* (*)(void* self, void* const* args, intptr_t count, void* names);
using PyAction = void* (*)(void* self, void* nothing);

struct PyMethod {
  const char* name;
  union {
    PyAction action;  // with kNoArguments
    PyFunction function;
  };
  int flags;
  const char* doc;
};

inline constexpr int kNoArguments = 0x0004;  // METH_NOARGS
inline constexpr int kFastCall = 0x0080;     // METH_FASTCALL
inline constexpr int kKeywords = 0x0002;     // METH_KEYWORDS

inline void* type_of(void* object) { return static_cast<PyHead*>(object)->type; }

struct CPython {
  void* (*save_thread)();
  void (*restore_thread)(void*);
  long long (*as_long)(void*, int*);
  unsigned long long (*as_unsigned)(void*);
  double (*as_double)(void*);
  double (*as_real)(void*);
  double (*as_imaginary)(void*);
  char* (*as_bytes)(void*);
  intptr_t (*byte_count)(void*);
  void (*clear_error)();
  int (*raised)(void*);  // whether an error of that class is
  void (*increase)(void*);
  void (*decrease)(void*);
  void* (*vectorcall)(void*, void* const*, size_t, void*);
  void* (*from_long)(long long);
  void* (*from_unsigned)(unsigned long long);
  void* (*new_tuple)(intptr_t);
  int (*set_item)(void*, intptr_t, void*);  // takes the reference
  void* (*get_item)(void*, intptr_t);       // lends one
  intptr_t (*tuple_size)(void*);
  void* (*get_attribute)(void*, void*);
  void* (*capsule_pointer)(void*, const char*);
  // The error that is raised, which is none any more: class, value and traceback; and it again, with the references.
  void (*fetch)(void**, void**, void**);
  void (*restore)(void*, void*, void*);
  void *long_type, *float_type, *complex_type, *bytes_type, *tuple_type, *none, *yes, *no;
  void* runtime_error;

  bool find() {
    static constexpr const char* kNames[] = {"PyEval_SaveThread",
                                             "PyEval_RestoreThread",
                                             "PyLong_AsLongLongAndOverflow",
                                             "PyLong_AsUnsignedLongLong",
                                             "PyFloat_AsDouble",
                                             "PyComplex_RealAsDouble",
                                             "PyComplex_ImagAsDouble",
                                             "PyBytes_AsString",
                                             "PyBytes_Size",
                                             "PyErr_Clear",
                                             "PyErr_ExceptionMatches",
                                             "Py_IncRef",
                                             "Py_DecRef",
                                             "PyObject_Vectorcall",
                                             "PyLong_FromLongLong",
                                             "PyLong_FromUnsignedLongLong",
                                             "PyTuple_New",
                                             "PyTuple_SetItem",
                                             "PyTuple_GetItem",
                                             "PyTuple_Size",
                                             "PyObject_GetAttr",
                                             "PyCapsule_GetPointer",
                                             "PyErr_Fetch",
                                             "PyErr_Restore"};
    constexpr size_t kCount = sizeof kNames / sizeof *kNames;
    void* functions[kCount] = {};
    for (size_t index = 0; index < kCount; ++index) functions[index] = dlsym(RTLD_DEFAULT, kNames[index]);
    std::memcpy(static_cast<void*>(this), functions, sizeof functions);
    static constexpr const char* kObjects[] = {"PyLong_Type",    "PyFloat_Type",   "PyComplex_Type",
                                               "PyBytes_Type",   "PyTuple_Type",   "_Py_NoneStruct",
                                               "_Py_TrueStruct", "_Py_FalseStruct"};
    void** const objects[] = {&long_type,  &float_type, &complex_type, &bytes_type,
                              &tuple_type, &none,       &yes,          &no};
    bool found = true;
    for (size_t index = 0; index < sizeof kObjects / sizeof *kObjects; ++index) {
      *objects[index] = dlsym(RTLD_DEFAULT, kObjects[index]);
      found = found && *objects[index] != nullptr;
    }
    for (void* function : functions) found = found && function != nullptr;
    auto** error = static_cast<void**>(dlsym(RTLD_DEFAULT, "PyExc_RuntimeError"));
    if (error != nullptr) runtime_error = *error;
    return found && error != nullptr;
  }
};

}  // namespace trunnion
