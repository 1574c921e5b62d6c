// What people use of the host's headers, for a source that includes all of them before this text.
enum class Color : uint8_t { red };
struct Pair {
  int first, second;
};
struct Base {};
struct Derived final : Base {
  int x;
};
static_assert(offsetof(Pair, second) == 4, "");
static_assert(sizeof(std::int64_t) == 8 && sizeof(int8_t) == 1 && sizeof(uintptr_t) == 8 &&
                  sizeof(std::uint16_t) == 2,
              "");
static_assert(INT32_MAX == 2147483647 && UINT64_MAX == ~0ull && INT64_MIN < 0 && INT8_MIN == -128 &&
                  SIZE_MAX == UINT64_MAX,
              "");
static_assert(std::is_same_v<std::remove_cv_t<const volatile int>, int> &&
                  std::is_same<std::decay_t<const int (&)[3]>, const int*>::value,
              "");
static_assert(std::is_same_v<std::decay_t<void (&)(int)>, void (*)(int)>, "");
static_assert(std::is_same_v<std::underlying_type_t<Color>, uint8_t> && std::is_enum_v<Color> &&
                  !std::is_enum_v<int>,
              "");
static_assert(std::is_integral_v<const unsigned> && !std::is_integral_v<float> &&
                  std::is_floating_point_v<double> && std::is_signed_v<int> && std::is_unsigned_v<size_t> &&
                  !std::is_signed_v<Base>,
              "");
static_assert(std::is_base_of_v<Base, Derived> && std::is_final_v<Derived> && std::is_empty_v<Base> &&
                  std::is_convertible_v<int, float> && !std::is_convertible_v<Base, int>,
              "");
static_assert(std::is_same_v<std::conditional_t<true, int, float>, int> &&
                  std::is_same_v<std::enable_if_t<true, int>, int>,
              "");
static_assert(std::is_pointer_v<int* const> && !std::is_pointer_v<int> && std::is_reference_v<int&&> &&
                  std::is_array_v<int[2]> && std::is_function_v<int(int)> && !std::is_function_v<int>,
              "");
static_assert(std::is_same_v<std::make_unsigned_t<int>, unsigned> &&
                  std::is_same_v<std::make_signed_t<unsigned char>, signed char>,
              "");
static_assert(std::conjunction_v<std::true_type, std::is_void<void>> && std::negation_v<std::false_type>, "");
static_assert(std::is_trivially_copyable_v<Derived> && std::is_same_v<decltype(std::declval<int>()), int&&> &&
                  std::is_void_v<std::void_t<int>>,
              "");
static_assert(sizeof(CUtensorMap) == 128 && alignof(CUtensorMap) == 64 && CUDA_VERSION >= 13000, "");
static_assert(std::make_index_sequence<4>::size() == 4 &&
                  std::is_same_v<std::make_index_sequence<2>, std::index_sequence<0, 1>>,
              "");
static_assert(FLT_MAX > 3e38f && FLT_EPSILON == 1.0f / (1 << 23) && DBL_MAX > 1e308 &&
                  DBL_EPSILON == 1.0 / (1ll << 52) && FLT_MANT_DIG == 24 && DBL_MIN > 0,
              "");
static_assert(M_PI > 3.14159 && M_PI_2 * 2 == M_PI && M_LN2 < M_SQRT1_2 && M_E < M_PI, "");
static_assert(std::max(2, 3) == 3 && std::min(4, 2) == 2 && std::clamp(7, 0, 5) == 5, "");
template <std::size_t... I>
__device__ int sum(std::index_sequence<I...>) {
  return (int(I) + ...);
}
template <class T, std::enable_if_t<std::is_integral<T>::value, int> = 0>
__device__ T one(T&& x) {
  return std::forward<T>(x);
}
extern "C" __global__ void k(const __grid_constant__ CUtensorMap map, int* x, CUdeviceptr p, cudaStream_t s,
                             int32_t n) {
  cudaGridDependencySynchronize();
  std::printf("%d of %f\n", n, M_PI);
  printf("%f\n", HUGE_VAL + HUGE_VALF + INFINITY);
  std::memcpy(x + 1, x, std::size_t(4));
  memset(x + 2, 0, 4);
  assert(x[0] == 0);
  auto pair = std::make_pair(n, 2.0f);
  int a = std::move(pair.first), b = sum(std::make_index_sequence<4>{});
  std::swap(a, b);
  std::nullptr_t null = nullptr;
  void* m = malloc(4);
  x[0] =
      a + b + std::abs(n) + one(3) + (m == null) + offsetof(Derived, x) + EXIT_SUCCESS + std::exchange(a, 4);
  std::free(m);
  cudaTriggerProgrammaticLaunchCompletion();
}
