#include <trunnion/scalars.hpp>

namespace trunnion {

static void describe_text(Text& text, const TVMFFIAny& given) {
  TVMFFIByteArray bytes{given.v_c_str, 0};
  if (given.type_index == kTVMFFIRawStr) {
    bytes.size = std::strlen(given.v_c_str);
  } else {
    bytes = given.type_index == kTVMFFISmallStr ? TVMFFISmallBytesGetContentByteArray(&given)
                                                : *TVMFFIBytesGetByteArrayPtr(given.v_obj);
  }
  text << "str " << Name{bytes.data, static_cast<uint32_t>(bytes.size)};
}

// What an argument is: its type, and the value itself if that is short and harmless.
static void describe(Text& text, const TVMFFIAny& given) {
  switch (given.type_index) {
    case kTVMFFIInt:
      text << given.v_int64;
      return;
    case kTVMFFIBool:
      text << (given.v_int64 != 0 ? "bool 'True'" : "bool 'False'");
      return;
    case kTVMFFIFloat:
      text << "float '" << given.v_float64 << "'";
      return;
    case kTVMFFIDLTensorPtr:
    case kTVMFFITensor:
      text << "Tensor";
      return;
    case kTVMFFIRawStr:
    case kTVMFFISmallStr:
    case kTVMFFIStr:
      describe_text(text, given);
      return;
    case kBigInt:
      text << BigInt(given);
      return;
    default:
      describe_type(text, given);
  }
}

bool raise_no_integer(const TVMFFIAny& given, const Name& name, int64_t low, uint64_t high) {
  Text got;
  describe(got, given);
  if (given.type_index == kTVMFFIInt || given.type_index == kBigInt)
    return raise_integer_range(name, got, low, high);
  return is_tensor(given) ? raise_tensor_for_integer(name, got, low, high)
                          : raise_no_integer(name, got, low, high);
}

static bool raise_no_real(const TVMFFIAny& given, const Name& name, const char* type) {
  Text got;
  describe(got, given);
  return is_tensor(given) ? raise_tensor_for_real(name, got, type) : raise_no_real(name, got, type);
}

bool raise_no_boolean(const TVMFFIAny& given, const Name& name) {
  Text got;
  describe(got, given);
  return is_tensor(given) ? raise_tensor_for_boolean(name, got) : raise_no_boolean(name, got);
}

bool raise_beyond(double value, const Name& name, const char* type) {
  Text got;
  return raise_real_range(name, got << value, type);
}

// The 64 bits of an integer that TVM-FFI carries in another way than as 64 signed bits.
static bool read_wide(const TVMFFIAny& given, uint64_t& bits) {
  if (given.type_index == kTVMFFIOpaquePtr && given.v_uint64 >> 63 != 0) {
    bits = given.v_uint64;
    return true;
  }
  if (given.type_index != kBigInt) return false;
  const BigInt number(given);
  bits = number.words[0];
  return number.fits_unsigned();
}

bool read_odd_integer(const TVMFFIAny& given, const Name& name, int64_t low, uint64_t high, int64_t& value) {
  uint64_t bits = 0;
  if (high != UINT64_MAX || !read_wide(given, bits)) return raise_no_integer(given, name, low, high);
  value = static_cast<int64_t>(bits);
  return true;
}

bool read_odd_real(const TVMFFIAny& given, const Name& name, const char* type, double& value) {
  if (given.type_index != kBigInt) return raise_no_real(given, name, type);
  value = BigInt(given).real();
  if (value - value == 0) return true;
  Text got;
  describe(got, given);
  return raise_real_range(name, got, type);
}

bool view_bytes(const TVMFFIAny& given, TVMFFIByteArray& bytes) {
  switch (given.type_index) {
    case kTVMFFISmallBytes:
      bytes = TVMFFISmallBytesGetContentByteArray(&given);
      return true;
    case kTVMFFIBytes:
      bytes = *TVMFFIBytesGetByteArrayPtr(given.v_obj);
      return true;
    case kTVMFFIByteArrayPtr:
      bytes = *static_cast<const TVMFFIByteArray*>(given.v_ptr);
      return true;
    default:
      return false;
  }
}

TRUNNION_COLD static bool raise_address(const TVMFFIAny& given, const Name& name) {
  if (given.type_index == kTVMFFINone) return raise_no_address(name);
  if (!is_tensor(given)) return raise_no_integer(given, name, 0, UINT64_MAX);
  Text got;
  describe(got, given);
  return raise_tensor_for_address(name, got);
}

TRUNNION_COLD static bool raise_misplaced(uint64_t address, const Name& name, uint64_t alignment) {
  return address == 0 ? raise_null_address(name)
                      : raise_alignment(name, address, static_cast<int64_t>(alignment));
}

bool read_pointer(const TVMFFIAny& given, const Name& name, uint64_t alignment, bool nullable,
                  uint64_t& out) {
  out = given.v_uint64;
  const bool plain = given.type_index == kTVMFFIInt && given.v_int64 >= 0;
  if (!plain && given.type_index != kTVMFFIOpaquePtr) {
    if (given.type_index == kTVMFFINone && nullable) {
      out = 0;
      return true;
    }
    if (!read_wide(given, out)) return raise_address(given, name);
  }
  const bool placed = (out != 0 || nullable) && (out & (alignment - 1)) == 0;
  return TRUNNION_UNLIKELY(!placed) ? raise_misplaced(out, name, alignment) : true;
}

TRUNNION_COLD static bool raise_struct(const TVMFFIAny& given, const Name& name, uint64_t nbytes) {
  const auto wanted = static_cast<int64_t>(nbytes);
  TVMFFIByteArray bytes;
  if (view_bytes(given, bytes)) return raise_buffer_size(name, static_cast<int64_t>(bytes.size), wanted);
  Text got;
  describe(got, given);
  return raise_no_buffer(name, got, wanted);
}

bool read_struct(const TVMFFIAny& given, const Name& name, uint64_t nbytes, unsigned char* out) {
  TVMFFIByteArray bytes;
  if (!view_bytes(given, bytes) || bytes.size != nbytes) return raise_struct(given, name, nbytes);
  std::memcpy(out, bytes.data, nbytes);
  return true;
}

}  // namespace trunnion
