#include <trunnion/driver.hpp>

namespace trunnion {

bool raise_no_driver(const char* said) {
  Text requirement, got;
  requirement << "a CUDA driver (libcuda.so.1)";
  return raise_requirement(requirement,
                           got << "none: " << (said != nullptr ? said : "it lacks cuGetProcAddress_v2"),
                           "install the NVIDIA driver, or simulate: trunnion.sim.start()");
}

bool raise_old_driver(const EntryPoint& entry, int version) {
  Text requirement, got;
  requirement << "a driver for CUDA " << entry.cuda_version / 1000 << "." << entry.cuda_version % 1000 / 10
              << " or later, with " << entry.name;
  got << "one for CUDA " << version / 1000 << "." << version % 1000 / 10;
  return raise_requirement(requirement, got, "update the driver");
}

bool find_driver(Driver& driver) {
  void* library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return raise_no_driver(dlerror());
  using GetProcAddress = CUresult (*)(const char*, void**, int, cuuint64_t, CUdriverProcAddressQueryResult*);
  const auto find = reinterpret_cast<GetProcAddress>(dlsym(library, "cuGetProcAddress_v2"));
  if (find == nullptr) return raise_no_driver(nullptr);
  void* found[kEntryPointCount] = {};
  int version = 0;
  for (size_t index = 0; index < kEntryPointCount; ++index) {
    const EntryPoint& entry = kEntryPoints[index];
    CUdriverProcAddressQueryResult state = CU_GET_PROC_ADDRESS_SUCCESS;
    const CUresult status = find(entry.name, &found[index], 12000, CU_GET_PROC_ADDRESS_DEFAULT, &state);
    const bool missing = status == CUDA_SUCCESS || status == CUDA_ERROR_NOT_FOUND;
    if (missing && found[index] == nullptr) return raise_old_driver(entry, version);
    std::memcpy(&driver, found, sizeof driver);
    if (status != CUDA_SUCCESS) return raise_driver(driver, "cuGetProcAddress", status);
    if (index != kVersionEntryPoint) continue;
    const CUresult asked = driver.driver_get_version(&version);
    if (asked != CUDA_SUCCESS) return raise_driver(driver, "cuDriverGetVersion", asked);
  }
  return true;
}

static void show_name(const Driver& driver, CUresult code, Text& text) {
  const char* name = nullptr;
  if (driver.get_error_name != nullptr) driver.get_error_name(code, &name);
  text << (name != nullptr ? name : "status ");
  if (name == nullptr) text << static_cast<int64_t>(code);
}

bool raise_driver(const Driver& driver, const char* call, CUresult code, const CUstream* stream,
                  const Text* more, const RefusedLaunch* launch) {
  const char* explanation = nullptr;
  if (driver.get_error_string != nullptr) driver.get_error_string(code, &explanation);  // else not found yet
  Text name, message, number, handle, explained;
  number << static_cast<int64_t>(code);
  show_name(driver, code, name);
  message << call << " failed with " << name << " (" << number << ")";
  explained << (explanation != nullptr ? explanation : "");
  if (more != nullptr) explained << *more;
  if (explained.size() != 0) message << ": " << explained;
  if (stream != nullptr) handle << reinterpret_cast<uint64_t>(*stream);
  Raising raising("RuntimeError", "DriverError");
  raising.field(call).field(number).field(name).field(explained).field(handle);
  if (launch != nullptr) {
    message << "; the launch is of kernel " << launch->kernel;
    raising.field(launch->kernel.text, launch->kernel.size);
    raising.field(launch->attributes).field(launch->priorities);
  }
  return raising.with(message);
}

void Failures::note(const char* call, CUresult status) {
  if (status == CUDA_SUCCESS) return;
  if (call_ == nullptr) {
    call_ = call;
    status_ = status;
    return;
  }
  more_ << "; then " << call << " failed with ";
  show_name(driver_, status, more_);
}

bool Failures::settle() const {
  return call_ == nullptr || raise_driver(driver_, call_, status_, nullptr, &more_);
}

}  // namespace trunnion
