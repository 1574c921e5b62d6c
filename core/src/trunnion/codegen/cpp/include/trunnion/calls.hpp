// A call as TVM-FFI delivers it: how many arguments, where and on which stream it runs, what it gives back.
#pragma once

#include <tvm/ffi/extra/c_env_api.h>

#include <trunnion/tensors.hpp>

#define TRUNNION_EXPORT extern "C" __attribute__((visibility("default"))) int

namespace trunnion {

// What a call may say behind its inputs and outputs: the stream, the device, a tensor that nobody looks at (TVM-FFI takes
// stream and allocator from the tensors of a call, and a program may have none of its own), and whether whoever allocates
// for it does so under that stream.
inline constexpr int32_t kTrailing = 4;

// The arguments of a call, in order; `count` of them are the program's, the trailing ones may be left out.
class Arguments {
 public:
  Arguments(const TVMFFIAny* given, int32_t count) : given_(given), given_count_(count) {}

  bool expect(const Name* names, int32_t count) {
    count_ = count;
    const bool good = given_count_ >= count && given_count_ <= count + kTrailing;
    return __builtin_expect(good, 1) ? true : raise_count(given_count_, names, count);
  }

  const TVMFFIAny& operator[](int32_t index) const { return given_[index]; }

  // Null where the call leaves it out, or passes None.
  const TVMFFIAny* stream() const { return trailing(0); }
  const TVMFFIAny* device() const { return trailing(1); }
  bool are_known() const { return trailing(3) != nullptr; }

 private:
  const TVMFFIAny* trailing(int32_t index) const {
    const int32_t at = count_ + index;
    const bool given = at < given_count_ && given_[at].type_index != kTVMFFINone;
    return given ? &given_[at] : nullptr;
  }

  const TVMFFIAny* given_;
  int32_t given_count_;
  int32_t count_ = 0;
};

// Device and stream -----------------------------------------------------------------------------------------------------

bool raise_trailing(const char* argument, const TVMFFIAny& given, const char* wanted);

bool raise_ordinal(int64_t got, int32_t count);

// A device that no device's ordinal could be; `wanted` is what else than an integer is told.
bool raise_no_ordinal(const TVMFFIAny& given, const char* wanted);

// Compare the device that the call names with that of its tensors; without tensors it is the device.
inline bool settle_device(const Arguments& arguments, Place& place) {
  const TVMFFIAny* given = arguments.device();
  if (given == nullptr) return place.first != nullptr || place.kind == kDLCPU ? true : raise_no_device();
  if (given->type_index != kTVMFFIInt || given->v_int64 != static_cast<int32_t>(given->v_int64))
    return raise_no_ordinal(*given, "an ordinal, or None");
  if (place.first == nullptr) place.device = given->v_int64;
  if (given->v_int64 == place.device) return true;
  return raise_device_differs(given->v_int64, place.device);
}

// Refuse a device that is not there, whoever named it: producers of tensors are not all to be trusted.
inline bool check_ordinal(const Place& place, int32_t count) {
  const bool there = place.device >= 0 && place.device < count;
  return __builtin_expect(there, 1) ? true : raise_ordinal(place.device, count);
}

// The stream that the call names, else the current one of its device; `named` says which.
inline bool read_stream(const Arguments& arguments, int32_t device, void*& stream, bool& named) {
  const TVMFFIAny* given = arguments.stream();
  named = given != nullptr;
  if (!named) {
    stream = TVMFFIEnvGetStream(kDLCUDA, device);
    return true;
  }
  if (given->type_index != kTVMFFIInt && given->type_index != kTVMFFIOpaquePtr) {
    return raise_trailing("stream", *given, "a handle of the driver (an integer or a pointer), or None");
  }
  stream = given->v_ptr;
  return true;
}

// Results ---------------------------------------------------------------------------------------------------------------

// A counted reference, given back when this ends.
class Held {
 public:
  Held() = default;
  ~Held() { drop(); }
  Held(const Held&) = delete;
  Held& operator=(const Held&) = delete;

  void drop() {
    if (handle_ != nullptr) TVMFFIObjectDecRef(handle_);
    handle_ = nullptr;
  }

  TVMFFIObjectHandle* out() { return &handle_; }
  TVMFFIObjectHandle get() const { return handle_; }

  TVMFFIAny view(int32_t type_index) const {
    TVMFFIAny any{};
    any.type_index = type_index;
    any.v_obj = static_cast<TVMFFIObject*>(handle_);
    return any;
  }

  // Hand the reference over.
  TVMFFIAny release(int32_t type_index) {
    const TVMFFIAny any = view(type_index);
    handle_ = nullptr;
    return any;
  }

 private:
  TVMFFIObjectHandle handle_ = nullptr;
};

inline void give_nothing(TVMFFIAny* result) {
  *result = TVMFFIAny{};
  result->type_index = kTVMFFINone;
}

// Give an array of what is viewed; the array holds references of its own.
bool give_array(const TVMFFIAny* views, int32_t count, TVMFFIAny* result);

}  // namespace trunnion
