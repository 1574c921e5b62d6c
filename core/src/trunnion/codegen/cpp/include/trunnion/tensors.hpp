// What a call passes for its tensors, and the checks of each.
#pragma once

#include <dlpack/dlpack.h>

#include <trunnion/refusals.hpp>

namespace trunnion {

struct TensorRule {
  Name name;
  DLDataType dtype;
  const char* dtype_name;
  int32_t rank;
  uint64_t alignment;  // bytes
  bool nullable;
};

// What Python calls the type of an argument.
void describe_type(Text& text, const TVMFFIAny& given);

void describe_device(Text& text, DLDevice device);

// Structure -----------------------------------------------------------------------------------------------------------

bool raise_no_tensor(const TVMFFIAny& given, const TensorRule& rule);

bool raise_dtype(const DLTensor& tensor, const TensorRule& rule);

bool raise_rank(const DLTensor& tensor, const TensorRule& rule);

inline bool same_dtype(DLDataType one, DLDataType other) {
  return one.code == other.code && one.bits == other.bits && one.lanes == other.lanes;
}

// Read a tensor and check its type and rank; null for one that the call leaves out.
inline bool read_tensor(const TVMFFIAny& given, const TensorRule& rule, const DLTensor*& tensor) {
  if (given.type_index == kTVMFFIDLTensorPtr) {
    tensor = static_cast<const DLTensor*>(given.v_ptr);
  } else if (given.type_index == kTVMFFITensor) {
    tensor = TVMFFITensorGetDLTensorPtr(given.v_obj);
  } else {
    tensor = nullptr;
    return rule.nullable && given.type_index == kTVMFFINone ? true : raise_no_tensor(given, rule);
  }
  if TRUNNION_UNLIKELY (!same_dtype(tensor->dtype, rule.dtype)) return raise_dtype(*tensor, rule);
  if TRUNNION_UNLIKELY (tensor->ndim != rule.rank) return raise_rank(*tensor, rule);
  for (int32_t axis = 0; axis < rule.rank; ++axis) {
    if TRUNNION_UNLIKELY (tensor->shape[axis] < 0)
      return raise_negative(rule.name, axis, tensor->shape[axis]);
  }
  return true;
}

// Devices -------------------------------------------------------------------------------------------------------------

// Where a call runs: where its first tensor lies.
struct Place {
  DLDeviceType kind;
  int32_t device = -1;
  const Name* first = nullptr;
};

bool raise_place(const DLTensor& tensor, const TensorRule& rule, const Place& place);

inline bool check_place(const DLTensor* tensor, const TensorRule& rule, Place& place) {
  if (tensor == nullptr) return true;
  if TRUNNION_UNLIKELY (tensor->device.device_type != place.kind) return raise_place(*tensor, rule, place);
  if (place.first == nullptr) {
    place.first = &rule.name;
    place.device = place.kind == kDLCPU ? 0 : tensor->device.device_id;
    return true;
  }
  const bool same = place.kind == kDLCPU || tensor->device.device_id == place.device;
  return same ? true : raise_place(*tensor, rule, place);
}

// Layout and address --------------------------------------------------------------------------------------------------

inline bool is_empty(const DLTensor& tensor) {
  for (int32_t axis = 0; axis < tensor.ndim; ++axis) {
    if (tensor.shape[axis] == 0) return true;
  }
  return false;
}

// Elements between neighbours; a producer may leave the strides of a contiguous tensor out.
inline int64_t stride_of(const DLTensor& tensor, int32_t axis) {
  if (tensor.strides != nullptr) return tensor.strides[axis];
  uint64_t stride = 1;  // unsigned: nobody promised that the elements can be counted in 64 bits
  for (int32_t inner = tensor.ndim - 1; inner > axis; --inner)
    stride *= tensor.shape[inner] > 0 ? static_cast<uint64_t>(tensor.shape[inner]) : 1;
  return static_cast<int64_t>(stride);
}

inline bool is_contiguous(const DLTensor& tensor) {
  if (tensor.strides == nullptr) return true;
  uint64_t expected = 1;  // as above
  for (int32_t axis = tensor.ndim - 1; axis >= 0; --axis) {
    const int64_t extent = tensor.shape[axis];
    if (extent != 1 && static_cast<uint64_t>(tensor.strides[axis]) != expected) return is_empty(tensor);
    expected *= static_cast<uint64_t>(extent);
  }
  return true;
}

bool raise_layout(const DLTensor& tensor, const TensorRule& rule);

inline bool check_layout(const DLTensor* tensor, const TensorRule& rule) {
  return tensor == nullptr || is_contiguous(*tensor) ? true : raise_layout(*tensor, rule);
}

bool raise_address(uint64_t address, const TensorRule& rule);

inline uint64_t address_of(const DLTensor& tensor) {
  return reinterpret_cast<uint64_t>(tensor.data) + tensor.byte_offset;
}

// The first multiple of an alignment, a power of two, from an address on.
inline uint64_t aligned_up(uint64_t address, uint64_t alignment) {
  return (address + alignment - 1) & ~(alignment - 1);
}

// Take a tensor's address; of a tensor without elements it may be any, of one that is left out it is 0.
inline bool read_address(const DLTensor* tensor, const TensorRule& rule, uint64_t& address) {
  address = tensor == nullptr ? 0 : address_of(*tensor);
  const bool good = address != 0 && (address & (rule.alignment - 1)) == 0;
  if (__builtin_expect(good, 1) || tensor == nullptr || is_empty(*tensor)) return true;
  return raise_address(address, rule);
}

}  // namespace trunnion
