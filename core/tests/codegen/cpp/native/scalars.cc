// One function for each kind of argument that is no tensor: gives back the bytes that it became.
#include <trunnion/big_integer.cc>
#include <trunnion/decimal.cc>
#include <trunnion/errors.cc>
#include <trunnion/numbers.cc>
#include <trunnion/scalars.cc>
#include <trunnion/scalars.hpp>
#include <trunnion/tensors.cc>
#include <trunnion/text.cc>

using namespace trunnion;

static constexpr Name kName{"it's", 4};

static int answer(const void* data, uint64_t size, TVMFFIAny* result) {
  TVMFFIByteArray bytes{static_cast<const char*>(data), size};
  TVMFFIAny view{};
  view.type_index = kTVMFFIByteArrayPtr;
  view.v_ptr = &bytes;
  return TVMFFIAnyViewToOwnedAny(&view, result);
}

template <typename Rule, typename Value>
static int read_scalar(const TVMFFIAny* given, TVMFFIAny* result) {
  Value value{};
  if (!Scalar<Rule>::read(given[0], kName, value)) return -1;
  return answer(&value, sizeof value, result);
}

#define FUNCTION(name) \
  extern "C" __attribute__((visibility("default"))) int __tvm_ffi_##name( \
      void*, [[maybe_unused]] const TVMFFIAny* given, int32_t, TVMFFIAny* result)
#define INTEGER(name) \
  FUNCTION(name) { return read_scalar<scalar::name, int64_t>(given, result); }
#define OTHER(name) \
  FUNCTION(name) { return read_scalar<scalar::name, scalar::name::Bits>(given, result); }

INTEGER(int8)
INTEGER(int16)
INTEGER(int32)
INTEGER(int64)
INTEGER(uint8)
INTEGER(uint16)
INTEGER(uint32)
INTEGER(uint64)
OTHER(boolean)
OTHER(float16)
OTHER(bfloat16)
OTHER(float32)
OTHER(float64)
OTHER(float8_e4m3fn)
OTHER(float8_e4m3fnuz)
OTHER(float8_e5m2)
OTHER(float8_e5m2fnuz)
OTHER(float8_e8m0fnu)
OTHER(complex32)
OTHER(complex64)
OTHER(complex128)

// Behind the argument: the alignment, and whether it may be null.
FUNCTION(address) {
  uint64_t value = 0;
  const uint64_t alignment = given[1].v_uint64;
  if (!read_pointer(given[0], kName, alignment, given[2].v_int64 != 0, value)) return -1;
  return answer(&value, sizeof value, result);
}

// Behind the argument: the number of bytes.
FUNCTION(bytes) {
  unsigned char value[256];
  const uint64_t nbytes = given[1].v_uint64;
  return read_struct(given[0], kName, nbytes, value) ? answer(value, nbytes, result) : -1;
}
