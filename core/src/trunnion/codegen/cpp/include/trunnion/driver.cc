#include <trunnion/driver.hpp>

namespace trunnion {

bool find_driver(Driver& driver) {
  void* library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return raise_no_driver(dlerror());
  using GetProcAddress = CUresult (*)(const char*, void**, int, cuuint64_t, CUdriverProcAddressQueryResult*);
  const auto find = reinterpret_cast<GetProcAddress>(dlsym(library, "cuGetProcAddress_v2"));
  if (find == nullptr) return raise_no_driver("it lacks cuGetProcAddress_v2");
  void* found[kEntryPointCount] = {};
  // What tells a status is found first, by itself: whatever finds the others may fail.
  found[kNameEntryPoint] = dlsym(library, kEntryPoints[kNameEntryPoint].name);
  found[kTextEntryPoint] = dlsym(library, kEntryPoints[kTextEntryPoint].name);
  int version = 0;
  for (size_t index = 0; index < kEntryPointCount; ++index) {
    if (found[index] != nullptr) continue;
    const EntryPoint& entry = kEntryPoints[index];
    CUdriverProcAddressQueryResult state = CU_GET_PROC_ADDRESS_SUCCESS;
    // A driver refuses to be asked for a version later than its own, which is not known before it was asked for.
    const int wanted = index > kVersionEntryPoint ? kLeastVersion : entry.cuda_version;
    const CUresult status = find(entry.name, &found[index], wanted, CU_GET_PROC_ADDRESS_DEFAULT, &state);
    const bool missing = status == CUDA_SUCCESS || status == CUDA_ERROR_NOT_FOUND;
    if (missing && found[index] == nullptr) return raise_old_driver(entry.cuda_version, entry.name, version);
    std::memcpy(&driver, found, sizeof driver);
    if (status != CUDA_SUCCESS) return raise_driver(driver, "cuGetProcAddress", status);
    if (index != kVersionEntryPoint) continue;
    const CUresult asked = driver.driver_get_version(&version);
    if (asked != CUDA_SUCCESS) return raise_driver(driver, "cuDriverGetVersion", asked);
    if (version < kLeastVersion) return raise_old_driver(kLeastVersion, "cuLibraryLoadData", version);
  }
  return true;
}

static void show_name(const Driver& driver, CUresult code, Text& text) {
  const char* name = nullptr;
  if (driver.get_error_name != nullptr) driver.get_error_name(code, &name);
  text << (name != nullptr ? name : "status ");
  if (name == nullptr) text << static_cast<int64_t>(code);
}

// The word that follows the first `mark` of an image: PTX has it behind ".target ", and tools note it in a cubin.
static bool word_behind(const void* image, size_t nbytes, const char* mark, char (&word)[16]) {
  const char* end = static_cast<const char*>(image) + nbytes;
  const auto* found = static_cast<const char*>(memmem(image, nbytes, mark, std::strlen(mark)));
  if (found == nullptr) return false;
  size_t size = 0;
  for (const char* at = found + std::strlen(mark); at < end && size + 1 < sizeof word; ++at, ++size) {
    const bool plain = *at == '_' || (*at >= '0' && *at <= '9') || (*at >= 'a' && *at <= 'z');
    if (!plain) break;
    word[size] = *at;
  }
  word[size] = 0;
  return std::strncmp(word, "sm_", 3) == 0;
}

void ImageTarget::read(const void* image, size_t nbytes) {
  const char* const marks[] = {".target ", "-arch ", "-arch="};
  char word[16] = {};
  text[0] = 0;
  for (const char* mark : marks) {
    if (!word_behind(image, nbytes, mark, word)) continue;
    // PTX says a virtual architecture as if it were the real one.
    std::snprintf(text, sizeof text, "%s%s", *mark == '.' ? "compute" : "sm", word + 2);
    return;
  }
}

// What the image is for, and what each device is.
static void show_architectures(const Driver& driver, const ImageTarget& image, Text& text) {
  const char* separator = "";
  if (image.text[0] != 0) {
    text << "the image is for " << image.text;
    separator = ", ";
  }
  int count = 0;
  if (driver.device_get_count(&count) != CUDA_SUCCESS) return;
  for (int ordinal = 0; ordinal < count; ++ordinal) {
    CUdevice device = 0;
    int major = 0, minor = 0;
    const bool known = driver.device_get(&device, ordinal) == CUDA_SUCCESS &&
                       driver.device_get_attribute(&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR,
                                                   device) == CUDA_SUCCESS &&
                       driver.device_get_attribute(&minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR,
                                                   device) == CUDA_SUCCESS;
    if (!known) continue;
    text << separator << "device " << ordinal << " is sm_" << major << minor;
    separator = ", ";
  }
}

// What follows the driver's words and the advice on them.
static void show_subject(const Driver& driver, CUresult code, const RefusedCall& refused, Text& text) {
  const bool unlike = code == CUDA_ERROR_NO_BINARY_FOR_GPU || code == CUDA_ERROR_NOT_FOUND;
  if (unlike && refused.image != nullptr) show_architectures(driver, *refused.image, text);
  if (refused.kernel == nullptr) return;
  const char* symbol = refused.kernel->symbol;
  text << (text.size() != 0 ? "; " : "") << "the " << refused.kernel->what << " is "
       << Name{symbol, static_cast<uint32_t>(std::strlen(symbol))};
  if (refused.kernel->device != RefusedKernel::kNoDevice) text << " on device " << refused.kernel->device;
}

bool raise_driver(const Driver& driver, const char* call, CUresult code, const RefusedCall& refused) {
  const char* explanation = nullptr;
  if (driver.get_error_string != nullptr) driver.get_error_string(code, &explanation);  // else not found yet
  Text name, message, number, handle, explained, subject;
  number << static_cast<int64_t>(code);
  show_name(driver, code, name);
  message << call << " failed with " << name << " (" << number << ")";
  explained << (explanation != nullptr ? explanation : "");
  if (refused.more != nullptr) explained << *refused.more;
  if (explained.size() != 0) message << ": " << explained;
  if (refused.stream != nullptr) handle << reinterpret_cast<uint64_t>(*refused.stream);
  show_subject(driver, code, refused, subject);
  RefusedLaunch none{Name{"", 0}, {}, {}, {}};
  const RefusedLaunch& launch = refused.launch != nullptr ? *refused.launch : none;
  if (refused.launch != nullptr) message << "; the launch is of kernel " << launch.kernel;
  if (subject.size() != 0) message << "; " << subject;
  if (refused.map != nullptr) message << "; " << refused.map->shown;
  Raising raising("RuntimeError", "DriverError");
  raising.field(call).field(number).field(name).field(explained).field(handle);
  raising.field(launch.kernel.text, launch.kernel.size).field(launch.attributes).field(launch.priorities);
  raising.field(subject);
  const Text no_map;
  raising.field(refused.map != nullptr ? refused.map->numbers : no_map).field(launch.shape);
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
  RefusedCall refused;
  refused.more = &more_;
  return call_ == nullptr || raise_driver(driver_, call_, status_, refused);
}

}  // namespace trunnion
