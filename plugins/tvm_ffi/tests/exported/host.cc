// Calls a module that trunnion exported: usage: host MODULE. Knows TVM-FFI, and nothing of trunnion.
#include <tvm/ffi/container/tensor.h>
#include <tvm/ffi/error.h>
#include <tvm/ffi/extra/module.h>
#include <tvm/ffi/function.h>

#include <cstdint>
#include <cstdio>

namespace {

constexpr int64_t kLength = 1000;

struct Row {
  float values[kLength];
  int64_t shape[1] = {kLength};

  DLTensor on(DLDeviceType kind) {
    return DLTensor{values, DLDevice{kind, 0}, 1, DLDataType{kDLFloat, 32, 1}, shape, nullptr, 0};
  }
};

Row a, b, c;

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  for (int64_t i = 0; i < kLength; i++) a.values[i] = static_cast<float>(i), b.values[i] = 0.5f;
  DLTensor left = a.on(kDLCUDA), right = b.on(kDLCUDA), sum = c.on(kDLCUDA), elsewhere = b.on(kDLCPU);
  const tvm::ffi::Module module = tvm::ffi::Module::LoadFromFile(argv[1]);
  const tvm::ffi::Function add = module->GetFunction("main_out", false).value();
  try {
    add(&left, &elsewhere, &sum);
  } catch (const tvm::ffi::Error& error) {
    std::printf("%s: %s\n", error.kind().c_str(), error.message().c_str());
  }
  add(&left, &right, &sum, reinterpret_cast<void*>(0x40));
  for (int64_t i = 0; i < kLength; i++) {
    if (c.values[i] != a.values[i] + b.values[i]) return 3;
  }
  module->GetFunction("close", false).value()();
  return 0;
}
