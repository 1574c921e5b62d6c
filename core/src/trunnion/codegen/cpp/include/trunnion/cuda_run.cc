#include <trunnion/cuda_run.hpp>

namespace trunnion {

bool wait_for(const Driver& driver, CUstream stream, bool fired) {
  bool capturing = false;
  if (!is_capturing(driver, stream, capturing)) return false;
  const CUresult status = capturing ? CUDA_SUCCESS : driver.stream_synchronize(stream);
  if (!fired || status == CUDA_SUCCESS) return fired;
  return raise_driver(driver, "cuStreamSynchronize", status, &stream);
}

int preload(Program& program, const TVMFFIAny* given, int32_t count, TVMFFIAny* result) {
  constexpr Name kDevice{"device", 6};
  if (count != 1) return raise_count(count, &kDevice, 1), -1;
  if (given[0].type_index != kTVMFFIInt) return raise_trailing("device", given[0], "an ordinal"), -1;
  const Flight flight(program);
  if (!flight || !program.load()) return -1;
  const int64_t ordinal = given[0].v_int64;
  if (ordinal < 0 || ordinal >= program.device_count())
    return raise_ordinal(ordinal, program.device_count()), -1;
  const auto device = static_cast<int32_t>(ordinal);
  DeviceState* state = program.device(device, nullptr);
  if (state == nullptr || !set_known_aside(program, *state, device)) return -1;
  return give_nothing(result), 0;
}

}  // namespace trunnion
