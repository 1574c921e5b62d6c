// Raises an error about an argument of the given name.
#include <trunnion/big_integer.cc>
#include <trunnion/decimal.cc>
#include <trunnion/errors.cc>
#include <trunnion/numbers.cc>
#include <trunnion/refusals.cc>
#include <trunnion/scalars.cc>
#include <trunnion/scalars.hpp>
#include <trunnion/text.cc>

using namespace trunnion;

extern "C" __attribute__((visibility("default"))) int __tvm_ffi_refuse(void*, const TVMFFIAny* given, int32_t,
                                                                       TVMFFIAny*) {
  Text got;
  TVMFFIByteArray name{};
  view_bytes(given[0], name);
  got.append(name.data, name.size);
  raise_real_range(Name{name.data, static_cast<uint32_t>(name.size)}, got, "\\");
  return -1;
}
