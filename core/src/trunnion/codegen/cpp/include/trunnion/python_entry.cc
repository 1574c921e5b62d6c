#include <trunnion/python_entry.hpp>

namespace trunnion {

int offer_entry(PythonEntry& entry, void* (*function)(void*, void* const*, intptr_t), const TVMFFIAny* given,
                int32_t count, TVMFFIAny* result) {
  constexpr Name kNames[] = {{"exchange", 8}, {"tensor_type", 11}, {"general", 7}, {"failed", 6}};
  if (count != 4) return raise_count(count, kNames, 4), -1;
  for (int32_t index = 0; index < 4; ++index) {
    if (given[index].type_index != kTVMFFIInt)
      return raise_trailing(kNames[index].text, given[index], "an address"), -1;
  }
  give_nothing(result);
  result->type_index = kTVMFFIInt;
  if (!entry.python.find()) return 0;
  entry.exchange = static_cast<const DLPackExchangeAPI*>(given[0].v_ptr);
  entry.tensor_type = given[1].v_ptr;
  entry.general = given[2].v_ptr;
  entry.failed = given[3].v_ptr;
  entry.method = {"entry", function, kFastCall, nullptr};
  const bool whole = entry.exchange->header.version.major == DLPACK_MAJOR_VERSION &&
                     entry.exchange->dltensor_from_py_object_no_sync != nullptr &&
                     entry.exchange->current_work_stream != nullptr;
  if (whole) result->v_ptr = &entry.method;
  return 0;
}

}  // namespace trunnion
