#include "helper.h"

int expect_count(const char* name, Py_ssize_t count, Py_ssize_t expected) {
  if (count == expected) return 0;
  PyErr_Format(PyExc_TypeError, "%s: got %zd arguments, expected %zd", name, count, expected);
  return -1;
}

int address_of(PyObject* value, const char* name, void** address) {
  if (!PyLong_Check(value)) {
    PyErr_Format(PyExc_TypeError, "%s: got %R, expected an address as an int", name, value);
    return -1;
  }
  const unsigned long long number = PyLong_AsUnsignedLongLong(value);
  *address = (void*)(uintptr_t)number;
  if (PyErr_Occurred() == NULL) return 0;
  PyErr_Clear();
  PyErr_Format(PyExc_ValueError, "%s: got %R, expected an address, 0 to 2**64 - 1", name, value);
  return -1;
}

int expect_tuple(PyObject* value, const char* name) {
  if (PyTuple_Check(value)) return 0;
  PyErr_Format(PyExc_TypeError, "%s: got %R, expected a tuple", name, (PyObject*)Py_TYPE(value));
  return -1;
}

static PyMethodDef kFactories[] = {
    {"tensor_reader", (PyCFunction)(void (*)(void))make_reader, METH_FASTCALL,
     "tensor_reader(exchange, tensor_type, tensors, questions)\n--\n\n"
     "Return a function that reads the addresses of tensors like the given ones, or returns None."},
    {"caller", (PyCFunction)(void (*)(void))make_caller, METH_FASTCALL,
     "caller(function, addresses, kept)\n--\n\n"
     "Return a function that calls a C function of four pointers without the interpreter's lock."},
    {NULL, NULL, 0, NULL},
};

static PyModuleDef_Slot kSlots[] = {{0, NULL}};

static PyModuleDef kModule = {
    .m_base = PyModuleDef_HEAD_INIT,
    .m_name = "trunnion_fastcall._helper",
    .m_doc = "The compiled parts of a launcher's call.",
    .m_methods = kFactories,
    .m_slots = kSlots,
};

PyMODINIT_FUNC PyInit__helper(void) { return PyModuleDef_Init(&kModule); }
