#include <trunnion/tensors.hpp>
#include <trunnion/views.hpp>

namespace trunnion {

void describe_type(Text& text, const TVMFFIAny& given) {
  switch (given.type_index) {
    case kTVMFFINone:
      text << "NoneType";
      return;
    case kTVMFFIInt:
      text << "int";
      return;
    case kTVMFFIBool:
      text << "bool";
      return;
    case kTVMFFIFloat:
      text << "float";
      return;
    case kTVMFFIOpaquePtr:
      text << "c_void_p";
      return;
    case kTVMFFIDLTensorPtr:
    case kTVMFFITensor:
      text << "a tensor";
      return;
    case kTVMFFIRawStr:
    case kTVMFFISmallStr:
    case kTVMFFIStr:
      text << "str";
      return;
    case kTVMFFIByteArrayPtr:
    case kTVMFFISmallBytes:
    case kTVMFFIBytes:
      text << "bytes";
      return;
    default:
      break;
  }
  const TVMFFITypeInfo* info = TVMFFIGetTypeInfo(given.type_index);
  if (info == nullptr) {
    text << "an object of type " << given.type_index;
    return;
  }
  text.append(info->type_key.data, info->type_key.size);
}

void describe_dtype(Text& text, DLDataType dtype) {
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
  Text got, expected;
  describe_type(got, given);
  expected << "a tensor";
  // An output that is given cannot be declared so.
  if (given.type_index == kTVMFFINone && rule.name.place == nullptr)
    expected << "; a parameter that is declared nullable=True takes None";
  return raise_argument_type(rule.name, got, expected);
}

bool raise_dtype(const DLTensor& tensor, const TensorRule& rule) {
  Text got, expected;
  describe_dtype(got << "a tensor of ", tensor.dtype);
  return raise_argument_type(rule.name, got, expected << "one of " << rule.dtype_name);
}

bool raise_rank(const DLTensor& tensor, const TensorRule& rule) {
  constexpr int32_t kMostShown = 64;  // no tensor library has tensors of more
  Text got, expected;
  got << tensor.ndim << " dimensions";
  if (tensor.ndim <= kMostShown) describe_numbers(got << ", shape ", tensor.shape, tensor.ndim);
  return raise_argument_value(rule.name, got, expected << rule.rank << " dimensions");
}

bool raise_place(const DLTensor& tensor, const TensorRule& rule, const Place& place) {
  Text got, expected;
  if (tensor.device.device_type != place.kind) {
    describe_device(got << "a tensor on ", tensor.device);
    const bool cuda = place.kind == kDLCUDA;
    expected << (cuda ? "a tensor on a CUDA device" : "a tensor on the CPU");
    if (tensor.device.device_type == (cuda ? kDLCPU : kDLCUDA))
      expected << (cuda ? "; call .to('cuda')" : "; call .cpu()");
  } else {
    got << "a tensor on device " << tensor.device.device_id;
    expected << "device " << place.device << ", where " << *place.first << " lies";
  }
  return raise_argument_value(rule.name, got, expected);
}

bool raise_layout(const DLTensor& tensor, const TensorRule& rule) {
  Text got, expected;
  describe_numbers(got << "strides ", tensor.strides, tensor.ndim);
  describe_numbers(got << " for shape ", tensor.shape, tensor.ndim);
  // What .contiguous() returns of a tensor to write into would be written, and lost.
  expected << "a contiguous row-major tensor"
           << (rule.name.place == nullptr ? "; call .contiguous()"
                                          : " to write into: allocate one, and copy from it");
  return raise_argument_value(rule.name, got, expected);
}

bool raise_address(uint64_t address, const TensorRule& rule) {
  Text got, expected;
  if (address == 0) {
    return raise_argument_type(rule.name, got << "a tensor with a null address",
                               expected << "a tensor in memory");
  }
  (got << "address ").hexadecimal(address);
  return raise_argument_value(rule.name, got, expected << "a multiple of " << rule.alignment << " bytes");
}

void equation(Text& text, int64_t expected, const Name& author) {
  Text number;
  number << expected;
  text << number;
  const bool same = author.size == number.size() && std::memcmp(author.text, number.data(), author.size) == 0;
  if (!same) (text << " (").append(author.text, author.size) << ")";
}

bool raise_unequal(const Name& argument, const char* word, int32_t axis, int64_t got, int64_t expected,
                   const Name& author) {
  Text found, wanted;
  found << word << " " << got << " along dimension " << axis;
  equation(wanted, expected, author);
  return raise_argument_value(argument, found, wanted);
}

bool raise_condition(const Name& message) {
  Text got, expected;
  expected.append(message.text, message.size);
  return raise_argument_value(Name{"", 0}, got << "arguments that fail the program's check", expected);
}

bool raise_negative(const Name& memory, int32_t axis, int64_t got) {
  Text found, wanted;
  found << "extent " << got << " along dimension " << axis;
  return raise_argument_value(memory, found, wanted << "at least 0");
}

bool raise_view(const Name& memory, int32_t axis, int64_t got) {
  Text found, wanted;
  found << "extent " << got << " along dimension " << axis;
  wanted << "-2147483648 to 2147483647: a view passes it as int32";
  return raise_argument_value(memory, found, wanted);
}

bool raise_absent(const Name& tensor, const char* reader) {
  Text got, expected;
  return raise_argument_type(tensor, got << "None",
                             expected << "a tensor: " << reader << " reads it in this call");
}

}  // namespace trunnion
