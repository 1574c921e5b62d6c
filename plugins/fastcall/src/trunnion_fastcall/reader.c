#include "reader.h"

#include <string.h>

enum { FEW = 32 };  // tensors whose addresses fit on the stack

static const char kReaderName[] = "trunnion_fastcall.tensor_reader";

typedef enum { ALIKE, DIFFERENT, RAISED } Verdict;

// After an exception: what is no error of this tensor goes on to the caller, everything else means "different".
static Verdict after_exception(void) {
  PyObject* raised = PyErr_Occurred();
  if (raised == NULL) return DIFFERENT;
  if (!PyErr_GivenExceptionMatches(raised, PyExc_Exception)) return RAISED;
  if (PyErr_GivenExceptionMatches(raised, PyExc_MemoryError)) return RAISED;
  PyErr_Clear();
  return DIFFERENT;
}

static int is_like(const Model* model, const ExchangeTensor* shown) {
  const size_t bytes = (size_t)model->ndim * sizeof(int64_t);
  return shown->device.kind == model->device.kind && shown->device.ordinal == model->device.ordinal &&
         shown->dtype.code == model->dtype.code && shown->dtype.bits == model->dtype.bits &&
         shown->dtype.lanes == model->dtype.lanes && shown->ndim == model->ndim &&
         (bytes == 0 || (shown->shape != NULL && shown->strides != NULL &&
                         memcmp(shown->shape, model->layout, bytes) == 0 &&
                         memcmp(shown->strides, model->layout + model->ndim, bytes) == 0)) &&
         (model->empty || shown->data != NULL);
}

static PyObject* answer_to(const Question* question, PyObject* tensor) {
  if (question->method != NULL) return question->method(tensor, NULL);
  return PyObject_CallFunctionObjArgs(question->callable, tensor, NULL);
}

// Whether every question about a tensor is answered by False itself.
static Verdict ask(const Model* model, PyObject* tensor) {
  for (Py_ssize_t place = 0; place < model->asked_count; ++place) {
    PyObject* answer = answer_to(&model->asked[place], tensor);
    if (answer == NULL) return after_exception();
    const int no = answer == Py_False;
    Py_DECREF(answer);
    if (!no) return DIFFERENT;
  }
  return ALIKE;
}

static Verdict has_element(const Reader* reader, const Model* model, PyObject* tensor) {
  PyObject* element = PyObject_GetAttr(tensor, reader->dtype_name);
  if (element == NULL) return after_exception();
  const int same = element == model->element;
  Py_DECREF(element);
  return same ? ALIKE : DIFFERENT;
}

static Verdict read_one(const Reader* reader, const Model* model, PyObject* tensor, uint64_t* address) {
  if ((PyObject*)Py_TYPE(tensor) != reader->tensor_type) return DIFFERENT;
  ExchangeTensor shown;
  if (reader->view(tensor, &shown) != 0) return after_exception();
  // At once: what it shows may end as soon as anything of Python runs.
  if (!is_like(model, &shown)) return DIFFERENT;
  *address = (uint64_t)(uintptr_t)shown.data + shown.byte_offset;
  const Verdict verdict = model->element == NULL ? ALIKE : has_element(reader, model, tensor);
  return verdict == ALIKE ? ask(model, tensor) : verdict;
}

static PyObject* tuple_of(const uint64_t* addresses, Py_ssize_t count) {
  PyObject* made = PyTuple_New(count);
  for (Py_ssize_t index = 0; made != NULL && index < count; ++index) {
    PyObject* number = PyLong_FromUnsignedLongLong(addresses[index]);
    if (number == NULL || PyTuple_SetItem(made, index, number) != 0) {
      Py_DECREF(made);
      made = NULL;
    }
  }
  return made;
}

