#include <trunnion/python_memory.hpp>

namespace trunnion {

// A reference to a Python object, given back when this ends; null: Python has an exception to raise.
class PyOwned {
 public:
  PyOwned(const CPython& python, void* object) : python_(python), object_(object) {}
  ~PyOwned() {
    if (object_ != nullptr) python_.decrease(object_);
  }
  PyOwned(const PyOwned&) = delete;
  PyOwned& operator=(const PyOwned&) = delete;
  void* get() const { return object_; }

 private:
  const CPython& python_;
  void* object_;
};

void* PythonMemory::numbers(const int64_t* values, int32_t count) const {
  const CPython& python = entry_.python;
  void* tuple = python.new_tuple(count);
  for (int32_t index = 0; tuple != nullptr && index < count; ++index) {
    void* number = python.from_long(values[index]);
    if (number != nullptr && python.set_item(tuple, index, number) == 0) continue;
    python.decrease(tuple);
    return nullptr;
  }
  return tuple;
}

void* PythonMemory::quickly(void* extents, void* type, const int64_t* shape, int32_t rank) const {
  auto* strides = static_cast<int64_t*>(__builtin_alloca(sizeof(int64_t) * static_cast<size_t>(rank + 1)));
  int64_t step = 1;
  for (int32_t axis = rank - 1; axis >= 0; --axis) {
    strides[axis] = step;
    // An overflow is the general function's to say.
    if (__builtin_mul_overflow(step, shape[axis] > 0 ? shape[axis] : 1, &step)) return nullptr;
  }
  const PyOwned steps(entry_.python, numbers(strides, rank));
  if (steps.get() == nullptr) return nullptr;
  void* const args[] = {extents, steps.get(), type};
  return entry_.python.vectorcall(entry_.quick, args, 3, nullptr);
}

void* PythonMemory::anyhow(void* extents, void* type) const {
  const CPython& python = entry_.python;
  const PyOwned device(python, python.from_long(device_));
  const PyOwned stream(python, python.from_unsigned(stream_));
  if (device.get() == nullptr || stream.get() == nullptr) return nullptr;
  void* const args[] = {extents, type, device.get(), stream.get()};
  return python.vectorcall(entry_.allocate, args, 4, nullptr);
}

bool PythonMemory::make(Allocator& allocator, int32_t which, const int64_t* shape, int32_t rank,
                        void*& object, DLTensor& tensor) {
  PythonMemory& self = static_cast<PythonMemory&>(allocator);
  const PythonEntry& entry = self.entry_;
  const CPython& python = entry.python;
  const PyOwned extents(python, self.numbers(shape, rank));
  void* type = python.get_item(entry.types, which == kBytes ? self.outputs_ : which);
  self.raised_ = extents.get() == nullptr || type == nullptr;
  if (self.raised_) return false;
  object = entry.quick == nullptr ? nullptr : self.quickly(extents.get(), type, shape, rank);
  if (object == nullptr) {
    python.clear_error();  // the other function says it better
    object = self.anyhow(extents.get(), type);
  }
  self.raised_ = object == nullptr;
  if (self.raised_) return false;
  if (static_cast<PyHead*>(object)->type == entry.tensor_type &&
      entry.exchange->dltensor_from_py_object_no_sync(object, &tensor) == 0) {
    return true;
  }
  python.clear_error();
  python.decrease(object);
  object = nullptr;
  return false;
}

void PythonMemory::give_back(Allocator& self, void* object) {
  static_cast<PythonMemory&>(self).entry_.python.decrease(object);
}

}  // namespace trunnion
