#include "helper.h"

// cuLaunchKernelEx: configuration, function, parameters, extra.
typedef int (*Launch)(void*, void*, void*, void*);

typedef struct {
  Launch function;
  void* addresses[4];
  PyObject* kept;
} Caller;

static const char kCallerName[] = "trunnion_fastcall.caller";

static void free_caller(PyObject* capsule) {
  Caller* caller = PyCapsule_GetPointer(capsule, kCallerName);
  Py_XDECREF(caller->kept);
  PyMem_Free(caller);
}

static PyObject* call(PyObject* self, PyObject* unused) {
  (void)unused;
  const Caller* caller = PyCapsule_GetPointer(self, kCallerName);
  if (caller == NULL) return NULL;
  // The driver waits where the queue of a stream is full, and what empties it may be a function that wants the lock.
  PyThreadState* released = PyEval_SaveThread();
  void* const* given = caller->addresses;
  const int status = caller->function(given[0], given[1], given[2], given[3]);
  PyEval_RestoreThread(released);
  return PyLong_FromLong(status);
}

static PyMethodDef kCall = {"call", call, METH_NOARGS,
                            "call()\n--\n\nCall the function and return its status."};

// Fill in what is called with what; 0, or -1 with an exception.
static int fill_caller(Caller* caller, PyObject* function, PyObject* addresses) {
  static const char* const kNames[] = {"addresses[0]", "addresses[1]", "addresses[2]", "addresses[3]"};
  void* address = NULL;
  if (address_of(function, "function", &address) != 0) return -1;
  if (address == NULL) {
    PyErr_SetString(PyExc_ValueError, "function: got 0, expected the address of a function");
    return -1;
  }
  caller->function = (Launch)(intptr_t)address;
  if (expect_tuple(addresses, "addresses") != 0) return -1;
  if (PyTuple_Size(addresses) != 4) {
    PyErr_Format(PyExc_ValueError, "addresses: got %zd, expected 4", PyTuple_Size(addresses));
    return -1;
  }
  for (int index = 0; index < 4; ++index) {
    PyObject* given = PyTuple_GetItem(addresses, index);
    if (address_of(given, kNames[index], &caller->addresses[index]) != 0) return -1;
  }
  return 0;
}

PyObject* make_caller(PyObject* module, PyObject* const* args, Py_ssize_t count) {
  (void)module;
  if (expect_count("caller", count, 3) != 0) return NULL;
  Caller* caller = PyMem_Calloc(1, sizeof *caller);
  if (caller == NULL) return PyErr_NoMemory();
  if (fill_caller(caller, args[0], args[1]) != 0) {
    PyMem_Free(caller);
    return NULL;
  }
  Py_INCREF(args[2]);
  caller->kept = args[2];
  PyObject* capsule = PyCapsule_New(caller, kCallerName, free_caller);
  if (capsule == NULL) {
    Py_DECREF(caller->kept);
    PyMem_Free(caller);
    return NULL;
  }
  PyObject* made = PyCFunction_NewEx(&kCall, capsule, NULL);
  Py_DECREF(capsule);
  return made;
}
