// One loaded program: its image, its kernels, what was done for each device, and who is launching.
#pragma once

#include <trunnion/driver.hpp>
#include <trunnion/life.hpp>

// Written into the launcher by its image.s. A launcher without an image has 0 bytes of it, and no names.
extern "C" {
extern const unsigned char trunnion_image[] __attribute__((visibility("hidden")));
extern const uint64_t trunnion_image_bytes __attribute__((visibility("hidden")));
extern const char trunnion_kernel_names[] __attribute__((visibility("hidden")));
}

namespace trunnion {

// A launch attribute that needs a driver of some version, and a device of some compute capability.
struct AttributeNeed {
  const char* field;
  int cuda_version;
  int32_t major, minor;
};

struct LaunchRule {
  uint32_t kernel;
  uint32_t dynamic_smem_bytes;  // 0 where only a call knows
  bool non_portable_cluster;
  const AttributeNeed* needs;
  uint32_t need_count;
  bool deferred = false;  // its device is asked for all that by the first call in which it happens
};

// A fact of a device: an attribute, or how many blocks of a kernel one multiprocessor holds at once.
struct FactRule {
  const char* name;
  int32_t attribute;  // or kOccupancy
  int32_t least;      // of an attribute
  uint32_t kernel;
  int32_t threads;  // of a block
  uint32_t dynamic_smem_bytes;

  static constexpr int32_t kOccupancy = 0;  // which is no attribute
};

// A variable of the image, as the program says: its bytes, and what it holds before the first launch on a device.
struct VariableRule {
  Name name;
  uint64_t nbytes;
  const char* init;  // null: what the image says
};

struct ProgramRule {
  uint32_t kernel_count;
  const LaunchRule* launches;
  uint32_t launch_count;
  const FactRule* facts = nullptr;
  uint32_t fact_count = 0;
  const VariableRule* variables = nullptr;
  uint32_t variable_count = 0;
};

// What was done for one device. Fields are written before it is published, but for the limits, which only grow.
struct DeviceState {
  uint64_t serial;  // no other one's, in the whole life of the launcher's library
  CUcontext context;
  int32_t capability_major, capability_minor;
  int32_t most_window_bytes;
  uint64_t set_aside;        // asked for, in bytes
  uint32_t* dynamic_smem;    // that each kernel is allowed, in bytes
  uint32_t* cluster_blocks;  // that each kernel is known to be allowed; only clusters of a call's ask
  uint64_t* variables;       // the address of each
  bool* launches;            // of each that is deferred, whether the device was asked

  // The ids, plus 1, of other contexts that have these variables, each in its own place.
  static constexpr uint32_t kMostSharing = 8;
  uint64_t sharing[kMostSharing];
};

// A reference to a device's primary context, which is gone once nobody has one.
class Retained {
 public:
  // The status is the caller's to raise: of `kCall`.
  CUresult retain(const Driver& driver, CUdevice device, CUcontext& context) {
    const CUresult status = driver.primary_ctx_retain(&context, device);
    if (status == CUDA_SUCCESS) device_ = device, is_held_ = true;
    return status;
  }

  // Give it back, if it is held; the status is the caller's to raise: of `kReleaseCall`.
  CUresult release(const Driver& driver) {
    if (!is_held_) return CUDA_SUCCESS;
    is_held_ = false;
    return driver.primary_ctx_release(device_);
  }

  CUdevice device() const { return device_; }

  static constexpr const char* kCall = "cuDevicePrimaryCtxRetain";
  static constexpr const char* kReleaseCall = "cuDevicePrimaryCtxRelease";

 private:
  CUdevice device_;
  bool is_held_;
};

// An image from elsewhere, and the exact names of the kernels in it, then of the variables, in the program's order, each
// with a zero byte behind it. It lies where it lies for as long as it is loaded, and no longer.
struct HandedImage {
  TVMFFIByteArray data;
  TVMFFIByteArray names;
};

class Entered;

class Program : public Life {
 public:
  explicit constexpr Program(const ProgramRule& rule) : rule_(&rule) {}

  const Driver& driver() const { return driver_; }
  const ImageTarget& target() const { return target_; }
  CUkernel kernel(uint32_t index) const { return kernels_[index]; }
  int32_t device_count() const { return device_count_; }

  // The exact name of a kernel in the image; behind those of kernels come those of variables.
  const char* symbol(uint32_t index) const {
    const char* name = names_;
    while (index-- != 0) name += std::strlen(name) + 1;
    return name;
  }

  // Who is asked to set cache aside, if anybody; a counted reference, given back by `close`.
  TVMFFIObjectHandle hook() const { return __atomic_load_n(&hook_, __ATOMIC_RELAXED); }

