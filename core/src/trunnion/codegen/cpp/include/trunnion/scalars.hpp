// The numbers, addresses and bytes of a call: each checked and converted as the Python launcher does.
//
// TVM-FFI carries an integer as 64 signed bits. One beyond them comes as a BigInt, where TVM-FFI has those, or as an
// opaque pointer with the same bits; a negative integer is never taken for a great one. A complex number comes as two
// doubles in 16 bytes.
#pragma once

#include <trunnion/big_integer.hpp>
#include <trunnion/numbers.hpp>
#include <trunnion/tensors.hpp>

namespace trunnion {

// Refusals ------------------------------------------------------------------------------------------------------------

inline bool is_tensor(const TVMFFIAny& given) {
  return given.type_index == kTVMFFITensor || given.type_index == kTVMFFIDLTensorPtr;
}

// An argument that is no such number; a tensor never is, not even one without dimensions.
bool raise_no_integer(const TVMFFIAny& given, const Name& name, int64_t low, uint64_t high);

bool raise_no_boolean(const TVMFFIAny& given, const Name& name);

bool raise_beyond(double value, const Name& name, const char* type);

// Integers ------------------------------------------------------------------------------------------------------------

bool read_odd_integer(const TVMFFIAny& given, const Name& name, int64_t low, uint64_t high, int64_t& value);

// Floats --------------------------------------------------------------------------------------------------------------

bool read_odd_real(const TVMFFIAny& given, const Name& name, const char* type, double& value);

inline bool read_real(const TVMFFIAny& given, const Name& name, const char* type, double& value) {
  if (given.type_index == kTVMFFIFloat) {
    value = given.v_float64;
    return true;
  }
  if (given.type_index == kTVMFFIInt) {
    value = static_cast<double>(given.v_int64);
    return true;
  }
  return read_odd_real(given, name, type, value);
}

// Round a double to a type; the overloads say how.
inline bool round_to(double value, const FloatFormat*, double& out) {
  out = value;
  return true;
}

inline bool round_to(double value, const FloatFormat*, float& out) { return narrow_float(value, out); }

template <typename Unsigned>
bool round_to(double value, const FloatFormat* format, Unsigned& out) {
  uint32_t bits = 0;
  const bool held = encode_float(value, *format, bits);
  out = static_cast<Unsigned>(bits);
  return held;
}

template <typename Part>
bool read_float(const TVMFFIAny& given, const Name& name, const char* type, const FloatFormat* format,
                Part& out) {
  double value;
  if (!read_real(given, name, type, value)) return false;
  return TRUNNION_UNLIKELY(!round_to(value, format, out)) ? raise_beyond(value, name, type) : true;
}

// Bytes ---------------------------------------------------------------------------------------------------------------

bool view_bytes(const TVMFFIAny& given, TVMFFIByteArray& bytes);

// A complex number in memory.
template <typename Part>
struct Complex {
  Part real;
  Part imag;
};

template <typename Part>
bool read_complex(const TVMFFIAny& given, const Name& name, const char* type, const FloatFormat* format,
                  Complex<Part>& out) {
  double parts[2] = {0.0, 0.0};
  TVMFFIByteArray bytes;
  if (view_bytes(given, bytes) && bytes.size == sizeof parts) {
    std::memcpy(parts, bytes.data, sizeof parts);
  } else if (!read_real(given, name, type, parts[0])) {
    return false;
  }
  if (!round_to(parts[0], format, out.real)) return raise_beyond(parts[0], name, type);
  return round_to(parts[1], format, out.imag) ? true : raise_beyond(parts[1], name, type);
}

// Integers and booleans -----------------------------------------------------------------------------------------------

// An integer is read as 64 bits whatever its type, because expressions compute with those.
template <typename Stored>
struct Integer {
  static constexpr bool kSigned = static_cast<Stored>(-1) < static_cast<Stored>(0);
  static constexpr uint64_t kHigh = UINT64_MAX >> (64 - 8 * sizeof(Stored) + (kSigned ? 1 : 0));
  static constexpr int64_t kLow = kSigned ? -static_cast<int64_t>(kHigh) - 1 : 0;

  static bool read(const TVMFFIAny& given, const Name& name, int64_t& out) {
    out = given.v_int64;
    const bool held = out >= kLow && (out < 0 || static_cast<uint64_t>(out) <= kHigh);
    if (TRUNNION_UNLIKELY(given.type_index != kTVMFFIInt || !held)) {
      return read_odd_integer(given, name, kLow, kHigh, out);
    }
    return true;
  }
};

inline bool read_boolean(const TVMFFIAny& given, const Name& name, bool& out) {
  out = given.v_int64 != 0;
  return given.type_index == kTVMFFIBool ? true : raise_no_boolean(given, name);
}

// Addresses -----------------------------------------------------------------------------------------------------------

// An address: an integer or an opaque pointer; None for null, where that is allowed. The alignment is a power of two.
bool read_pointer(const TVMFFIAny& given, const Name& name, uint64_t alignment, bool nullable, uint64_t& out);

// Structs -------------------------------------------------------------------------------------------------------------

// A copy of a struct's bytes.
bool read_struct(const TVMFFIAny& given, const Name& name, uint64_t nbytes, unsigned char* out);

}  // namespace trunnion
