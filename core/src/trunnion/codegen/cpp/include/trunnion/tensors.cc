#include <trunnion/tensors.hpp>
#include <trunnion/views.hpp>

namespace trunnion {

struct KnownType {
  int32_t index;
  const char* name;
};

static constexpr KnownType kKnownTypes[] = {
    {kTVMFFINone, "NoneType"},      {kTVMFFIInt, "int"},
    {kTVMFFIBool, "bool"},          {kTVMFFIFloat, "float"},
    {kTVMFFIOpaquePtr, "c_void_p"}, {kTVMFFIDLTensorPtr, "a tensor"},
    {kTVMFFITensor, "a tensor"},    {kTVMFFIRawStr, "str"},
    {kTVMFFISmallStr, "str"},       {kTVMFFIStr, "str"},
    {kTVMFFIByteArrayPtr, "bytes"}, {kTVMFFISmallBytes, "bytes"},
    {kTVMFFIBytes, "bytes"},
};

void describe_type(Text& text, const TVMFFIAny& given) {
  for (const KnownType& known : kKnownTypes) {
    if (known.index != given.type_index) continue;
    text << known.name;
    return;
  }
  const TVMFFITypeInfo* info = TVMFFIGetTypeInfo(given.type_index);
  if (info == nullptr) {
    text << "an object of type " << given.type_index;
    return;
  }
  text.append(info->type_key.data, info->type_key.size);
}

static void describe_dtype(Text& text, DLDataType dtype) {
  static constexpr const char* kNames[] = {"int",
                                           "uint",
                                           "float",
                                           "handle",
                                           "bfloat",
                                           "complex",
                                           "bool",
                                           "float8_e3m4",
                                           "float8_e4m3",
                                           "float8_e4m3b11fnuz",
                                           "float8_e4m3fn",
                                           "float8_e4m3fnuz",
                                           "float8_e5m2",
                                           "float8_e5m2fnuz",
                                           "float8_e8m0fnu",
                                           "float6_e2m3fn",
                                           "float6_e3m2fn",
                                           "float4_e2m1fn"};
  const bool known = dtype.code < sizeof kNames / sizeof *kNames;
  if (known) text << kNames[dtype.code];
  if (!known) text << "type code " << static_cast<int>(dtype.code) << " of bits ";
  if (!known || dtype.code < kDLBool) text << static_cast<int>(dtype.bits);
  if (dtype.lanes != 1) text << "x" << static_cast<int>(dtype.lanes);
}

void describe_device(Text& text, DLDevice device) {
  if (device.device_type == kDLCPU) {
    text << "cpu";
  } else if (device.device_type == kDLCUDA) {
    text << "cuda:" << device.device_id;
  } else {
    text << "DLPack device type " << static_cast<int>(device.device_type);
  }
}

bool raise_no_tensor(const TVMFFIAny& given, const TensorRule& rule) {
  // An output that is given cannot be declared nullable.
  if (given.type_index == kTVMFFINone && rule.name.place == nullptr)
    return raise_no_tensor_but_none(rule.name);
  Text got;
  describe_type(got, given);
  return raise_no_tensor(rule.name, got);
}

bool raise_dtype(const DLTensor& tensor, const TensorRule& rule) {
  Text got;
  describe_dtype(got, tensor.dtype);
  return raise_dtype(rule.name, got, rule.dtype_name);
}

bool raise_rank(const DLTensor& tensor, const TensorRule& rule) {
  constexpr int32_t kMostShown = 64;  // no tensor library has tensors of more
  return tensor.ndim <= kMostShown ? raise_rank(rule.name, tensor.ndim, rule.rank, tensor.shape, tensor.ndim)
                                   : raise_long_rank(rule.name, tensor.ndim, rule.rank);
}

bool raise_place(const DLTensor& tensor, const TensorRule& rule, const Place& place) {
  if (tensor.device.device_type == place.kind)
    return raise_other_device(rule.name, tensor.device.device_id, place.device, *place.first);
  Text there;
  describe_device(there, tensor.device);
  const bool cpu = tensor.device.device_type == kDLCPU, cuda = tensor.device.device_type == kDLCUDA;
  if (place.kind == kDLCUDA)
    return cpu ? raise_not_on_cuda_but_cpu(rule.name, there) : raise_not_on_cuda(rule.name, there);
  return cuda ? raise_not_on_cpu_but_cuda(rule.name, there) : raise_not_on_cpu(rule.name, there);
}

bool raise_layout(const DLTensor& tensor, const TensorRule& rule) {
  // What .contiguous() returns of a tensor to write into would be written, and lost.
  if (rule.name.place == nullptr)
    return raise_layout(rule.name, tensor.strides, tensor.ndim, tensor.shape, tensor.ndim);
  return raise_destination(rule.name, tensor.strides, tensor.ndim, tensor.shape, tensor.ndim);
}

bool raise_address(uint64_t address, const TensorRule& rule) {
  return address == 0 ? raise_null_tensor(rule.name)
                      : raise_alignment(rule.name, address, static_cast<int64_t>(rule.alignment));
}

}  // namespace trunnion
