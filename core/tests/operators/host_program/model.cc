// Runs a model that torch compiled ahead of time, in which an operator of a library is called: usage: model LIBRARY MODEL.
// Links with torch, knows nothing of trunnion or Python.
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <dlfcn.h>
#include <torch/csrc/inductor/aoti_package/model_package_loader.h>

#include <cstdio>

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  if (dlopen(argv[1], RTLD_NOW) == nullptr) {
    std::fprintf(stderr, "%s\n", dlerror());
    return 3;
  }
  torch::inductor::AOTIModelPackageLoader model(argv[2]);
  const at::Tensor x = at::ones({5}, at::kDouble);
  const std::vector<at::Tensor> made = model.run({x});  // 2 (x + 1)^2
  if (!at::equal(made.at(0), at::full({5}, 8.0, at::kDouble))) return 4;
  std::printf("%lld elements\n", static_cast<long long>(made.at(0).numel()));
  return 0;
}
