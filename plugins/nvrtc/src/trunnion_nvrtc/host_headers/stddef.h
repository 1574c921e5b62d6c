// NVRTC brings size_t, ptrdiff_t and NULL. libcu++'s offsetof, which may have come before, is
// no constant.
#pragma once

#undef offsetof
#define offsetof(type, member) __INTADDR__(&(((type*)0)->member))

#if __cplusplus >= 201703L && __has_include(<cuda/std/cstddef>)
#include <cuda/std/cstddef>
#else
namespace std {
using nullptr_t = decltype(nullptr);
using ::ptrdiff_t;
using ::size_t;
}  // namespace std
using std::nullptr_t;
#endif