  // Returns who was asked before; the reference is the caller's now.
  TVMFFIObjectHandle set_hook(TVMFFIObjectHandle hook) {
    return __atomic_exchange_n(&hook_, hook, __ATOMIC_SEQ_CST);
  }

  // Load the image, once. Needs no context.
  bool load() { return __atomic_load_n(&loaded_, __ATOMIC_ACQUIRE) || load_embedded(); }

  // Load an image that is handed over, in place of one that the launcher does not have.
  bool load(const HandedImage& handed);

  // The state of a device, made if there is none. `stream` is that of the launch that asks, if one does.
  DeviceState* device(int32_t ordinal, const CUstream* stream) {
    DeviceState* state = __atomic_load_n(&states_[ordinal], __ATOMIC_ACQUIRE);
    return __builtin_expect(state != nullptr, 1) ? state : prepare(ordinal, stream);
  }

  // The state of a device; null if there is none yet, or no program any more.
  DeviceState* prepared(int32_t ordinal) const {
    const bool there = __atomic_load_n(&loaded_, __ATOMIC_ACQUIRE) && ordinal >= 0 && ordinal < device_count_;
    return there ? __atomic_load_n(&states_[ordinal], __ATOMIC_ACQUIRE) : nullptr;
  }

  // The facts of a device that is prepared, in the order of `ProgramRule`. They outlive what was done for the device: a
  // call may read them before it is under way.
  const int64_t* facts(int32_t ordinal) const { return facts_[ordinal]; }

  // Ask a device for what is constant of a launch with a condition, when it happens there for the first time.
  bool ask_for(DeviceState& state, int32_t ordinal, uint32_t launch) {
    if (__builtin_expect(__atomic_load_n(&state.launches[launch], __ATOMIC_RELAXED), 1)) return true;
    return prepare_deferred_alone(state, ordinal, rule_->launches[launch], state.launches[launch]);
  }

  // Allow a kernel more dynamic shared memory than any call before needed; never less.
  bool allow_smem(DeviceState& state, int32_t ordinal, uint32_t kernel, uint32_t nbytes) {
    if (__builtin_expect(nbytes <= __atomic_load_n(&state.dynamic_smem[kernel], __ATOMIC_RELAXED), 1))
      return true;
    return raise_smem_alone(state, ordinal, kernel, nbytes);
  }

  // Allow a kernel clusters of as many blocks as a call asks for, on a device that has clusters.
  bool allow_cluster(DeviceState& state, int32_t ordinal, uint32_t kernel, int64_t blocks) {
    const auto asked = static_cast<uint32_t>(blocks);
    if (__builtin_expect(asked <= __atomic_load_n(&state.cluster_blocks[kernel], __ATOMIC_RELAXED), 1))
      return true;
    return raise_cluster_blocks_alone(state, ordinal, kernel, asked);
  }

  // Wait for all launches, then unload; every step is done, whatever an earlier one says. The first error is raised, and
  // names those after it. What a stream capture forbids is left to another close.
  bool close();

  bool is_over() const { return Life::is_over(__atomic_load_n(&loaded_, __ATOMIC_ACQUIRE)); }

  // Give back the program's own memory; nobody can call it any more.
  void forget();

  bool has_variables() const { return rule_->variable_count != 0; }

  // Refuse a context of a device that has other variables than those that the program wrote: neither the primary one, nor
  // a green one of it.
  [[gnu::cold]] bool check_variables(DeviceState& state, int32_t ordinal, CUcontext context) const;

  // Whether the driver may be asked, beyond the program's end too, for what it left in a device's context.
  bool is_reachable() const {
    if (is_forked()) return raise_forked();
    return __atomic_load_n(&loaded_, __ATOMIC_ACQUIRE) || raise_not_loaded();
  }

  // Make the primary context of a device current.
  bool reach(int32_t ordinal, Entered& entered);

 private:
  [[gnu::cold]] bool load_embedded();
  bool load_locked(const void* image, size_t nbytes, const char* names);
  // Of what depends on the image: whether the device can run it.
  bool refused(const char* call, CUresult status, const RefusedKernel* kernel = nullptr) const;

  template <typename Element>
  static Element* allocate(size_t count) {
    return static_cast<Element*>(std::calloc(count != 0 ? count : 1, sizeof(Element)));
  }

  // Devices -----------------------------------------------------------------------------------------------------------

