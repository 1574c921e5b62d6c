// Calls an exported module that adds two vectors: usage: add MODULE. Links with libtvm_ffi, knows nothing of trunnion.
#include <tvm/ffi/container/tensor.h>
#include <tvm/ffi/error.h>
#include <tvm/ffi/extra/module.h>
#include <tvm/ffi/function.h>

#include <cstdint>
#include <cstdio>

namespace {

constexpr int64_t kCount = 1000;

// A row of numbers in this process's memory. On a GPU: the device's address, and {kDLCUDA, ordinal}.
struct Row {
  float values[kCount];
  int64_t shape[1] = {kCount};
  int64_t strides[1] = {1};

  DLTensor tensor() {
    return DLTensor{values, DLDevice{kDLCPU, 0}, 1, DLDataType{kDLFloat, 32, 1}, shape, strides, 0};
  }
};

Row a, b, c;

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  for (int64_t i = 0; i < kCount; i++) {
    a.values[i] = static_cast<float>(i);
    b.values[i] = 0.5f;
  }
  DLTensor left = a.tensor(), right = b.tensor(), sum = c.tensor();
  try {
    const tvm::ffi::Module module = tvm::ffi::Module::LoadFromFile(argv[1]);
    const tvm::ffi::Function add = module->GetFunction("main_out", false).value();
    add(&left, &right, &sum);  // on a GPU: a fourth argument, the stream as void*
  } catch (const tvm::ffi::Error& error) {
    std::fprintf(stderr, "%s: %s\n", error.kind().c_str(), error.message().c_str());
    return 1;
  }
  for (int64_t i = 0; i < kCount; i++) {
    if (c.values[i] != a.values[i] + b.values[i]) return 3;
  }
  std::printf("%lld sums\n", static_cast<long long>(kCount));
  return 0;
}
