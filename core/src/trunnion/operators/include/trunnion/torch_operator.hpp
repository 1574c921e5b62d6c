// An operator of torch, on torch's stable ABI, over a launcher that lies beside this library: what all such operators share.
//
// This library is linked with torch, and the launcher is not, which so loads where there is none. The launcher checks a
// call and allocates through TVM-FFI's environment: for the length of a call that is torch's allocator and stream.
#pragma once

// The oldest torch that it runs with, whatever headers it is built with: 2.11.
#define TORCH_TARGET_VERSION (((0ULL + 2) << 56) | ((0ULL + 11) << 48))

#include <dlfcn.h>
#include <torch/csrc/stable/library.h>
#include <tvm/ffi/c_api.h>
#include <tvm/ffi/extra/c_env_api.h>

#include <array>
#include <cstdint>
#include <fstream>
#include <iterator>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace trunnion {
namespace {

enum class Kind : uint8_t {
  kTensor,
  kMaybeTensor,
  kInteger,
  kReal,
  kBoolean,
  kAddress,
  kMaybeAddress,
  kBytes
};

// What is known of one operator.
struct Operator {
  const char* name;          // for messages
  const Kind* kinds;         // of the arguments
  const char* const* shown;  // the arguments' names, for messages
  const char* launcher;      // the file beside this library
  const char* image;         // the file with the device image; empty: the launcher holds it
  std::string_view symbols;  // the kernels in it, each ended by a zero
};

using Function = int (*)(void* self, const TVMFFIAny* arguments, int32_t count, TVMFFIAny* result);

[[noreturn]] inline void refuse(const Operator& op, const std::string& text) {
  throw std::runtime_error(std::string(op.name) + ": " + text);
}

inline void check(const Operator& op, AOTITorchError status, const char* call) {
  if (__builtin_expect(status != TORCH_SUCCESS, 0)) refuse(op, std::string("torch's ") + call + " failed");
}

// Raise what a function of TVM-FFI's left behind.
[[noreturn]] inline void refuse_raised(const Operator& op) {
  TVMFFIObjectHandle raised = nullptr;
  TVMFFIErrorMoveFromRaised(&raised);
  if (raised == nullptr) refuse(op, "the launcher failed, and does not say why");
  const TVMFFIErrorCell& error = *TVMFFIErrorGetCellPtr(raised);
  std::string text(error.kind.data, error.kind.size);
  text.append(": ").append(error.message.data, error.message.size);
  TVMFFIObjectDecRef(raised);
  refuse(op, text);
}

// Element types --------------------------------------------------------------------------------------------------------

struct TypePair {
  int32_t (*torch)();
  DLDataType dlpack;
};

inline const std::array<TypePair, 22>& types() {
  static const std::array<TypePair, 22> pairs{{
      {aoti_torch_dtype_bool, {kDLBool, 8, 1}},
      {aoti_torch_dtype_int8, {kDLInt, 8, 1}},
      {aoti_torch_dtype_int16, {kDLInt, 16, 1}},
      {aoti_torch_dtype_int32, {kDLInt, 32, 1}},
      {aoti_torch_dtype_int64, {kDLInt, 64, 1}},
      {aoti_torch_dtype_uint8, {kDLUInt, 8, 1}},
      {aoti_torch_dtype_uint16, {kDLUInt, 16, 1}},
      {aoti_torch_dtype_uint32, {kDLUInt, 32, 1}},
      {aoti_torch_dtype_uint64, {kDLUInt, 64, 1}},
      {aoti_torch_dtype_float16, {kDLFloat, 16, 1}},
      {aoti_torch_dtype_bfloat16, {kDLBfloat, 16, 1}},
      {aoti_torch_dtype_float32, {kDLFloat, 32, 1}},
      {aoti_torch_dtype_float64, {kDLFloat, 64, 1}},
      {aoti_torch_dtype_float8_e4m3fn, {kDLFloat8_e4m3fn, 8, 1}},
      {aoti_torch_dtype_float8_e4m3fnuz, {kDLFloat8_e4m3fnuz, 8, 1}},
      {aoti_torch_dtype_float8_e5m2, {kDLFloat8_e5m2, 8, 1}},
      {aoti_torch_dtype_float8_e5m2fnuz, {kDLFloat8_e5m2fnuz, 8, 1}},
      {torch_dtype_float8_e8m0fnu, {kDLFloat8_e8m0fnu, 8, 1}},
      {torch_dtype_float4_e2m1fn_x2, {kDLFloat4_e2m1fn, 4, 2}},
      {aoti_torch_dtype_complex32, {kDLComplex, 32, 1}},
      {aoti_torch_dtype_complex64, {kDLComplex, 64, 1}},
      {aoti_torch_dtype_complex128, {kDLComplex, 128, 1}},
  }};
  return pairs;
}

constexpr int32_t kMostCodes = 128;  // more than torch has element types

inline DLDataType dlpack_type(const Operator& op, int32_t code) {
  static const std::array<DLDataType, kMostCodes> table = [] {
    std::array<DLDataType, kMostCodes> made{};
    for (const TypePair& pair : types()) made.at(static_cast<size_t>(pair.torch())) = pair.dlpack;
    return made;
  }();
  const bool known = code >= 0 && code < kMostCodes && table[static_cast<size_t>(code)].lanes != 0;
  if (!known) refuse(op, "TypeError: got a tensor of an element type that no kernel takes");
  return table[static_cast<size_t>(code)];
}

inline bool torch_type(DLDataType type, int32_t& code) {
  for (const TypePair& pair : types()) {
    const DLDataType& one = pair.dlpack;
    if (one.code == type.code && one.bits == type.bits && one.lanes == type.lanes) {
      code = pair.torch();
      return true;
    }
  }
  return false;
}

// Arguments ------------------------------------------------------------------------------------------------------------

// A tensor of torch's, owned.
class Handle {
 public:
  Handle() = default;
  Handle(const Handle&) = delete;
  Handle& operator=(const Handle&) = delete;
  ~Handle() { reset(); }

