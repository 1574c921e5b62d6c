#include <trunnion/calls.hpp>
#include <trunnion/scalars.hpp>

namespace trunnion {

bool raise_trailing(const char* argument, const TVMFFIAny& given, const char* wanted) {
  Text got;
  describe_type(got, given);
  if (given.type_index == kTVMFFIInt) got << " " << given.v_int64;
  return raise_word(Name{argument, static_cast<uint32_t>(std::strlen(argument))}, got, wanted);
}

bool raise_ordinal(int64_t got, int32_t count) {
  Text found;
  return raise_integer_range(Name{"device", 6}, found << got, 0, count - 1);
}

bool raise_no_ordinal(const TVMFFIAny& given, const char* wanted) {
  if (given.type_index != kTVMFFIInt && given.type_index != kBigInt)
    return raise_trailing("device", given, wanted);
  return raise_no_integer(given, Name{"device", 6}, 0, INT32_MAX);
}

bool give_array(const TVMFFIAny* views, int32_t count, TVMFFIAny* result) {
  static constexpr TVMFFIByteArray kMaker{"ffi.Array", 9};
  Held maker;
  if (TVMFFIFunctionGetGlobal(&kMaker, maker.out()) != 0) return false;
  give_nothing(result);
  return TVMFFIFunctionCall(maker.get(), const_cast<TVMFFIAny*>(views), count, result) == 0;
}

}  // namespace trunnion
