#include <trunnion/driver.hpp>

namespace trunnion {

bool raise_no_driver(const char* said) {
  Text requirement, got;
  requirement << "a CUDA driver (libcuda.so.1)";
  return raise_requirement(requirement,
                           got << "none: " << (said != nullptr ? said : "it lacks cuGetProcAddress_v2"),
                           "install the NVIDIA driver");
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
    if (status != CUDA_SUCCESS || found[index] == nullptr) return raise_old_driver(entry, version);
    if (index == 1) reinterpret_cast<decltype(&::cuDriverGetVersion)>(found[1])(&version);
  }
  std::memcpy(&driver, found, sizeof driver);
  return true;
}

bool raise_driver(const Driver& driver, const char* call, CUresult code, const CUstream* stream) {
  const char *name = nullptr, *explanation = nullptr;
  driver.get_error_name(code, &name);
  driver.get_error_string(code, &explanation);
  Text shown_name, message, number, handle;
  number << static_cast<int64_t>(code);
  shown_name << (name != nullptr ? name : "status ");
  if (name == nullptr) shown_name << number;
  message << call << " failed with " << shown_name << " (" << number << ")";
  if (explanation != nullptr) message << ": " << explanation;
  if (stream != nullptr) handle << reinterpret_cast<uint64_t>(*stream);
  return Raising("RuntimeError", "DriverError")
      .field(call)
      .field(number)
      .field(shown_name)
      .field(explanation != nullptr ? explanation : "")
      .field(handle)
      .with(message);
}

}  // namespace trunnion