  void reset(AtenTensorHandle handle = nullptr) {
    if (handle_ != nullptr) aoti_torch_delete_tensor_object(handle_);
    handle_ = handle;
  }
  AtenTensorHandle get() const { return handle_; }
  AtenTensorHandle release() {
    AtenTensorHandle handle = handle_;
    handle_ = nullptr;
    return handle;
  }

 private:
  AtenTensorHandle handle_ = nullptr;
};

inline int32_t dlpack_device(int32_t type) {
  return type == aoti_torch_device_type_cuda()  ? kDLCUDA
         : type == aoti_torch_device_type_cpu() ? kDLCPU
                                                : kDLExtDev;
}

// One argument, as a launcher takes it, with what it is made of.
struct Argument {
  TVMFFIAny value{};
  Handle handle;
  DLTensor tensor{};
  std::vector<int64_t> numbers;
  std::string bytes;
  TVMFFIByteArray array{};

  void set(int32_t type_index) {
    value = {};
    value.type_index = type_index;
  }

  void describe(const Operator& op) {
    AtenTensorHandle given = handle.get();
    int32_t code = 0, type = 0, index = 0;
    int64_t rank = 0;
    check(op, aoti_torch_get_data_ptr(given, &tensor.data), "get_data_ptr");
    check(op, aoti_torch_get_dim(given, &rank), "get_dim");
    check(op, aoti_torch_get_sizes(given, &tensor.shape), "get_sizes");
    check(op, aoti_torch_get_strides(given, &tensor.strides), "get_strides");
    check(op, aoti_torch_get_dtype(given, &code), "get_dtype");
    check(op, aoti_torch_get_device_type(given, &type), "get_device_type");
    check(op, aoti_torch_get_device_index(given, &index), "get_device_index");
    tensor.ndim = static_cast<int32_t>(rank);
    tensor.dtype = dlpack_type(op, code);
    tensor.device = {static_cast<DLDeviceType>(dlpack_device(type)), index < 0 ? 0 : index};
    set(kTVMFFIDLTensorPtr);
    value.v_ptr = &tensor;
  }

  void pack(const Operator& op, size_t place) {
    bytes.reserve(numbers.size());
    for (const int64_t number : numbers) {
      if (number < 0 || number > 255)
        refuse(op, std::string("ValueError: argument ") + op.shown[place] +
                       ": got a number that is no byte, expected bytes, as a list: 0 to 255 each");
      bytes.push_back(static_cast<char>(number));
    }
    array = {bytes.data(), bytes.size()};
    set(kTVMFFIByteArrayPtr);
    value.v_ptr = &array;
  }