// The tuple of the last call if it was these, so that whoever compares two of them compares no numbers.
static PyObject* answer_of(Reader* reader, const uint64_t* addresses) {
  const size_t bytes = (size_t)reader->count * sizeof *addresses;
  if (reader->last == NULL || memcmp(addresses, reader->addresses, bytes) != 0) {
    PyObject* made = tuple_of(addresses, reader->count);
    if (made == NULL) return NULL;
    PyObject* before = reader->last;
    reader->last = made;
    memcpy(reader->addresses, addresses, bytes);
    Py_XDECREF(before);
  }
  Py_INCREF(reader->last);
  return reader->last;
}

static PyObject* read_all(Reader* reader, PyObject* const* args, uint64_t* addresses) {
  Verdict verdict = ALIKE;
  for (Py_ssize_t index = 0; verdict == ALIKE && index < reader->count; ++index) {
    verdict = read_one(reader, &reader->models[index], args[index], &addresses[index]);
  }
  if (verdict == ALIKE) return answer_of(reader, addresses);
  if (verdict == RAISED) return NULL;
  Py_RETURN_NONE;
}

static PyObject* read_tensors(PyObject* self, PyObject* const* args, Py_ssize_t count) {
  Reader* reader = PyCapsule_GetPointer(self, kReaderName);
  if (reader == NULL) return NULL;
  if (count != reader->count) Py_RETURN_NONE;
  uint64_t few[FEW];
  if (count <= FEW) return read_all(reader, args, few);
  uint64_t* many = PyMem_Calloc((size_t)count, sizeof *many);
  if (many == NULL) return PyErr_NoMemory();
  PyObject* answer = read_all(reader, args, many);
  PyMem_Free(many);
  return answer;
}

static PyMethodDef kRead = {"read", (PyCFunction)(void (*)(void))read_tensors, METH_FASTCALL,
                            "read(*tensors, /)\n--\n\n"
                            "Return the tensors' addresses, or None if one is not like its model."};

static void free_reader(PyObject* capsule) { delete_reader(PyCapsule_GetPointer(capsule, kReaderName)); }

// Find the function that shows a tensor, in the newest version of the table that is known here.
static ExchangeView view_of(PyObject* exchange) {
  void* address = NULL;
  if (address_of(exchange, "exchange", &address) != 0) return NULL;
  const ExchangeHeader* header = address;
  while (header != NULL && header->major > EXCHANGE_MAJOR) header = header->previous;
  if (header == NULL || header->major != EXCHANGE_MAJOR) {
    PyErr_Format(PyExc_ValueError, "exchange: got %R, expected the address of a DLPackExchangeAPI, version 1",
                 exchange);
    return NULL;
  }
  const ExchangeView view = ((const ExchangeApi*)header)->view_object;
  if (view == NULL) {
    PyErr_SetString(PyExc_ValueError,
                    "exchange: got an API without dltensor_from_py_object_no_sync, expected one with it");
  }
  return view;
}

PyObject* make_reader(PyObject* module, PyObject* const* args, Py_ssize_t count) {
  (void)module;
  if (expect_count("tensor_reader", count, 4) != 0) return NULL;
  PyObject *tensor_type = args[1], *tensors = args[2], *questions = args[3];
  const ExchangeView view = view_of(args[0]);
  if (view == NULL) return NULL;
  if (!PyType_Check(tensor_type)) {
    PyErr_Format(PyExc_TypeError, "tensor_type: got %R, expected a class", tensor_type);
    return NULL;
  }
  if (expect_tuple(tensors, "tensors") != 0 || expect_tuple(questions, "questions") != 0) return NULL;
  if (PyTuple_Size(tensors) != PyTuple_Size(questions)) {
    PyErr_Format(PyExc_ValueError, "questions: got %zd, expected %zd, one tuple of them for each tensor",
                 PyTuple_Size(questions), PyTuple_Size(tensors));
    return NULL;
  }
  Reader* reader = new_reader(view, tensor_type, tensors, questions);
  if (reader == NULL) return NULL;
  PyObject* capsule = PyCapsule_New(reader, kReaderName, free_reader);
  if (capsule == NULL) {
    delete_reader(reader);
    return NULL;
  }
  PyObject* made = PyCFunction_NewEx(&kRead, capsule, NULL);
  Py_DECREF(capsule);
  return made;
}
