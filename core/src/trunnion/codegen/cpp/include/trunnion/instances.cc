#include <trunnion/instances.hpp>
#include <trunnion/scalars.hpp>

namespace trunnion {

static constexpr int32_t kRetired = -1;

static int32_t programs = 0;  // that are not forgotten; `kRetired`: none will be any more

static bool add_program() {
  int32_t before = __atomic_load_n(&programs, __ATOMIC_RELAXED);
  while (before != kRetired) {
    if (__atomic_compare_exchange_n(&programs, &before, before + 1, false, __ATOMIC_ACQ_REL,
                                    __ATOMIC_RELAXED))
      return true;
  }
  return false;
}

void leave_program(Program& program) {
  if (!program.leave() || !program.is_over()) return;
  program.forget();
  std::free(&program);
  __atomic_sub_fetch(&programs, 1, __ATOMIC_ACQ_REL);
}

static int give_function(Program& program, TVMFFISafeCallType call, TVMFFIAny* result) {
  Held function;
  program.hold();
  const auto gone = [](void* self) { leave_program(*static_cast<Program*>(self)); };
  if (TVMFFIFunctionCreate(&program, call, gone, function.out()) != 0) return leave_program(program), -1;
  *result = function.release(kTVMFFIFunction);
  return 0;
}

int open_program(const LibraryRule& rule, TVMFFIAny* result) {
  give_nothing(result);
  if (!add_program()) return 0;
  void* memory = nullptr;
  if (posix_memalign(&memory, rule.alignment, rule.size) != 0) {
    __atomic_sub_fetch(&programs, 1, __ATOMIC_ACQ_REL);
    return raise_no_own_memory(), -1;
  }
  Program& program = *rule.make(memory);
  program.count_holders();
  return give_function(program, rule.exports[0].function, result);
}

int find_export(Program& program, const LibraryRule& rule, const TVMFFIAny* given, int32_t count,
                TVMFFIAny* result) {
  constexpr Name kName{"name", 4};
  TVMFFIByteArray name{};
  if (count != 1) return raise_count(count, &kName, 1), -1;
  give_nothing(result);
  if (!view_bytes(given[0], name)) return raise_trailing("name", given[0], "bytes"), -1;
  for (const Export* one = rule.exports; one->name != nullptr; ++one) {
    const bool same =
        std::strlen(one->name) == name.size && std::memcmp(one->name, name.data, name.size) == 0;
    if (same) return give_function(program, one->function, result);
  }
  return 0;
}

int retire_library(TVMFFIAny* result) {
  int32_t none = 0;
  const bool retired =
      __atomic_compare_exchange_n(&programs, &none, kRetired, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED) ||
      none == kRetired;
  give_nothing(result);
  result->type_index = kTVMFFIBool;
  result->v_int64 = retired;
  return 0;
}

}  // namespace trunnion
