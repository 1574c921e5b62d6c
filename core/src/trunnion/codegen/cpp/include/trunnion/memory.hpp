// Memory of a call: outputs and workspaces, through the allocator of whoever calls.
#pragma once

#include <trunnion/calls.hpp>

namespace trunnion {

// Who allocates for a call in the place of TVM-FFI's environment.
struct Allocator {
  // Allocate a tensor of the element type of output `which`, or bytes for a workspace (`kBytes`). False: nothing was
  // allocated, and nothing is raised.
  bool (*allocate)(Allocator& self, int32_t which, const int64_t* shape, int32_t rank, void*& object,
                   DLTensor& tensor);
  void (*drop)(Allocator& self, void* object);
};

inline constexpr int32_t kBytes = -1;

// What is asked for: for which output, where, and of whom; null: of TVM-FFI's environment.
struct Request {
  int32_t which;
  DLDevice device;
  Allocator* allocator;
};

// An allocated tensor, given back when this ends.
class Memory {
 public:
  Memory() = default;
  ~Memory() { drop(); }
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;

  void drop() {
    held.drop();
    if (object_ != nullptr) allocator_->drop(*allocator_, object_);
    object_ = nullptr;
  }

  // Allocate by the request's own allocator, which it has.
  bool allocate(const Request& request, const int64_t* shape, int32_t rank) {
    allocator_ = request.allocator;
    return allocator_->allocate(*allocator_, request.which, shape, rank, object_, tensor_);
  }

  const DLTensor& tensor() const {
    return object_ == nullptr ? *TVMFFITensorGetDLTensorPtr(held.get()) : tensor_;
  }

  // A view of it: TVM-FFI's tensor, or the allocator's object.
  TVMFFIAny view() const {
    if (object_ == nullptr) return held.view(kTVMFFITensor);
    TVMFFIAny any{};
    any.type_index = kTVMFFIOpaquePtr;
    any.v_ptr = object_;
    return any;
  }

  Held held;  // what the environment allocated

 private:
  Allocator* allocator_ = nullptr;
  void* object_ = nullptr;
  DLTensor tensor_{};
};

// Allocate a tensor. The allocator works on its own current stream: whoever names another makes that one current before.
bool allocate_tensor(const Request& request, DLDataType dtype, const char* dtype_name, const int64_t* shape,
                     int32_t rank, Memory& memory);

// Outputs ---------------------------------------------------------------------------------------------------------------

struct OutputRule {
  TensorRule tensor;    // what is asked of what the launcher allocates; its alignment in bytes too
  TensorRule given;     // the same of what the caller gives, whose name says where
  const Name* extents;  // as the author wrote them, one for each dimension

  constexpr OutputRule(const TensorRule& rule, const char* place, const Name* written)
      : tensor(rule), given(rule), extents(written) {
    given.name.place = place;
  }
};

// An output: allocated, as aligned as the program says, which may be more than the allocator knows of; or given by the
// caller.
bool allocate_output(const OutputRule& rule, const Request& request, const int64_t* shape, Memory& memory,
                     uint64_t& address);

bool check_output(const TVMFFIAny& given, const OutputRule& rule, DLDevice device, const int64_t* shape,
                  uint64_t& address);

// The bytes of one output, to be compared with the others'.
struct Span {
  uint64_t address;
  uint64_t nbytes;
  const Name* name;
};

bool check_disjoint(const Span* spans, int32_t count);

inline uint64_t element_count(const int64_t* shape, int32_t rank) {
  uint64_t count = 1;
  for (int32_t axis = 0; axis < rank; ++axis) count *= static_cast<uint64_t>(shape[axis]);
  return count;
}

// Workspaces ------------------------------------------------------------------------------------------------------------

struct WorkspaceRule {
  Name name;
  uint64_t itemsize;   // bytes
  uint64_t alignment;  // bytes
};

inline constexpr uint64_t kAllocatorAlignment = 256;  // of whatever a device allocator returns

// The bytes of a workspace; false if no memory is that large.
bool workspace_bytes(const WorkspaceRule& rule, const int64_t* extents, int32_t rank, uint64_t& nbytes);

bool allocate_workspace(const WorkspaceRule& rule, const Request& request, uint64_t nbytes, Memory& memory,
                        uint64_t& address);

// Fills -----------------------------------------------------------------------------------------------------------------

// One write of a repeated number to memory.
struct FillStep {
  uint32_t value;
  uint32_t width;   // bytes of the number: 1, 2 or 4
  uint64_t offset;  // bytes between the memory's first element and the first number
  uint64_t pitch;   // bytes from one number to the next; `width`: they are dense
};

}  // namespace trunnion
