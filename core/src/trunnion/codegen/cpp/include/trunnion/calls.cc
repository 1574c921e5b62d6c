#include <trunnion/calls.hpp>
#include <trunnion/scalars.hpp>

namespace trunnion {

bool raise_count(int32_t given, const Name* names, int32_t count) {
  Text got, expected;
  got << given << " arguments";
  expected << count << " (";
  for (int32_t index = 0; index < count; ++index) expected << (index != 0 ? ", " : "") << names[index];
  return raise_argument_type(Name{"", 0}, got, expected << (count != 0 ? ")" : "none)"));
}

bool raise_trailing(const char* argument, const TVMFFIAny& given, const char* wanted) {
  Text got, expected;
  describe_type(got, given);
  if (given.type_index == kTVMFFIInt) got << " " << given.v_int64;
  const Name name{argument, static_cast<uint32_t>(std::strlen(argument))};
  return raise_argument_type(name, got, expected << wanted);
}

bool raise_no_device() {
  Text requirement, got;
  return raise_requirement(requirement << "a device", got << "a call with no tensor", "pass device=");
}

bool raise_ordinal(int64_t got, int32_t count) {
  Text found, expected;
  const Name name{"device", 6};
  return raise_argument_value(name, found << got, expected << "an integer, 0 to " << count - 1);
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
