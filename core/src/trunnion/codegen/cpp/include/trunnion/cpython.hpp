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

// What a launcher has of CPython: each function and object by its name there, and what it is here. `fetch` gives class,
// value and traceback of the error that is raised, which is none any more; `restore` raises it again, with the references.
#define TRUNNION_PYTHON(X) \
  X(PyEval_SaveThread, void* (*save_thread)()) \
  X(PyEval_RestoreThread, void (*restore_thread)(void*)) \
  X(PyLong_AsLongLongAndOverflow, long long (*as_long)(void*, int*)) \
  X(PyLong_AsUnsignedLongLong, unsigned long long (*as_unsigned)(void*)) \
  X(PyFloat_AsDouble, double (*as_double)(void*)) \
  X(PyComplex_RealAsDouble, double (*as_real)(void*)) \
  X(PyComplex_ImagAsDouble, double (*as_imaginary)(void*)) \
  X(PyBytes_AsString, char* (*as_bytes)(void*)) \
  X(PyBytes_Size, intptr_t (*byte_count)(void*)) \
  X(PyErr_Clear, void (*clear_error)()) \
  X(PyErr_ExceptionMatches, int (*raised)(void*)) /* whether an error of that class is */ \
  X(Py_IncRef, void (*increase)(void*)) \
  X(Py_DecRef, void (*decrease)(void*)) \
  X(PyObject_Vectorcall, void* (*vectorcall)(void*, void* const*, size_t, void*)) \
  X(PyLong_FromLongLong, void* (*from_long)(long long)) \
  X(PyLong_FromUnsignedLongLong, void* (*from_unsigned)(unsigned long long)) \
  X(PyTuple_New, void* (*new_tuple)(intptr_t)) \
  X(PyTuple_SetItem, int (*set_item)(void*, intptr_t, void*)) /* takes the reference */ \
  X(PyTuple_GetItem, void* (*get_item)(void*, intptr_t))      /* lends one */ \
  X(PyTuple_Size, intptr_t (*tuple_size)(void*)) \
  X(PyObject_GetAttr, void* (*get_attribute)(void*, void*)) \
  X(PyCapsule_GetPointer, void* (*capsule_pointer)(void*, const char*)) \
  X(PyErr_Fetch, void (*fetch)(void**, void**, void**)) \
  X(PyErr_Restore, void (*restore)(void*, void*, void*)) \
  X(PyLong_Type, void* long_type) \
  X(PyFloat_Type, void* float_type) \
  X(PyComplex_Type, void* complex_type) \
  X(PyBytes_Type, void* bytes_type) \
  X(PyTuple_Type, void* tuple_type) \
  X(_Py_NoneStruct, void* none) \
  X(_Py_TrueStruct, void* yes) \
  X(_Py_FalseStruct, void* no)

#define TRUNNION_MEMBER(name, member) member;
#define TRUNNION_NAME(name, member) #name,
struct CPython {
  TRUNNION_PYTHON(TRUNNION_MEMBER)
  void* runtime_error;

  bool find() {
    static constexpr const char* kNames[] = {TRUNNION_PYTHON(TRUNNION_NAME)};
    constexpr size_t kCount = sizeof kNames / sizeof *kNames;
    void* members[kCount] = {};
    bool found = true;
    for (size_t index = 0; index < kCount; ++index) {
      members[index] = dlsym(RTLD_DEFAULT, kNames[index]);
      found = found && members[index] != nullptr;
    }
    std::memcpy(static_cast<void*>(this), members, sizeof members);
    auto** error = static_cast<void**>(dlsym(RTLD_DEFAULT, "PyExc_RuntimeError"));
    if (error != nullptr) runtime_error = *error;
    return found && error != nullptr;
  }
};
#undef TRUNNION_NAME
#undef TRUNNION_MEMBER

}  // namespace trunnion