  // Take an argument off torch's stack, and with it what it owns; nothing is refused before all are taken.
  void take(Kind kind, StableIValue given) {
    using torch::stable::detail::to;
    set(kTVMFFINone);
    switch (kind) {
      case Kind::kTensor:
        handle.reset(to<AtenTensorHandle>(given));
        break;
      case Kind::kMaybeTensor:
        handle.reset(to<std::optional<AtenTensorHandle>>(given).value_or(nullptr));
        break;
      case Kind::kInteger:
        set(kTVMFFIInt);
        value.v_int64 = to<int64_t>(given);
        break;
      case Kind::kReal:
        set(kTVMFFIFloat);
        value.v_float64 = to<double>(given);
        break;
      case Kind::kBoolean:
        set(kTVMFFIBool);
        value.v_int64 = to<bool>(given) ? 1 : 0;
        break;
      case Kind::kAddress:
        point(to<int64_t>(given));
        break;
      case Kind::kMaybeAddress:
        if (const auto address = to<std::optional<int64_t>>(given)) point(*address);
        break;
      case Kind::kBytes:
        numbers = to<std::vector<int64_t>>(given);
        break;
    }
  }

  // Make of it what a launcher takes.
  void finish(const Operator& op, Kind kind, size_t place) {
    if (handle.get() != nullptr) describe(op);
    if (kind == Kind::kBytes) pack(op, place);
  }

 private:
  void point(int64_t address) {
    set(kTVMFFIOpaquePtr);
    value.v_ptr = reinterpret_cast<void*>(static_cast<uintptr_t>(address));
  }
};

// Memory ---------------------------------------------------------------------------------------------------------------

class Frame;

// What torch allocated for a call.
struct Allocation {
  DLManagedTensorVersioned managed{};
  Handle handle;
  Frame* frame = nullptr;  // while the call lasts
  std::vector<int64_t> numbers;
};

// What torch allocated for one call, as long as it lives.
class Frame {
 public:
  Frame(const Operator& op, DLDevice device) : device_(device) {
    void* stream = nullptr;
    if (device.device_type != kDLCPU) check(op, stream_of(device.device_id, &stream), "current CUDA stream");
    outer_ = current();
    current() = this;
    TVMFFIEnvSetDLPackManagedTensorAllocator(&Frame::allocate, 0, &allocator_);
    if (device.device_type != kDLCPU) {
      TVMFFIEnvSetStream(device.device_type, device.device_id, stream, &stream_);
    }
  }
  Frame(const Frame&) = delete;
  Frame& operator=(const Frame&) = delete;
  ~Frame() {
    for (size_t place = 0; place < count_; ++place) {
      if (made_[place] != nullptr) made_[place]->frame = nullptr;
    }
    if (device_.device_type != kDLCPU) {
      TVMFFIEnvSetStream(device_.device_type, device_.device_id, stream_, nullptr);
    }
    TVMFFIEnvSetDLPackManagedTensorAllocator(allocator_, 0, nullptr);
    current() = outer_;
  }

  // Give a tensor of TVM-FFI's as one of torch's: the very one that was allocated for it, if it was allocated here.
  AtenTensorHandle taken(const Operator& op, TVMFFIObjectHandle object) {
    const DLTensor& tensor = *TVMFFITensorGetDLTensorPtr(object);
    for (size_t place = 0; place < count_; ++place) {
      Allocation* one = made_[place];
      const bool held = one != nullptr && one->handle.get() != nullptr;
      if (held && one->managed.dl_tensor.data == tensor.data && same_shape(*one, tensor))
        return one->handle.release();
    }
    AtenTensorHandle made = nullptr;
    int32_t code = 0;
    if (!torch_type(tensor.dtype, code)) refuse(op, "an output has an element type that torch has not");
    TVMFFIObjectIncRef(object);
    const std::vector<int64_t> numbers = row_major(tensor);
    const int32_t type =
        tensor.device.device_type == kDLCPU ? aoti_torch_device_type_cpu() : aoti_torch_device_type_cuda();
    const AOTITorchError status = torch_from_blob(
        tensor.data, tensor.ndim, tensor.shape, numbers.data() + tensor.ndim, 0, code, type,
        tensor.device.device_id, &made, aoti_torch_layout_strided(), nullptr, 0,
        [](void*, void* context) { TVMFFIObjectDecRef(context); }, object);
    if (status != TORCH_SUCCESS) TVMFFIObjectDecRef(object);
    check(op, status, "from_blob");
    return made;
  }

 private:
  static constexpr size_t kMost = 32;  // what a call allocates beyond that comes back as torch's view of it

  using StreamOf = AOTITorchError (*)(int32_t device, void** stream);

