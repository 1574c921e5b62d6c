#include <trunnion/variables.hpp>

namespace trunnion {

// The program says another size than the driver does.
static bool raise_variable_size(const VariableRule& rule, uint64_t nbytes, int32_t ordinal) {
  Text declared, actual, message;
  declared << rule.nbytes << " bytes";
  actual << nbytes << " bytes on device " << ordinal;
  message << "variable " << rule.name << ": the program says " << declared << ", the compiled code has "
          << actual << "; correct its dtype and shape, or the declaration";
  return Raising("ValueError", "VariableMismatchError")
      .field(rule.name.text, rule.name.size)
      .field(declared)
      .field(actual)
      .with(message);
}

bool Program::find_variables(DeviceState& state, int32_t ordinal) {
  for (uint32_t index = 0; index < rule_->variable_count; ++index) {
    CUdeviceptr address = 0;
    size_t nbytes = 0;
    const RefusedKernel refused_variable{symbol(rule_->kernel_count + index), ordinal, "variable"};
    const CUresult status = driver_.library_get_global(&address, &nbytes, library_, refused_variable.symbol);
    if (status != CUDA_SUCCESS) return refused("cuLibraryGetGlobal", status, &refused_variable);
    if (nbytes != rule_->variables[index].nbytes) {
      return raise_variable_size(rule_->variables[index], nbytes, ordinal);
    }
    state.variables[index] = address;
  }
  return true;
}

// What a program says that its variables hold, on a stream that waits for no other one and is no part of any capture.
class VariableWriter {
 public:
  explicit VariableWriter(const Driver& driver) : driver_(driver) {}

  bool write(const ProgramRule& rule, const DeviceState& state) {
    Failures failures(driver_);
    const RelaxedMode relaxed(driver_);
    if (!succeeded(driver_, RelaxedMode::kCall, relaxed.status())) return false;
    CUstream stream = nullptr;
    const CUresult status = driver_.stream_create(&stream, CU_STREAM_NON_BLOCKING);
    failures.note("cuStreamCreate", status);
    if (status == CUDA_SUCCESS) {
      failures.note("cuMemcpyHtoDAsync", copy_all(rule, state, stream));
      failures.note("cuStreamSynchronize", driver_.stream_synchronize(stream));
      failures.note("cuStreamDestroy", driver_.stream_destroy(stream));
    }
    return failures.settle();
  }

 private:
  CUresult copy_all(const ProgramRule& rule, const DeviceState& state, CUstream stream) const {
    for (uint32_t index = 0; index < rule.variable_count; ++index) {
      const VariableRule& variable = rule.variables[index];
      if (variable.init == nullptr) continue;
      const CUresult status =
          driver_.memcpy_htod(state.variables[index], variable.init, variable.nbytes, stream);
      if (status != CUDA_SUCCESS) return status;
    }
    return CUDA_SUCCESS;
  }

  const Driver& driver_;
};

bool Program::prepare_variables(DeviceState& state, int32_t ordinal) {
  if (rule_->variable_count == 0) return true;
  if (!find_variables(state, ordinal)) return false;
  bool written = false;
  for (uint32_t index = 0; index < rule_->variable_count; ++index) {
    written = written || rule_->variables[index].init != nullptr;
  }
  return !written || VariableWriter(driver_).write(*rule_, state);
}

bool Program::check_variables(DeviceState& state, int32_t ordinal, CUcontext context) const {
  // A green context is one for as long as it lives, and no other one of the process gets its id, by whose handle another
  // may be reached later.
  unsigned long long id = 0;
  const bool has_id = driver_.ctx_get_id(context, &id) == CUDA_SUCCESS;
  uint64_t& sharing = state.sharing[id % DeviceState::kMostSharing];
  if (has_id && __atomic_load_n(&sharing, __ATOMIC_RELAXED) == id + 1) return true;
  if (!succeeded(driver_, "cuCtxPushCurrent", driver_.ctx_push_current(context))) return false;
  CUdeviceptr address = 0;
  size_t nbytes = 0;
  const RefusedKernel refused_variable{symbol(rule_->kernel_count), ordinal, "variable"};
  CUresult relaxing = CUDA_SUCCESS, status = CUDA_SUCCESS;
  {
    const RelaxedMode relaxed(driver_);
    relaxing = relaxed.status();
    if (relaxing == CUDA_SUCCESS)
      status = driver_.library_get_global(&address, &nbytes, library_, refused_variable.symbol);
  }
  driver_.ctx_pop_current(&context);
  if (!succeeded(driver_, RelaxedMode::kCall, relaxing)) return false;
  if (status != CUDA_SUCCESS) return refused("cuLibraryGetGlobal", status, &refused_variable);
  if (address != state.variables[0]) return raise_stream_context(ordinal);
  if (has_id) __atomic_store_n(&sharing, id + 1, __ATOMIC_RELAXED);
  return true;
}

bool copy_to_variable(const Driver& driver, uint64_t variable, uint64_t source, uint64_t nbytes,
                      CUstream stream) {
  return succeeded(driver, "cuMemcpyDtoDAsync", driver.memcpy_dtod(variable, source, nbytes, stream),
                   {&stream});
}

}  // namespace trunnion
