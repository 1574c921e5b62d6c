#include <trunnion/program.hpp>

namespace trunnion {

// Of clusters, CUDA C++ Programming Guide, "Thread Block Clusters": the compute capability with which they come, and how
// many blocks every such device can run, and any under the non-portable attribute.
static constexpr int32_t kClustersSince = 9;
static constexpr uint32_t kPortableClusterBlocks = 8, kMostClusterBlocks = 16;

bool Program::load_embedded() {
  const Locked locked(loading(), kPatienceSeconds);
  if (loaded_) return true;
  if (!locked.is_mine()) return raise_refused(locked);
  if (trunnion_image_bytes != 0)
    return load_locked(trunnion_image, trunnion_image_bytes, trunnion_kernel_names);
  return raise_no_image();
}

// A copy with a zero byte behind it, which PTX wants, at an address that the driver likes; null: there is no memory.
static char* copy_of(const TVMFFIByteArray& bytes) {
  void* memory = nullptr;
  if (posix_memalign(&memory, 64, bytes.size + 1) != 0) return nullptr;
  std::memcpy(memory, bytes.data, bytes.size);
  static_cast<char*>(memory)[bytes.size] = 0;
  return static_cast<char*>(memory);
}

// Whether there are so many names, and nothing else.
static bool has_names(const TVMFFIByteArray& names, uint32_t count) {
  size_t found = 0;
  for (size_t at = 0; at < names.size; ++at) {
    const bool ends = names.data[at] == 0;
    if (ends && (at == 0 || names.data[at - 1] == 0)) return false;
    found += ends;
  }
  return found == count && (names.size == 0 || names.data[names.size - 1] == 0);
}

bool Program::load(const HandedImage& handed) {
  if (!has_names(handed.names, rule_->kernel_count + rule_->variable_count))
    return rule_->variable_count == 0
               ? raise_kernel_names(handed.names.size, rule_->kernel_count)
               : raise_image_names(handed.names.size, rule_->kernel_count, rule_->variable_count);
  if (handed.data.size == 0) return raise_empty_image();
  const Locked locked(loading(), kPatienceSeconds);
  if (!locked.is_mine()) return raise_refused(locked);
  if (loaded_ || trunnion_image_bytes != 0) return raise_second_image();
  char* image = copy_of(handed.data);
  char* names = copy_of(handed.names);
  const bool good = image != nullptr && names != nullptr ? load_locked(image, handed.data.size, names)
                                                         : raise_no_own_memory();
  std::free(image);  // of which the driver has made its own
  if (!good) std::free(names);
  return good;
}

static void free_state(DeviceState* state) {
  std::free(state->dynamic_smem);
  std::free(state->cluster_blocks);
  std::free(state->launches);
  std::free(state->variables);
  std::free(state);
}

bool Program::refused(const char* call, CUresult status, const RefusedKernel* kernel) const {
  RefusedCall refused;
  refused.image = &target_;
  refused.kernel = kernel;
  return raise_driver(driver_, call, status, refused);
}

bool Program::load_locked(const void* image, size_t nbytes, const char* names) {
  if (!find_driver(driver_)) return false;
  if (!succeeded(driver_, "cuInit", driver_.init(0))) return false;
  if (!succeeded(driver_, "cuDeviceGetCount", driver_.device_get_count(&device_count_))) return false;
  if (states_ == nullptr) states_ = allocate<DeviceState*>(static_cast<size_t>(device_count_));
  if (facts_ == nullptr) facts_ = allocate<int64_t*>(static_cast<size_t>(device_count_));
  if (retained_ == nullptr) retained_ = allocate<Retained>(static_cast<size_t>(device_count_));
  if (kernels_ == nullptr) kernels_ = allocate<CUkernel>(rule_->kernel_count);
  const bool allocated =
      states_ != nullptr && facts_ != nullptr && retained_ != nullptr && kernels_ != nullptr;
  if (!watch_forks() || !allocated) return raise_no_own_memory();
  CUresult status = CUDA_SUCCESS;
  // A first call may be made while a stream is captured: a capture in the usual mode would be broken by the load.
  {
    const RelaxedMode relaxed(driver_);
    if (!succeeded(driver_, RelaxedMode::kCall, relaxed.status())) return false;
    target_.read(image, nbytes);
    status = driver_.library_load_data(&library_, image, nullptr, nullptr, 0, nullptr, nullptr, 0);
  }
  if (status != CUDA_SUCCESS) return refused("cuLibraryLoadData", status);
  const char* name = names;
  for (uint32_t index = 0; index < rule_->kernel_count; ++index, name += std::strlen(name) + 1) {
    status = driver_.library_get_kernel(&kernels_[index], library_, name);
    if (status != CUDA_SUCCESS) {
      driver_.library_unload(library_);
      const RefusedKernel kernel{name, RefusedKernel::kNoDevice};
      return refused("cuLibraryGetKernel", status, &kernel);
    }
  }
  names_ = names;
  __atomic_store_n(&loaded_, true, __ATOMIC_RELEASE);
  return true;
}

bool Program::close() {
  bool ended = false;
  const bool good = end([this, &ended] {
    ended = true;
    return unload();
  });
  TVMFFIObjectHandle hook = ended ? set_hook(nullptr) : nullptr;
  if (hook != nullptr) TVMFFIObjectDecRef(hook);
  return good;
}

bool is_capturing(const Driver& driver, CUstream stream, bool& capturing) {
  CUstreamCaptureStatus found = CU_STREAM_CAPTURE_STATUS_NONE;
  const CUresult status = driver.stream_is_capturing(stream, &found);
  // The legacy stream, while another one is being captured: it is not.
  const bool implicit = status == CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
  if (!implicit && status != CUDA_SUCCESS) return raise_driver(driver, "cuStreamIsCapturing", status);
  capturing = !implicit && found != CU_STREAM_CAPTURE_STATUS_NONE;
  return true;
}

DeviceState* Program::new_state() const {
  DeviceState* state = allocate<DeviceState>(1);
  if (state == nullptr) return nullptr;
  state->dynamic_smem = allocate<uint32_t>(rule_->kernel_count);
  state->cluster_blocks = allocate<uint32_t>(rule_->kernel_count);
  state->launches = allocate<bool>(rule_->launch_count);
  state->variables = allocate<uint64_t>(rule_->variable_count);
  if (state->dynamic_smem == nullptr || state->cluster_blocks == nullptr || state->launches == nullptr ||
      state->variables == nullptr) {
    free_state(state);
    return nullptr;
  }
  for (uint32_t kernel = 0; kernel < rule_->kernel_count; ++kernel) state->cluster_blocks[kernel] = 1;
  static uint64_t made = 0;
  state->serial = __atomic_add_fetch(&made, 1, __ATOMIC_RELAXED);
  return state;
}

// The driver's own streams are the current context's, which may be another one of the device than the primary.
bool Program::refuse_captured(const DeviceState& state, int32_t ordinal, CUstream stream) const {
  Entered entered;
  bool capturing = false;
  if (!entered.enter(driver_, state, ordinal) || !is_capturing(driver_, stream, capturing)) return false;
  return !capturing || raise_unprepared(ordinal);
}

DeviceState* Program::prepare(int32_t ordinal, const CUstream* stream) {
  const Locked locked(loading(), kPatienceSeconds);
  if (states_[ordinal] != nullptr) return states_[ordinal];
  if (!locked.is_mine()) return raise_refused(locked), nullptr;
  DeviceState* state = new_state();
  if (state == nullptr) return raise_no_own_memory(), nullptr;
  Retained retained{};
  bool good = retain(ordinal, *state, retained);
  good = good && (stream == nullptr || refuse_captured(*state, ordinal, *stream));
  Entered entered;
  good = good && entered.enter_primary(driver_, *state);
  for (uint32_t index = 0; good && index < rule_->launch_count; ++index) {
    const LaunchRule& launch = rule_->launches[index];
    good = launch.deferred || prepare_launch(*state, ordinal, retained.device(), launch);
  }
  good = good && read_facts(*state, ordinal, retained.device()) && prepare_variables(*state, ordinal);
  if (!good) {
    entered.leave();
    retained.release(driver_);
    free_state(state);
    return nullptr;
  }
  retained_[ordinal] = retained;
  __atomic_store_n(&states_[ordinal], state, __ATOMIC_RELEASE);
  return state;
}

bool get_device(const Driver& driver, int32_t ordinal, CUdevice& device) {
  return succeeded(driver, "cuDeviceGet", driver.device_get(&device, ordinal));
}

bool read_attribute(const Driver& driver, CUdevice device, CUdevice_attribute attribute, int& value) {
  return succeeded(driver, "cuDeviceGetAttribute", driver.device_get_attribute(&value, attribute, device));
}

bool Program::retain(int32_t ordinal, DeviceState& state, Retained& retained) {
  CUdevice device = 0;
  return get_device(driver_, ordinal, device) &&
         succeeded(driver_, Retained::kCall, retained.retain(driver_, device, state.context)) &&
         read_attribute(driver_, device, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR,
                        state.capability_major) &&
         read_attribute(driver_, device, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR,
                        state.capability_minor) &&
         read_attribute(driver_, device, CU_DEVICE_ATTRIBUTE_MAX_ACCESS_POLICY_WINDOW_SIZE,
                        state.most_window_bytes);
}

bool Program::reach(int32_t ordinal, Entered& entered) {
  DeviceState state{};
  return retain(ordinal, state, entered.retained(driver_)) && entered.enter_primary(driver_, state);
}

bool Program::check_attributes(const DeviceState& state, int32_t ordinal, const LaunchRule& launch) {
  int version = 0;
  if (launch.need_count == 0) return true;
  if (!succeeded(driver_, "cuDriverGetVersion", driver_.driver_get_version(&version))) return false;
  const int32_t major = state.capability_major, minor = state.capability_minor;
  for (uint32_t index = 0; index < launch.need_count; ++index) {
    const AttributeNeed& need = launch.needs[index];
    if (version < need.cuda_version) return raise_attribute_version(need.cuda_version, need.field, version);
    if (major < need.major || (major == need.major && minor < need.minor))
      return raise_attribute_capability(need.major, need.minor, need.field, ordinal, major, minor);
  }
  return true;
}

bool Program::prepare_launch(DeviceState& state, int32_t ordinal, CUdevice device, const LaunchRule& launch) {
  if (!check_attributes(state, ordinal, launch)) return false;
  if (launch.dynamic_smem_bytes != 0 && !raise_smem(state, ordinal, launch.kernel, launch.dynamic_smem_bytes))
    return false;
  return !launch.non_portable_cluster ||
         allow_blocks(state, ordinal, device, launch.kernel, kMostClusterBlocks);
}

bool Program::prepare_deferred_alone(DeviceState& state, int32_t ordinal, const LaunchRule& launch,
                                     bool& prepared) {
  const Locked locked(loading(), kPatienceSeconds);
  if (!locked.is_mine()) return raise_refused(locked);
  CUdevice device = 0;
  if (!get_device(driver_, ordinal, device) || !prepare_launch(state, ordinal, device, launch)) return false;
  __atomic_store_n(&prepared, true, __ATOMIC_RELAXED);
  return true;
}

bool Program::raise_cluster_blocks_alone(DeviceState& state, int32_t ordinal, uint32_t kernel,
                                         uint32_t blocks) {
  const Locked locked(loading(), kPatienceSeconds);
  if (!locked.is_mine()) return raise_refused(locked);
  if (state.capability_major < kClustersSince)
    return raise_attribute_capability(kClustersSince, 0, "cluster", ordinal, state.capability_major,
                                      state.capability_minor);
  CUdevice device = 0;
  return get_device(driver_, ordinal, device) && allow_blocks(state, ordinal, device, kernel, blocks);
}

// Two names of a program may be one kernel: they share what is allowed.
bool Program::allow_blocks(DeviceState& state, int32_t ordinal, CUdevice device, uint32_t kernel,
                           uint32_t blocks) {
  if (blocks <= state.cluster_blocks[kernel]) return true;
  uint32_t most = kPortableClusterBlocks;
  if (blocks > most) {
    const CUresult status = driver_.kernel_set_attribute(CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED,
                                                         1, kernels_[kernel], device);
    const RefusedKernel refused_kernel{symbol(kernel), ordinal};
    if (status != CUDA_SUCCESS) return refused("cuKernelSetAttribute", status, &refused_kernel);
    most = kMostClusterBlocks;
  }
  for (uint32_t alias = 0; alias < rule_->kernel_count; ++alias) {
    if (std::strcmp(symbol(alias), symbol(kernel)) == 0) {
      __atomic_store_n(&state.cluster_blocks[alias], most, __ATOMIC_RELAXED);
    }
  }
  return true;
}

bool Program::read_facts(DeviceState& state, int32_t ordinal, CUdevice device) {
  if (rule_->fact_count == 0) return true;
  if (facts_[ordinal] == nullptr) facts_[ordinal] = allocate<int64_t>(rule_->fact_count);
  if (facts_[ordinal] == nullptr) return raise_no_own_memory();
  for (uint32_t index = 0; index < rule_->fact_count; ++index) {
    int value = 0;
    if (!read_fact(state, ordinal, device, rule_->facts[index], value)) return false;
    facts_[ordinal][index] = value;
  }
  return true;
}

bool Program::read_fact(DeviceState& state, int32_t ordinal, CUdevice device, const FactRule& fact,
                        int& value) {
  if (fact.attribute != FactRule::kOccupancy) {
    if (!read_attribute(driver_, device, static_cast<CUdevice_attribute>(fact.attribute), value))
      return false;
    if (value >= fact.least) return true;
    return raise_fact(fact.least, fact.name, value, ordinal);
  }
  const RefusedKernel refused_kernel{symbol(fact.kernel), ordinal};
  // Without the allowance the driver answers for what a kernel has unasked. What a device cannot allow at all, of that it
  // answers that it holds none.
  CUresult status = try_smem(state, device, fact.kernel, fact.dynamic_smem_bytes);
  if (status != CUDA_SUCCESS && status != CUDA_ERROR_INVALID_VALUE)
    return refused("cuKernelSetAttribute", status, &refused_kernel);
  // The driver takes a kernel's handle in the place of a function's.
  status = driver_.most_active_blocks(&value, reinterpret_cast<CUfunction>(kernels_[fact.kernel]),
                                      fact.threads, fact.dynamic_smem_bytes);
  return status == CUDA_SUCCESS
             ? true
             : refused("cuOccupancyMaxActiveBlocksPerMultiprocessor", status, &refused_kernel);
}

// Two names of a program may be one kernel: they share the limit.
CUresult Program::try_smem(DeviceState& state, CUdevice device, uint32_t kernel, uint32_t nbytes) {
  if (nbytes <= state.dynamic_smem[kernel]) return CUDA_SUCCESS;
  const CUresult status = driver_.kernel_set_attribute(CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                                                       static_cast<int>(nbytes), kernels_[kernel], device);
  for (uint32_t alias = 0; status == CUDA_SUCCESS && alias < rule_->kernel_count; ++alias) {
    if (std::strcmp(symbol(alias), symbol(kernel)) == 0) {
      __atomic_store_n(&state.dynamic_smem[alias], nbytes, __ATOMIC_RELAXED);
    }
  }
  return status;
}

bool Program::raise_smem_alone(DeviceState& state, int32_t ordinal, uint32_t kernel, uint32_t nbytes) {
  const Locked locked(loading(), kPatienceSeconds);
  return locked.is_mine() ? raise_smem(state, ordinal, kernel, nbytes) : raise_refused(locked);
}

// How much a kernel has without asking depends on its static shared memory, so it always asks.
bool Program::raise_smem(DeviceState& state, int32_t ordinal, uint32_t kernel, uint32_t nbytes) {
  if (nbytes <= state.dynamic_smem[kernel]) return true;
  CUdevice device = 0;
  if (!get_device(driver_, ordinal, device)) return false;
  const CUresult status = try_smem(state, device, kernel, nbytes);
  if (status == CUDA_ERROR_INVALID_VALUE) {
    int most = 0;
    if (!read_attribute(driver_, device, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, most))
      return false;
    const char* name = symbol(kernel);
    return raise_dynamic_smem(nbytes, Name{name, static_cast<uint32_t>(std::strlen(name))}, ordinal, most);
  }
  const RefusedKernel refused_kernel{symbol(kernel), ordinal};
  return status == CUDA_SUCCESS ? true : refused("cuKernelSetAttribute", status, &refused_kernel);
}

void Program::forget() {
  for (int32_t ordinal = 0; states_ != nullptr && ordinal < device_count_; ++ordinal) {
    if (states_[ordinal] == nullptr) continue;
    free_state(states_[ordinal]);  // of a process before a fork
  }
  for (int32_t ordinal = 0; facts_ != nullptr && ordinal < device_count_; ++ordinal)
    std::free(facts_[ordinal]);
  std::free(states_);
  std::free(facts_);
  std::free(retained_);
  std::free(kernels_);
  if (names_ != trunnion_kernel_names) std::free(const_cast<char*>(names_));
  TVMFFIObjectHandle hook = set_hook(nullptr);
  if (hook != nullptr) TVMFFIObjectDecRef(hook);
  Life::forget();
}

// Whether a stream capture is the reason for a status: the same call succeeds when the capture has ended.
static bool is_of_capture(CUresult status) {
  return status >= CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED && status <= CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD;
}

// Wait in the primary context, which green ones are parts of, and in the current one if that is another of the device.
CUresult Program::wait(const DeviceState& state, int32_t ordinal, Failures& failures) const {
  Entered entered;
  const char* call = nullptr;
  CUresult status = entered.try_enter_primary(driver_, state, call);
  failures.note(call, status);
  const bool was_current = status == CUDA_SUCCESS && !entered.is_new();
  if (status == CUDA_SUCCESS) {
    status = driver_.ctx_synchronize();
    failures.note("cuCtxSynchronize", status);
  }
  if (was_current) return status;
  entered.leave();
  CUdevice current = -1;
  if (driver_.ctx_get_device(&current) != CUDA_SUCCESS || current != ordinal) return status;
  const CUresult other = driver_.ctx_synchronize();
  failures.note("cuCtxSynchronize", other);
  return is_of_capture(other) ? other : status;
}

bool Program::unload() {
  Failures failures(driver_);
  unfinished_ = false;
  for (int32_t ordinal = 0; ordinal < device_count_; ++ordinal) {
    DeviceState* state = states_ != nullptr ? states_[ordinal] : nullptr;
    if (state == nullptr) continue;
    if (is_of_capture(wait(*state, ordinal, failures))) {
      unfinished_ = true;
      continue;
    }
    states_[ordinal] = nullptr;
    free_state(state);
  }
  if (loaded_ && !unfinished_) {  // else a kernel may still run
    const CUresult status = driver_.library_unload(library_);
    failures.note("cuLibraryUnload", status);
    unfinished_ = is_of_capture(status);
  }
  for (int32_t ordinal = 0; !unfinished_ && retained_ != nullptr && ordinal < device_count_; ++ordinal) {
    failures.note(Retained::kReleaseCall, retained_[ordinal].release(driver_));
  }
  return failures.settle();
}

}  // namespace trunnion
