// Raises the error of the row of a number, with the fields that the table says.
#include <trunnion/decimal.cc>
#include <trunnion/errors.cc>
#include <trunnion/refusals.cc>
#include <trunnion/text.cc>

using namespace trunnion;

extern "C" __attribute__((visibility("default"))) int __tvm_ffi_refuse(void*, const TVMFFIAny* given, int32_t,
                                                                       TVMFFIAny*) {
  switch (given[0].v_int64) {
    default:
      return 0;
#include "table.inc"
  }
}
