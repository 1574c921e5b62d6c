// One function for each kind of argument that is no tensor: gives back the bytes that it became.
#include <trunnion/big_integer.cc>
#include <trunnion/decimal.cc>
#include <trunnion/errors.cc>
#include <trunnion/numbers.cc>
#include <trunnion/refusals.cc>
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

template <typename Value, typename Read>
static int answer_read(const Read& read, TVMFFIAny* result) {
  Value value{};
  return read(value) ? answer(&value, sizeof value, result) : -1;
}

#define FUNCTION(name) \
  extern "C" __attribute__((visibility("default"))) int __tvm_ffi_##name( \
      void*, [[maybe_unused]] const TVMFFIAny* given, int32_t, TVMFFIAny* result)
#define INTEGER(name) \
  FUNCTION(name) { \
    const auto read = [&](int64_t& value) { return Integer<name##_t>::read(given[0], kName, value); }; \
    return answer_read<int64_t>(read, result); \
  }
#define READ(name, Stored, ...) \
  FUNCTION(name) { \
    const auto read = [&](Stored& value) { return __VA_ARGS__; }; \
    return answer_read<Stored>(read, result); \
  }

INTEGER(int8)
INTEGER(int16)
INTEGER(int32)
INTEGER(int64)
INTEGER(uint8)
INTEGER(uint16)
INTEGER(uint32)
INTEGER(uint64)
READ(boolean, bool, read_boolean(given[0], kName, value))

// The float and complex types of the model, with what launchers write for them.
#include "table.inc"

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
