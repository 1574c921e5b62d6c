// Somebody else's TVM-FFI module: functions over the C ABI, for the tests of calling such things. It checks nothing.

#include <tvm/ffi/c_api.h>
#include <tvm/ffi/extra/c_env_api.h>

#include <cstdint>

#define TRUNNION_TEST_EXPORT extern "C" __attribute__((visibility("default"))) int

namespace {

const DLTensor* tensor(const TVMFFIAny& any) {
  return any.type_index == kTVMFFIDLTensorPtr ? static_cast<const DLTensor*>(any.v_ptr)
                                              : TVMFFITensorGetDLTensorPtr(any.v_obj);
}

template <typename T>
T* data(const TVMFFIAny& any) {
  const DLTensor* t = tensor(any);
  return reinterpret_cast<T*>(static_cast<char*>(t->data) + t->byte_offset);
}

int64_t stream_of(const DLTensor* t) {
  return reinterpret_cast<int64_t>(TVMFFIEnvGetStream(t->device.device_type, t->device.device_id));
}

void give(TVMFFIAny* result, int64_t value) {
  result->type_index = kTVMFFIInt;
  result->v_int64 = value;
}

int allocate_like(const DLTensor* prototype, TVMFFIAny* result) {
  TVMFFIObjectHandle made = nullptr;
  if (TVMFFIEnvTensorAlloc(const_cast<DLTensor*>(prototype), &made) != 0) return -1;
  result->type_index = kTVMFFITensor;
  result->zero_padding = 0;
  result->v_obj = static_cast<TVMFFIObject*>(made);
  return 0;
}

}  // namespace

// axpy(a, x, y, out): out = a * x + y.
TRUNNION_TEST_EXPORT __tvm_ffi_axpy(void*, const TVMFFIAny* args, int32_t, TVMFFIAny*) {
  const int64_t n = tensor(args[1])->shape[0];
  const float* x = data<float>(args[1]);
  const float* y = data<float>(args[2]);
  float* out = data<float>(args[3]);
  for (int64_t i = 0; i < n; ++i) out[i] = static_cast<float>(args[0].v_float64) * x[i] + y[i];
  return 0;
}

// split(low, x, high): low = the first half of x, high = the second; the input stands between the outputs.
TRUNNION_TEST_EXPORT __tvm_ffi_split(void*, const TVMFFIAny* args, int32_t, TVMFFIAny*) {
  const int64_t half = tensor(args[0])->shape[0];
  const float* x = data<float>(args[1]);
  for (int64_t i = 0; i < half; ++i) {
    data<float>(args[0])[i] = x[i];
    data<float>(args[2])[i] = x[half + i];
  }
  return 0;
}

// scale(x, by): x *= by, in place.
TRUNNION_TEST_EXPORT __tvm_ffi_scale(void*, const TVMFFIAny* args, int32_t, TVMFFIAny*) {
  const int64_t n = tensor(args[0])->shape[0];
  for (int64_t i = 0; i < n; ++i) data<float>(args[0])[i] *= static_cast<float>(args[1].v_int64);
  return 0;
}

// twice(x): returns 2 * x.
TRUNNION_TEST_EXPORT __tvm_ffi_twice(void*, const TVMFFIAny* args, int32_t, TVMFFIAny* result) {
  const DLTensor* x = tensor(args[0]);
  if (allocate_like(x, result) != 0) return -1;
  for (int64_t i = 0; i < x->shape[0]; ++i) data<float>(*result)[i] = 2 * data<float>(args[0])[i];
  return 0;
}

// both(x): returns an array of x and x.
TRUNNION_TEST_EXPORT __tvm_ffi_both(void*, const TVMFFIAny* args, int32_t, TVMFFIAny* result) {
  TVMFFIByteArray name{"ffi.Array", 9};
  TVMFFIObjectHandle make = nullptr;
  if (TVMFFIFunctionGetGlobal(&name, &make) != 0) return -1;
  const TVMFFIAny items[2] = {args[0], args[0]};
  const int status = TVMFFIFunctionCall(make, const_cast<TVMFFIAny*>(items), 2, result);
  TVMFFIObjectDecRef(make);
  return status;
}

// stream(x...): the stream that the function was called on, for the device of its first tensor.
TRUNNION_TEST_EXPORT __tvm_ffi_stream(void*, const TVMFFIAny* args, int32_t count, TVMFFIAny* result) {
  for (int32_t i = 0; i < count; ++i) {
    if (args[i].type_index == kTVMFFITensor || args[i].type_index == kTVMFFIDLTensorPtr) {
      give(result, stream_of(tensor(args[i])));
      return 0;
    }
  }
  give(result, -1);
  return 0;
}

// note_stream(x, out): out[0] = the stream, out[1] = device type, out[2] = ordinal.
TRUNNION_TEST_EXPORT __tvm_ffi_note_stream(void*, const TVMFFIAny* args, int32_t, TVMFFIAny*) {
  const DLTensor* x = tensor(args[0]);
  int64_t* out = data<int64_t>(args[1]);
  out[0] = stream_of(x);
  out[1] = x->device.device_type;
  out[2] = x->device.device_id;
  return 0;
}

// env_stream(type, ordinal): the stream of a device.
TRUNNION_TEST_EXPORT __tvm_ffi_env_stream(void*, const TVMFFIAny* args, int32_t, TVMFFIAny* result) {
  give(result, reinterpret_cast<int64_t>(TVMFFIEnvGetStream(static_cast<int32_t>(args[0].v_int64),
                                                            static_cast<int32_t>(args[1].v_int64))));
  return 0;
}

// kinds(out, ...): for each further argument its type index and its 64 bits.
TRUNNION_TEST_EXPORT __tvm_ffi_kinds(void*, const TVMFFIAny* args, int32_t count, TVMFFIAny*) {
  int64_t* out = data<int64_t>(args[0]);
  for (int32_t i = 1; i < count; ++i) {
    out[2 * i - 2] = args[i].type_index;
    out[2 * i - 1] = args[i].v_int64;
  }
  return 0;
}

// dims(x, out): out = rank, then extents, then strides, then the address modulo 4096.
TRUNNION_TEST_EXPORT __tvm_ffi_dims(void*, const TVMFFIAny* args, int32_t, TVMFFIAny*) {
  const DLTensor* x = tensor(args[0]);
  int64_t* out = data<int64_t>(args[1]);
  *out++ = x->ndim;
  for (int32_t i = 0; i < x->ndim; ++i) *out++ = x->shape[i];
  for (int32_t i = 0; i < x->ndim; ++i) *out++ = x->strides ? x->strides[i] : -1;
  return 0;
}

// refuse(...): raises ValueError.
TRUNNION_TEST_EXPORT __tvm_ffi_refuse(void*, const TVMFFIAny*, int32_t, TVMFFIAny*) {
  TVMFFIErrorSetRaisedFromCStr("ValueError", "the foreign function does not like that");
  return -1;
}

// nothing(...): does nothing.
TRUNNION_TEST_EXPORT __tvm_ffi_nothing(void*, const TVMFFIAny*, int32_t, TVMFFIAny*) { return 0; }

// seven(): returns 7.
TRUNNION_TEST_EXPORT __tvm_ffi_seven(void*, const TVMFFIAny*, int32_t, TVMFFIAny* result) {
  give(result, 7);
  return 0;
}
