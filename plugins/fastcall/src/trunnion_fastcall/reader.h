// A reader: the models that tensors are compared with, and the answer of the last call.
#pragma once

#include "exchange.h"
#include "helper.h"

// What is asked of a tensor, and has to be answered by False.
typedef struct {
  PyObject* callable;
  PyCFunction
      method;  // what the callable calls with a tensor alone, if it is such a method of compiled code; or null
} Question;

typedef struct {
  ExchangeDevice device;
  ExchangeType dtype;
  int32_t ndim;
  int empty;        // whether it has no elements: then it needs no address
  int64_t* layout;  // the extents, then the strides: of the reader
  PyObject*
      element;  // the library's own object for the element type, where DLPack has one for several; or null
  Question* asked;
  Py_ssize_t asked_count;
} Model;

typedef struct {
  ExchangeView view;
  PyObject* tensor_type;
  PyObject* dtype_name;  // "dtype", interned
  PyObject* last;        // the tuple that the last call answered, or null
  uint64_t* addresses;   // of the last call
  Py_ssize_t count;
  Model models[];
} Reader;

// Make a reader for tensors that are there, all arguments checked; null with an exception.
Reader* new_reader(ExchangeView view, PyObject* tensor_type, PyObject* tensors, PyObject* questions);
void delete_reader(Reader* reader);

// Whether an element type of DLPack may stand for several of a library: those of fewer than 8 bits, a byte each.
static inline int is_ambiguous(ExchangeType dtype) { return dtype.code <= TYPE_CODE_UINT && dtype.bits <= 8; }
