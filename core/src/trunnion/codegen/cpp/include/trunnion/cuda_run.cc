#include <trunnion/cuda_run.hpp>
#include <trunnion/scalars.hpp>

namespace trunnion {

// Whoever allocates for a call works on the current stream. What is allocated there may still be in use there, and must
// not be written from another stream; trunnion makes the call's stream the current one, and says so.
static bool refuse_other_stream(const CallRule& rule, const CallBase& call, const Arguments& arguments,
                                bool outputs_given) {
  const bool allocates = rule.has_workspaces || (rule.outputs != 0 && !outputs_given);
  if (!allocates || !call.stream_named || arguments.are_known()) return true;
  if (call.stream == TVMFFIEnvGetStream(kDLCUDA, call.place.device)) return true;
  return rule.has_workspaces ? raise_other_stream() : raise_other_stream_for_outputs();
}

bool check_named_stream(const Program& program, const CallBase& call) {
  return !call.stream_named || check_stream(program, call.stream, call.place.device);
}

bool prepare_call(Program& program, const CallRule& rule, CallBase& call, const Arguments& arguments,
                  bool outputs_given) {
  if (!rule.check(call, arguments, outputs_given) || !program.load()) return false;
  if (!check_ordinal(call.place, program.device_count())) return false;  // which nobody knew before
  void* stream = nullptr;
  if (!read_stream(arguments, call.place.device, stream, call.stream_named)) return false;
  call.stream = static_cast<CUstream>(stream);
  if (!refuse_other_stream(rule, call, arguments, outputs_given)) return false;
  if (!check_named_stream(program, call)) return false;
  call.state = program.device(call.place.device, &call.stream);
  return call.state != nullptr && rule.find_memory(call, outputs_given);
}

bool find_stream(CallBase& call, const DLPackExchangeAPI& exchange) {
  void* stream = nullptr;
  if (exchange.current_work_stream(kDLCUDA, call.place.device, &stream) != 0) return false;
  call.stream = static_cast<CUstream>(stream);
  call.stream_named = false;
  return true;
}

bool name_stream(CallBase& call, uint64_t handle, bool allocates) {
  if (allocates && handle == kPerThreadStream) return false;  // which is waited for
  if (handle == stream_number(call)) return true;
  call.stream = reinterpret_cast<CUstream>(handle);
  call.stream_named = true;
  return !allocates;
}

bool find_state(Program& program, CallBase& call) {
  call.state = program.prepared(call.place.device);
  return call.state != nullptr;
}

static bool enter_if_needed(const Program& program, const CallRule& rule, const CallBase& call,
                            Entered& entered) {
  const bool known = !is_driver_stream(call.stream) || program.device_count() == 1;
  if (known && !rule.needs_context) return true;
  return entered.enter(program.driver(), *call.state, call.place.device);
}

// Refuse a context that has variables of its own. Without any the launch finds its way to the primary one.
static bool check_context(const Program& program, const CallBase& call) {
  const Driver& driver = program.driver();
  CUcontext context = nullptr;
  const bool is_current = is_driver_stream(call.stream);
  const CUresult status =
      is_current ? driver.ctx_get_current(&context) : driver.stream_get_ctx(call.stream, &context);
  if (status != CUDA_SUCCESS)
    return raise_driver(driver, is_current ? "cuCtxGetCurrent" : "cuStreamGetCtx", status);
  if (context == nullptr || context == call.state->context) return true;
  return program.check_variables(*call.state, call.place.device, context);
}

bool enter_call(const Program& program, const CallRule& rule, const CallBase& call, Entered& entered) {
  if (!enter_if_needed(program, rule, call, entered)) return false;
  return __builtin_expect(!program.has_variables(), 1) || check_context(program, call);
}

static bool wait_for_stream(const Program& program, const CallBase& call) {
  const Driver& driver = program.driver();
  Entered entered;  // a launch may have found its own way to the device
  if (!entered.enter(driver, *call.state, call.place.device)) return false;
  bool capturing = false;
  if (!is_capturing(driver, call.stream, capturing)) return false;
  const RelaxedMode relaxed(driver);
  const CUresult status = capturing ? CUDA_SUCCESS : driver.stream_synchronize(call.stream);
  return succeeded(driver, "cuStreamSynchronize", status, {&call.stream});
}

// Wait for a call's stream, unless it is being captured; false: the launches failed, which is told, or what they do.
static bool wait_for(const Program& program, const CallBase& call, bool fired) {
  if (fired) return wait_for_stream(program, call);
  Held first, second;
  TVMFFIErrorMoveFromRaised(first.out());
  if (!wait_for_stream(program, call)) TVMFFIErrorMoveFromRaised(second.out());
  if (first.get() != nullptr) TVMFFIErrorSetRaised(first.get());
  return false;
}

bool settle(const Program& program, const CallRule& rule, const CallBase& call, bool own_outputs,
            bool fired) {
  const bool waits = call.stream_named && reinterpret_cast<uint64_t>(call.stream) == kPerThreadStream &&
                     (own_outputs || rule.has_workspaces);
  return __builtin_expect(!waits, 1) ? fired : wait_for(program, call, fired);
}

static bool view_handed(const TVMFFIAny& given, const Name& name, TVMFFIByteArray& bytes) {
  if (view_bytes(given, bytes)) return true;
  Text got;
  describe_type(got, given);
  return raise_word(name, got, "bytes");
}

int load_image(Program& program, const TVMFFIAny* given, int32_t count, TVMFFIAny* result) {
  constexpr Name kGiven[] = {{"image", 5}, {"names", 5}};
  if (count == 0) return load(program, result);
  if (count != 2) return raise_count(count, kGiven, 2), -1;
  HandedImage handed{};
  if (!view_handed(given[0], kGiven[0], handed.data) || !view_handed(given[1], kGiven[1], handed.names))
    return -1;
  const Flight flight(program);
  if (!flight || !program.load(handed)) return -1;
  return give_nothing(result), 0;
}

bool prepare_device(Program& program, int64_t ordinal) {
  if (ordinal < 0 || ordinal >= program.device_count()) return raise_ordinal(ordinal, program.device_count());
  const auto device = static_cast<int32_t>(ordinal);
  DeviceState* state = program.device(device, nullptr);
  return state != nullptr && set_known_aside(program, *state, device);
}

}  // namespace trunnion
