#include <trunnion/memory.hpp>

namespace trunnion {

// Take a tensor's place by one that begins at `data`, within the same memory, and keeps it alive. TVM-FFI makes it, so that
// what a call gives back needs no code of this library.
static bool place_within(const DLTensor& like, void* data, const Held& whole, Held& held) {
  const size_t rank = static_cast<size_t>(like.ndim);
  auto* strides = static_cast<int64_t*>(__builtin_alloca(sizeof(int64_t) * (rank + 1)));
  int64_t stride = 1;
  for (size_t axis = rank; axis-- > 0;) {
    strides[axis] = stride;
    stride *= like.shape[axis] > 0 ? like.shape[axis] : 1;
  }
  DLTensor part = like;
  part.data = data;
  part.strides = strides;
  return TVMFFITensorCreateUnsafeView(whole.get(), &part, held.out()) == 0;
}

// Allocate an output with room to begin at a multiple of its alignment.
static bool align_output(const TensorRule& rule, const Request& request, const int64_t* shape, Memory& memory,
                         uint64_t& address) {
  const uint64_t element = (static_cast<uint64_t>(rule.dtype.bits) * rule.dtype.lanes + 7) / 8;
  uint64_t nbytes = element, extent = 0;
  bool wide = false;
  for (int32_t axis = 0; axis < rule.rank; ++axis) {
    wide |= __builtin_mul_overflow(nbytes, static_cast<uint64_t>(shape[axis]), &nbytes);
  }
  wide |= __builtin_add_overflow(nbytes, rule.alignment, &extent) || extent > INT64_MAX;
  if (wide) {  // no memory is that large: the allocator says so of what the program asks for
    return allocate_tensor(request, rule.dtype, rule.dtype_name, shape, rule.rank, memory) &&
           read_address(&memory.tensor(), rule, address);
  }
  const int64_t room = static_cast<int64_t>(extent);
  Memory whole;
  if (!allocate_tensor(request, DLDataType{kDLUInt, 8, 1}, "uint8", &room, 1, whole)) return false;
  address = aligned_up(address_of(whole.tensor()), rule.alignment);
  DLTensor like{};
  like.device = request.device;
  like.ndim = rule.rank;
  like.dtype = rule.dtype;
  like.shape = const_cast<int64_t*>(shape);
  return place_within(like, reinterpret_cast<void*>(address), whole.held, memory.held);
}

bool allocate_output(const OutputRule& rule, const Request& request, const int64_t* shape, Memory& memory,
                     uint64_t& address) {
  const TensorRule& tensor = rule.tensor;
  const bool on_host = request.device.device_type == kDLCPU;
  if (on_host || tensor.alignment <= kAllocatorAlignment || element_count(shape, tensor.rank) == 0) {
    if (!allocate_tensor(request, tensor.dtype, tensor.dtype_name, shape, tensor.rank, memory)) return false;
    const DLTensor& made = memory.tensor();
    // A host's allocators promise little, and mostly do more.
    const bool good = !on_host || is_empty(made) || (address_of(made) & (tensor.alignment - 1)) == 0;
    if (__builtin_expect(good, 1)) return read_address(&made, tensor, address);
    memory.drop();
  }
  // The general entry knows how to align it.
  return request.allocator == nullptr && align_output(tensor, request, shape, memory, address);
}

}  // namespace trunnion
