// The two factories of this extension, and what they share. Everything here is of CPython's stable ABI, 3.11.
#pragma once

#define PY_SSIZE_T_CLEAN
#include <Python.h>

// tensor_reader(exchange, tensor_type, tensors, questions) and caller(function, addresses, kept); see _helper.pyi.
PyObject* make_reader(PyObject* module, PyObject* const* args, Py_ssize_t count);
PyObject* make_caller(PyObject* module, PyObject* const* args, Py_ssize_t count);

// Check the number of arguments of a factory; 0, or -1 with an exception.
int expect_count(const char* name, Py_ssize_t count, Py_ssize_t expected);

// Read an address, an int of 0 or more; 0, or -1 with an exception that names it.
int address_of(PyObject* value, const char* name, void** address);

// Check that a value is a tuple; 0, or -1 with an exception that names it.
int expect_tuple(PyObject* value, const char* name);
