#include <string.h>

#include "reader.h"

void delete_reader(Reader* reader) {
  for (Py_ssize_t index = 0; index < reader->count; ++index) {
    PyMem_Free(reader->models[index].layout);
    Py_XDECREF(reader->models[index].element);
    const Model* model = &reader->models[index];
    for (Py_ssize_t place = 0; place < model->asked_count; ++place) Py_XDECREF(model->asked[place].callable);
    PyMem_Free(model->asked);
  }
  Py_XDECREF(reader->tensor_type);
  Py_XDECREF(reader->dtype_name);
  Py_XDECREF(reader->last);
  PyMem_Free(reader->addresses);
  PyMem_Free(reader);
}

// Say which tensor the library does not show, in place of what it raised; interrupts and the like stay as they are.
static void raise_unreadable(Py_ssize_t index) {
  PyObject *kind = NULL, *value = NULL, *trace = NULL;
  PyErr_Fetch(&kind, &value, &trace);
  if (kind != NULL && !PyErr_GivenExceptionMatches(kind, PyExc_Exception)) {
    PyErr_Restore(kind, value, trace);
    return;
  }
  PyErr_Format(PyExc_ValueError, "tensors[%zd]: its library does not show its memory: %S", index,
               value == NULL ? Py_None : value);
  Py_XDECREF(kind);
  Py_XDECREF(value);
  Py_XDECREF(trace);
}

// Note how a tensor lies in memory; 0, or -1 with an exception.
static int note_layout(Model* model, const ExchangeTensor* shown, Py_ssize_t index) {
  if (shown->ndim < 0 || (shown->ndim > 0 && (shown->shape == NULL || shown->strides == NULL))) {
    PyErr_Format(PyExc_ValueError, "tensors[%zd]: got %d dimensions, expected extents and strides of each",
                 index, (int)shown->ndim);
    return -1;
  }
  const size_t ndim = (size_t)shown->ndim;
  model->layout = PyMem_Calloc(2 * ndim + 1, sizeof *model->layout);
  if (model->layout == NULL) return PyErr_NoMemory(), -1;
  for (size_t axis = 0; axis < ndim; ++axis) {
    model->layout[axis] = shown->shape[axis];
    model->layout[ndim + axis] = shown->strides[axis];
    if (shown->shape[axis] == 0) model->empty = 1;
  }
  model->device = shown->device;
  model->dtype = shown->dtype;
  model->ndim = shown->ndim;
  return 0;
}

static int note_tensor(Reader* reader, Py_ssize_t index, PyObject* tensor) {
  Model* model = &reader->models[index];
  if ((PyObject*)Py_TYPE(tensor) != reader->tensor_type) {
    PyErr_Format(PyExc_TypeError, "tensors[%zd]: got %R, expected exactly %R", index,
                 (PyObject*)Py_TYPE(tensor), reader->tensor_type);
    return -1;
  }
  ExchangeTensor shown;
  memset(&shown, 0, sizeof shown);
  if (reader->view(tensor, &shown) != 0) return raise_unreadable(index), -1;
  if (note_layout(model, &shown, index) != 0) return -1;
  if (is_ambiguous(model->dtype)) {
    model->element = PyObject_GetAttr(tensor, reader->dtype_name);
    if (model->element == NULL) return -1;
  }
  return 0;
}

// The function behind a method of compiled code that takes a tensor alone: to call it takes half of what a call through
// the interpreter's conventions does. Null where it is none: it is called as any other callable then.
static PyCFunction method_behind(PyObject* callable, PyObject* tensor) {
  if (!Py_IS_TYPE(callable, &PyMethodDescr_Type)) return NULL;
  PyObject* bound = PyObject_CallMethod(callable, "__get__", "O", tensor);
  PyCFunction found = NULL;
  if (bound != NULL && Py_IS_TYPE(bound, &PyCFunction_Type) && PyCFunction_GetSelf(bound) == tensor &&
      PyCFunction_GetFlags(bound) == METH_NOARGS)
    found = PyCFunction_GetFunction(bound);
  Py_XDECREF(bound);
  PyErr_Clear();
  return found;
}

static int note_questions(Model* model, PyObject* asked, PyObject* tensor, Py_ssize_t index) {
  if (!PyTuple_Check(asked)) {
    PyErr_Format(PyExc_TypeError, "questions[%zd]: got %R, expected a tuple of callables", index,
                 (PyObject*)Py_TYPE(asked));
    return -1;
  }
  const Py_ssize_t count = PyTuple_Size(asked);
  model->asked = PyMem_Calloc((size_t)count + 1, sizeof *model->asked);
  if (model->asked == NULL) return PyErr_NoMemory(), -1;
  for (Py_ssize_t place = 0; place < count; ++place) {
    PyObject* question = PyTuple_GetItem(asked, place);
    if (!PyCallable_Check(question)) {
      PyErr_Format(PyExc_TypeError, "questions[%zd][%zd]: got %R, expected a callable", index, place,
                   question);
      return -1;
    }
    Py_INCREF(question);
    model->asked[model->asked_count++] = (Question){question, method_behind(question, tensor)};
  }
  return 0;
}

static int fill_reader(Reader* reader, PyObject* tensors, PyObject* questions) {
  for (Py_ssize_t index = 0; index < reader->count; ++index) {
    PyObject* tensor = PyTuple_GetItem(tensors, index);
    if (note_tensor(reader, index, tensor) != 0) return -1;
    if (note_questions(&reader->models[index], PyTuple_GetItem(questions, index), tensor, index) != 0)
      return -1;
  }
  return 0;
}

Reader* new_reader(ExchangeView view, PyObject* tensor_type, PyObject* tensors, PyObject* questions) {
  const size_t count = (size_t)PyTuple_Size(tensors);
  Reader* reader = PyMem_Calloc(1, sizeof *reader + count * sizeof(Model));
  if (reader == NULL) return (void)PyErr_NoMemory(), NULL;
  reader->view = view;
  Py_INCREF(tensor_type);
  reader->tensor_type = tensor_type;
  reader->count = (Py_ssize_t)count;
  reader->addresses = PyMem_Calloc(count + 1, sizeof *reader->addresses);
  reader->dtype_name = PyUnicode_InternFromString("dtype");
  if (reader->addresses == NULL) PyErr_NoMemory();
  if (reader->addresses == NULL || reader->dtype_name == NULL ||
      fill_reader(reader, tensors, questions) != 0) {
    delete_reader(reader);
    return NULL;
  }
  return reader;
}
