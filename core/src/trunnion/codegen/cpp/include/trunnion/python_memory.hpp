// Memory of a call that Python makes directly: by the functions of its tensor library, which give that library's own
// tensors; TVM-FFI's environment would wrap each one twice.
#pragma once

#include <trunnion/python_entry.hpp>

namespace trunnion {

class PythonMemory : public Allocator {
 public:
  PythonMemory(const PythonEntry& entry, int32_t outputs)
      : Allocator{make, give_back}, entry_(entry), outputs_(outputs) {}

  // Where it lies, and for which stream; before anything is allocated.
  void settle(int32_t device, uint64_t stream) {
    device_ = device;
    stream_ = stream;
  }

  // Whether Python has an exception to raise: what the tensor library said.
  bool raised() const { return raised_; }

 private:
  static bool make(Allocator& self, int32_t which, const int64_t* shape, int32_t rank, void*& object,
                   DLTensor& tensor);
  static void give_back(Allocator& self, void* object);

  void* numbers(const int64_t* values, int32_t count) const;
  void* quickly(void* extents, void* type, const int64_t* shape, int32_t rank) const;
  void* anyhow(void* extents, void* type) const;

  const PythonEntry& entry_;
  int32_t outputs_;
  int32_t device_ = 0;
  uint64_t stream_ = 0;
  bool raised_ = false;
};

}  // namespace trunnion