  [[gnu::cold]] DeviceState* prepare(int32_t ordinal, const CUstream* stream);
  bool refuse_captured(const DeviceState& state, int32_t ordinal, CUstream stream) const;
  DeviceState* new_state() const;
  CUresult wait(const DeviceState& state, int32_t ordinal, Failures& failures) const;
  bool retain(int32_t ordinal, DeviceState& state, Retained& retained);
  bool check_attributes(const DeviceState& state, int32_t ordinal, const LaunchRule& launch);
  bool prepare_launch(DeviceState& state, int32_t ordinal, CUdevice device, const LaunchRule& launch);
  [[gnu::cold]] bool prepare_deferred_alone(DeviceState& state, int32_t ordinal, const LaunchRule& launch,
                                            bool& prepared);
  bool read_facts(DeviceState& state, int32_t ordinal, CUdevice device);
  bool read_fact(DeviceState& state, int32_t ordinal, CUdevice device, const FactRule& fact, int& value);
  CUresult try_smem(DeviceState& state, CUdevice device, uint32_t kernel, uint32_t nbytes);
  bool prepare_variables(DeviceState& state, int32_t ordinal);
  bool find_variables(DeviceState& state, int32_t ordinal);
  [[gnu::cold]] bool raise_smem_alone(DeviceState& state, int32_t ordinal, uint32_t kernel, uint32_t nbytes);
  [[gnu::cold]] bool raise_smem(DeviceState& state, int32_t ordinal, uint32_t kernel, uint32_t nbytes);
  [[gnu::cold]] bool raise_cluster_blocks_alone(DeviceState& state, int32_t ordinal, uint32_t kernel,
                                                uint32_t blocks);
  bool allow_blocks(DeviceState& state, int32_t ordinal, CUdevice device, uint32_t kernel, uint32_t blocks);
  [[gnu::cold]] bool unload();

  const ProgramRule* rule_;
  Driver driver_ = {};
  ImageTarget target_ = {};
  CUlibrary library_ = nullptr;
  CUkernel* kernels_ = nullptr;
  const char* names_ = nullptr;
  DeviceState** states_ = nullptr;
  int64_t** facts_ = nullptr;     // of each device that was prepared
  Retained* retained_ = nullptr;  // of each device that was prepared; given back when the image is unloaded
  int32_t device_count_ = 0;
  bool loaded_ = false;
  TVMFFIObjectHandle hook_ = nullptr;
};

// A context of a device, made current for as long as this lives; nothing happens where one is, a green one included.
class Entered {
 public:
  Entered() = default;
  ~Entered() {
    leave();
    if (keeper_ != nullptr) retained_.release(*keeper_);
  }
  Entered(const Entered&) = delete;
  Entered& operator=(const Entered&) = delete;

  void leave() {
    CUcontext popped;
    if (driver_ != nullptr) driver_->ctx_pop_current(&popped);
    driver_ = nullptr;
  }

  bool enter(const Driver& driver, const DeviceState& state, int32_t ordinal) {
    CUdevice current = -1;
    if (driver.ctx_get_device(&current) == CUDA_SUCCESS && current == ordinal) return true;
    const CUresult status = driver.ctx_push_current(state.context);
    if (status == CUDA_SUCCESS) driver_ = &driver;
    return succeeded(driver, kCall, status);
  }

  // Whether there was none of the device's current before.
  bool is_new() const { return driver_ != nullptr; }

  // Where a context is retained for this alone: given back when it is current no more.
  Retained& retained(const Driver& driver) {
    keeper_ = &driver;
    return retained_;
  }

  // As `enter`, but the primary context, whichever other one of the device is current.
  bool enter_primary(const Driver& driver, const DeviceState& state) {
    const char* call = kCall;
    const CUresult status = try_enter_primary(driver, state, call);
    return succeeded(driver, call, status);
  }

  // As above, but the status is the caller's to raise: of `call`.
  CUresult try_enter_primary(const Driver& driver, const DeviceState& state, const char*& call) {
    CUcontext current = nullptr;
    call = "cuCtxGetCurrent";
    CUresult status = driver.ctx_get_current(&current);
    if (status != CUDA_SUCCESS || current == state.context) return status;
    call = kCall;
    status = driver.ctx_push_current(state.context);
    if (status == CUDA_SUCCESS) driver_ = &driver;
    return status;
  }

  static constexpr const char* kCall = "cuCtxPushCurrent";

 private:
  const Driver* driver_ = nullptr;
  const Driver* keeper_ = nullptr;
  Retained retained_ = {};
};

// Devices, out of the way of calls --------------------------------------------------------------------------------------

bool get_device(const Driver& driver, int32_t ordinal, CUdevice& device);

bool read_attribute(const Driver& driver, CUdevice device, CUdevice_attribute attribute, int& value);

bool is_capturing(const Driver& driver, CUstream stream, bool& capturing);

}  // namespace trunnion