  static Frame*& current() {
    static thread_local Frame* frame = nullptr;
    return frame;
  }

  // torch's current stream. Its CUDA library is there if a tensor of CUDA is, and need not be where this was linked.
  static AOTITorchError stream_of(int32_t device, void** stream) {
    static const StreamOf function = [] {
      void* library = dlopen("libtorch_cuda.so", RTLD_NOLOAD | RTLD_LAZY);
      void* symbol = library == nullptr ? nullptr : dlsym(library, "aoti_torch_get_current_cuda_stream");
      return reinterpret_cast<StreamOf>(symbol);
    }();
    return function == nullptr ? TORCH_FAILURE : function(device, stream);
  }

  // Write the extents of a tensor, and behind them its strides.
  static std::vector<int64_t> row_major(const DLTensor& tensor) {
    const auto rank = static_cast<size_t>(tensor.ndim);
    std::vector<int64_t> numbers(2 * rank);
    int64_t stride = 1;
    for (size_t axis = rank; axis-- > 0;) {
      numbers[axis] = tensor.shape[axis];
      numbers[rank + axis] = stride;
      stride *= tensor.shape[axis] > 0 ? tensor.shape[axis] : 1;
    }
    return numbers;
  }

  static bool same_shape(const Allocation& one, const DLTensor& tensor) {
    const DLTensor& own = one.managed.dl_tensor;
    bool same =
        own.ndim == tensor.ndim && own.dtype.code == tensor.dtype.code && own.dtype.bits == tensor.dtype.bits;
    for (int32_t axis = 0; same && axis < own.ndim; ++axis) same = own.shape[axis] == tensor.shape[axis];
    return same;
  }

  static void forget(DLManagedTensorVersioned* managed) {
    auto* allocation = static_cast<Allocation*>(managed->manager_ctx);
    if (allocation->frame != nullptr) {
      for (Allocation*& one : allocation->frame->made_) {
        if (one == allocation) one = nullptr;
      }
    }
    delete allocation;
  }

  static int allocate(DLTensor* wanted, DLManagedTensorVersioned** made, void* context,
                      void (*fail)(void* context, const char* kind, const char* message)) {
    int32_t code = 0;
    if (!torch_type(wanted->dtype, code)) {
      fail(context, "TypeError", "torch has no such element type");
      return -1;
    }
    auto* allocation = new Allocation;
    allocation->numbers = row_major(*wanted);
    int64_t* numbers = allocation->numbers.data();
    const bool on_host = wanted->device.device_type == kDLCPU;
    const int32_t type = on_host ? aoti_torch_device_type_cpu() : aoti_torch_device_type_cuda();
    AtenTensorHandle handle = nullptr;
    void* data = nullptr;
    const bool good = aoti_torch_empty_strided(wanted->ndim, numbers, numbers + wanted->ndim, code, type,
                                               wanted->device.device_id, &handle) == TORCH_SUCCESS;
    allocation->handle.reset(handle);
    if (!good || aoti_torch_get_data_ptr(handle, &data) != TORCH_SUCCESS) {
      delete allocation;
      fail(context, "MemoryError", "torch could not allocate it");
      return -1;
    }
    DLManagedTensorVersioned& managed = allocation->managed;
    managed.version = {DLPACK_MAJOR_VERSION, DLPACK_MINOR_VERSION};
    managed.manager_ctx = allocation;
    managed.deleter = &Frame::forget;
    managed.dl_tensor = {data, wanted->device, wanted->ndim, wanted->dtype, numbers, numbers + wanted->ndim,
                         0};
    Frame* frame = current();
    if (frame != nullptr && frame->count_ < kMost) {
      allocation->frame = frame;
      frame->made_[frame->count_++] = allocation;
    }
    *made = &managed;
    return 0;
  }

  DLDevice device_;
  Frame* outer_ = nullptr;
  DLPackManagedTensorAllocator allocator_ = nullptr;
  TVMFFIStreamHandle stream_ = nullptr;
  std::array<Allocation*, kMost> made_{};
  size_t count_ = 0;
};

// Calls ----------------------------------------------------------------------------------------------------------------

// The launcher that lies beside this library, loaded by the first call.
struct Launcher {
  Function main = nullptr;
  Function main_out = nullptr;

