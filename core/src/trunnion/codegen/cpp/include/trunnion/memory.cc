#include <trunnion/memory.hpp>

namespace trunnion {

// What the allocator said, and what it was asked for: whoever knows the tensor library repeats it in its words.
static bool raise_unallocated(const DLTensor& wanted, const char* dtype_name) {
  Held said;
  TVMFFIErrorMoveFromRaised(said.out());
  Text message, device, shape;
  if (said.get() != nullptr) {
    const TVMFFIByteArray& text = TVMFFIErrorGetCellPtr(said.get())->message;
    message.append(text.data, text.size);
  }
  device << wanted.device.device_id;
  for (int32_t axis = 0; axis < wanted.ndim; ++axis) shape << (axis != 0 ? " " : "") << wanted.shape[axis];
  return Raising("MemoryError", "AllocationError")
      .field(message)
      .field(dtype_name)
      .field(device)
      .field(shape)
      .with(message);
}

bool allocate_tensor(const Request& request, DLDataType dtype, const char* dtype_name, const int64_t* shape,
                     int32_t rank, Memory& memory) {
  if (request.allocator != nullptr) return memory.allocate(request, shape, rank);
  if (TVMFFIEnvGetDLPackManagedTensorAllocator() == nullptr) return raise_no_allocator();
  DLTensor wanted{};
  wanted.device = request.device;
  wanted.ndim = rank;
  wanted.dtype = dtype;
  wanted.shape = const_cast<int64_t*>(shape);
  return TVMFFIEnvTensorAlloc(&wanted, memory.held.out()) == 0 ? true : raise_unallocated(wanted, dtype_name);
}

static bool raise_output_place(const DLTensor& tensor, const TensorRule& rule, DLDevice device) {
  Text there;
  describe_device(there, tensor.device);
  return device.device_type == kDLCPU ? raise_output_on_cpu(rule.name, there)
                                      : raise_output_device(rule.name, there, device.device_id);
}

bool check_output(const TVMFFIAny& given, const OutputRule& rule, DLDevice device, const int64_t* shape,
                  uint64_t& address) {
  const DLTensor* tensor = nullptr;
  if (!read_tensor(given, rule.given, tensor)) return false;
  for (int32_t axis = 0; axis < rule.given.rank; ++axis) {
    if (tensor->shape[axis] == shape[axis]) continue;
    return raise_unequal(rule.given.name, "extent", axis, tensor->shape[axis], shape[axis],
                         rule.extents[axis]);
  }
  const bool elsewhere = tensor->device.device_type != device.device_type ||
                         (device.device_type != kDLCPU && tensor->device.device_id != device.device_id);
  if (elsewhere) return raise_output_place(*tensor, rule.given, device);
  return check_layout(tensor, rule.given) && read_address(tensor, rule.given, address);
}

bool check_disjoint(const Span* spans, int32_t count) {
  for (int32_t first = 0; first < count; ++first) {
    for (int32_t second = 0; second < count; ++second) {
      const Span &one = spans[first], &other = spans[second];
      const bool apart = one.nbytes == 0 || other.nbytes == 0 || first == second ||
                         other.address < one.address || other.address - one.address >= one.nbytes;
      if (!apart) return raise_overlap(*other.name, *one.name);
    }
  }
  return true;
}

bool workspace_bytes(const WorkspaceRule& rule, const int64_t* extents, int32_t rank, uint64_t& nbytes) {
  // What aligns it comes on top, and an extent has 63 bits.
  const uint64_t most =
      INT64_MAX - (rule.alignment > kAllocatorAlignment ? rule.alignment : kAllocatorAlignment);
  UnsignedWide total = rule.itemsize;
  bool empty = false, wide = false;
  for (int32_t axis = 0; axis < rank; ++axis) {
    empty = empty || extents[axis] == 0;
    total *= static_cast<uint64_t>(extents[axis]);
    wide = wide || total > most;
    if (wide) total = most;  // a factor may still be 0
  }
  nbytes = empty ? 0 : static_cast<uint64_t>(total);
  return empty || !wide || raise_size(rule.name);
}

bool allocate_workspace(const WorkspaceRule& rule, const Request& request, uint64_t nbytes, Memory& memory,
                        uint64_t& address) {
  address = 0;
  if (nbytes == 0) return true;
  const uint64_t guaranteed = request.device.device_type == kDLCPU ? 1 : kAllocatorAlignment;
  const uint64_t spare = rule.alignment > guaranteed ? rule.alignment : 0;
  const int64_t extent = static_cast<int64_t>(nbytes + spare);
  if (!allocate_tensor(request, DLDataType{kDLUInt, 8, 1}, "uint8", &extent, 1, memory)) return false;
  address = aligned_up(address_of(memory.tensor()), rule.alignment);
  return true;
}

}  // namespace trunnion
