#include <trunnion/l2_persisting.hpp>

namespace trunnion {

bool raise_kept(int64_t number) {
  Text text, message;
  text << number;
  return Raising("RuntimeError", "Kept")
      .field(text)
      .with(message << "no cache could be set aside for an access-policy window");
}

bool read_most_persisting(const Driver& driver, int32_t ordinal, int64_t& most) {
  CUdevice device = 0;
  int value = 0;
  if (!get_device(driver, ordinal, device) ||
      !read_attribute(driver, device, CU_DEVICE_ATTRIBUTE_MAX_PERSISTING_L2_CACHE_SIZE, value))
    return false;
  most = value;
  return true;
}

static void remember_asked(DeviceState& state, int64_t nbytes) {
  uint64_t before = __atomic_load_n(&state.set_aside, __ATOMIC_RELAXED);
  const uint64_t asked = static_cast<uint64_t>(nbytes);
  while (before < asked && !__atomic_compare_exchange_n(&state.set_aside, &before, asked, false,
                                                        __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
  }
}

bool set_known_aside(const Program& program, DeviceState& state, int32_t device) {
  if (program.hook() == nullptr) return true;
  int64_t most_persisting = 0, asked = 0;
  if (!read_most_persisting(program.driver(), device, most_persisting)) return false;
  const TVMFFIAny question[] = {to_any("preload"), to_any(device), to_any(state.most_window_bytes),
                                to_any(most_persisting)};
  if (!ask(program, question, asked)) return false;
  remember_asked(state, asked);
  return true;
}

bool set_more_aside(const Site& site, uint32_t kernel, int64_t nbytes) {
  const Program& program = site.program;
  bool capturing = false;
  if (!is_capturing(program.driver(), site.stream, capturing)) return false;
  int64_t most_persisting = 0, asked = 0;
  if (capturing) {
    const uint64_t before = __atomic_load_n(&site.state.set_aside, __ATOMIC_RELAXED);
    const TVMFFIAny question[] = {to_any("captured"), to_any(site.device), to_any(nbytes),
                                  to_any(static_cast<int64_t>(before)), to_any(program.symbol(kernel))};
    return ask(program, question, asked);
  }
  if (!read_most_persisting(program.driver(), site.device, most_persisting)) return false;
  const TVMFFIAny question[] = {to_any("launch"), to_any(site.device), to_any(nbytes),
                                to_any(most_persisting)};
  if (!ask(program, question, asked)) return false;
  remember_asked(site.state, asked);
  return true;
}

static bool reach_device(Program& program, const TVMFFIAny& device, Entered& entered) {
  if (device.type_index != kTVMFFIInt) return raise_trailing("device", device, "an ordinal");
  if (!program.is_reachable()) return false;
  if (device.v_int64 < 0 || device.v_int64 >= program.device_count())
    return raise_ordinal(device.v_int64, program.device_count());
  return program.reach(static_cast<int32_t>(device.v_int64), entered);
}

int persisting_limit(Program& program, const TVMFFIAny* given, int32_t count, TVMFFIAny* result) {
  constexpr Name kDevice{"device", 6};
  if (count != 1) return raise_count(count, &kDevice, 1), -1;
  Entered entered;
  if (!reach_device(program, given[0], entered)) return -1;
  size_t nbytes = 0;
  const CUresult status = program.driver().ctx_get_limit(&nbytes, CU_LIMIT_PERSISTING_L2_CACHE_SIZE);
  give_nothing(result);
  if (status == CUDA_ERROR_UNSUPPORTED_LIMIT) return 0;
  if (status != CUDA_SUCCESS) return raise_driver(program.driver(), "cuCtxGetLimit", status), -1;
  *result = to_any(static_cast<int64_t>(nbytes));
  return 0;
}

int set_persisting_limit(Program& program, const TVMFFIAny* given, int32_t count, TVMFFIAny* result) {
  constexpr Name kNames[] = {{"device", 6}, {"nbytes", 6}};
  if (count != 2) return raise_count(count, kNames, 2), -1;
  if (given[1].type_index != kTVMFFIInt) return raise_trailing("nbytes", given[1], "an integer"), -1;
  Entered entered;
  if (!reach_device(program, given[0], entered)) return -1;
  const Driver& driver = program.driver();
  const RelaxedMode relaxed(driver);
  const CUresult status =
      driver.ctx_set_limit(CU_LIMIT_PERSISTING_L2_CACHE_SIZE, static_cast<size_t>(given[1].v_int64));
  if (status != CUDA_SUCCESS && status != CUDA_ERROR_UNSUPPORTED_LIMIT)
    return raise_driver(driver, "cuCtxSetLimit", status), -1;
  return give_nothing(result), 0;
}

int set_hook(Program& program, const TVMFFIAny* given, int32_t count, TVMFFIAny* result) {
  constexpr Name kHook{"hook", 4};
  if (count != 1) return raise_count(count, &kHook, 1), -1;
  if (given[0].type_index != kTVMFFIFunction) return raise_trailing("hook", given[0], "a function"), -1;
  const Flight flight(program);
  if (!flight) return -1;
  TVMFFIObjectIncRef(given[0].v_obj);
  TVMFFIObjectHandle before = program.set_hook(given[0].v_obj);
  if (before != nullptr) TVMFFIObjectDecRef(before);
  return give_nothing(result), 0;
}

}  // namespace trunnion