  explicit Launcher(const Operator& op) {
    Dl_info here{};
    if (dladdr(reinterpret_cast<const void*>(&op), &here) == 0) refuse(op, "cannot find its own library");
    const std::string library = here.dli_fname;
    const size_t end = library.rfind('/');
    const std::string folder = end == std::string::npos ? "./" : library.substr(0, end + 1);
    void* opened = dlopen((folder + op.launcher).c_str(), RTLD_NOW | RTLD_LOCAL);
    if (opened == nullptr) refuse(op, std::string("cannot load its launcher: ") + dlerror());
    main = find(op, opened, "__tvm_ffi_main");
    main_out = find(op, opened, "__tvm_ffi_main_out");
    load(op, find(op, opened, "__tvm_ffi_load"), folder);
  }

 private:
  static Function find(const Operator& op, void* library, const char* name) {
    void* symbol = dlsym(library, name);
    if (symbol == nullptr) refuse(op, std::string("its launcher lacks ") + name);
    return reinterpret_cast<Function>(symbol);
  }

  // Load the device image: the launcher's own, or the one beside it.
  static void load(const Operator& op, Function function, const std::string& folder) {
    TVMFFIAny result{};
    int32_t count = 0;
    std::array<TVMFFIAny, 2> given{};
    std::array<TVMFFIByteArray, 2> arrays{};
    std::string image;
    if (op.image[0] != '\0') {
      std::ifstream file(folder + op.image, std::ios::binary);
      if (!file) refuse(op, std::string("cannot read ") + folder + op.image);
      image.assign(std::istreambuf_iterator<char>(file), {});
      arrays = {TVMFFIByteArray{image.data(), image.size()},
                TVMFFIByteArray{op.symbols.data(), op.symbols.size()}};
      for (size_t place = 0; place < given.size(); ++place) {
        given[place].type_index = kTVMFFIByteArrayPtr;
        given[place].v_ptr = &arrays[place];
      }
      count = 2;
    }
    if (function(nullptr, given.data(), count, &result) != 0) refuse_raised(op);
  }
};

// Return the launcher of an operator, loaded by whoever asks first.
template <const Operator& op>
const Launcher& launcher_of() {
  static const Launcher launcher(op);
  return launcher;
}

// Load the launcher now; return what is wrong, or null.
template <const Operator& op>
const char* load_launcher() {
  static thread_local std::string problem;
  try {
    launcher_of<op>();
    return nullptr;
  } catch (const std::exception& error) {
    problem = error.what();
    return problem.c_str();
  }
}

template <size_t kCount>
DLDevice device_of(const std::array<Argument, kCount>& arguments) {
  for (const Argument& one : arguments) {
    if (one.handle.get() != nullptr) return one.tensor.device;
  }
  return {kDLCPU, 0};  // which the launcher refuses, if it is for another one
}

// Call the launcher, as torch calls an operator: arguments are popped from the stack, and results put there.
template <const Operator& op, size_t kArguments, size_t kOutputs, bool kGiven>
void call(StableIValue* stack, uint64_t, uint64_t) {
  std::array<Argument, kArguments + (kGiven ? kOutputs : 0)> arguments;
  const auto kind = [](size_t place) { return place < kArguments ? op.kinds[place] : Kind::kTensor; };
  for (size_t place = 0; place < arguments.size(); ++place) arguments[place].take(kind(place), stack[place]);
  const Launcher& launcher = launcher_of<op>();
  std::array<TVMFFIAny, arguments.size()> given{};
  for (size_t place = 0; place < arguments.size(); ++place) {
    arguments[place].finish(op, kind(place), place);
    given[place] = arguments[place].value;
  }
  TVMFFIAny result{};
  Frame frame(op, device_of(arguments));
  const Function function = kGiven ? launcher.main_out : launcher.main;
  if (function(nullptr, given.data(), static_cast<int32_t>(arguments.size()), &result) != 0)
    refuse_raised(op);
  if constexpr (!kGiven && kOutputs > 0) {
    const TVMFFIAny* views = &result;
    if constexpr (kOutputs > 1) {
      const auto* cell = reinterpret_cast<const TVMFFISeqCell*>(reinterpret_cast<const char*>(result.v_obj) +
                                                                sizeof(TVMFFIObject));
      views = static_cast<const TVMFFIAny*>(cell->data);
    }
    for (size_t place = 0; place < kOutputs; ++place) {
      stack[place] = torch::stable::detail::from(frame.taken(op, views[place].v_obj));
    }
    TVMFFIObjectDecRef(result.v_obj);
  }
}

}  // namespace
}  // namespace trunnion
