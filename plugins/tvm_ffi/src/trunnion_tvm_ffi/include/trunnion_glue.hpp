// Between a launcher and a kernel of the CPU target: unpacks the arguments by the kernel's own parameter types.
//
// This header comes before the kernel's text, so that none of its macros can change it.
#pragma once

#include <stdint.h>
#include <trunnion/block.h>

#define TRUNNION_GLUE extern "C" __attribute__((visibility("hidden"), used))

namespace trunnion_glue {

template <typename A, typename B>
constexpr bool same = false;
template <typename A>
constexpr bool same<A, A> = true;

template <typename T>
constexpr bool reference = false;
template <typename T>
constexpr bool reference<T&> = true;
template <typename T>
constexpr bool reference<T&&> = true;

template <unsigned... Index>
struct Ordinals {};

#ifdef __clang__
template <typename T, T... Index>
struct Sequence {
  using type = Ordinals<Index...>;
};
template <unsigned Count>
using Upto = typename __make_integer_seq<Sequence, unsigned, Count>::type;
#else
template <unsigned Count>
using Upto = Ordinals<__integer_pack(Count)...>;
#endif

// One parameter of a kernel; the last one is the block.
template <typename T, bool Last>
struct Parameter {
  static_assert(!reference<T>,
                "a kernel takes its arguments by value: a pointer in the place of a reference");
  static_assert(__is_trivially_copyable(T),
                "a kernel takes bytes: each parameter needs a type that is trivially copyable");

  static T take(void* const* arguments, const trunnion_block_t*, unsigned ordinal) {
    // Copied, because the caller's bytes are aligned as the program says, which may be less than the type wants.
    alignas(T) unsigned char bytes[sizeof(T)];
    __builtin_memcpy(bytes, arguments[ordinal], sizeof(T));
    return *reinterpret_cast<T*>(bytes);
  }
};

template <typename T>
struct Parameter<T, true> {
  static_assert(same<T, const trunnion_block_t*>,
                "the last parameter of a kernel is `const trunnion_block_t*` (#include <trunnion/block.h>)");

  static T take(void* const*, const trunnion_block_t* block, unsigned) { return block; }
};

// The number of parameters, and offset and size of each: as an image's table describes them.
template <unsigned Count>
struct Table {
  uint64_t numbers[1 + 2 * Count];
};

template <typename Function>
struct Kernel {
  static_assert(same<Function, void>,
                "a kernel is a function `void (arguments..., const trunnion_block_t*)`");
};

template <typename Result, typename... Types>
struct Kernel<Result (*)(Types...)> {
  static_assert(same<Result, void>, "a kernel returns nothing: its type is void");
  static_assert(sizeof...(Types) != 0,
                "the last parameter of a kernel is `const trunnion_block_t*` (#include <trunnion/block.h>)");

  static constexpr unsigned kCount = sizeof...(Types);

  static void call(Result (*kernel)(Types...), void* const* arguments, const trunnion_block_t* block) {
    call(kernel, arguments, block, Upto<kCount>());
  }

  static constexpr Table<kCount - 1> table() {
    constexpr uint64_t sizes[] = {sizeof(Types)...};
    constexpr uint64_t alignments[] = {alignof(Types)...};
    Table<kCount - 1> made = {};
    made.numbers[0] = kCount - 1;
    uint64_t end = 0;
    for (unsigned ordinal = 0; ordinal + 1 < kCount; ++ordinal) {
      const uint64_t offset = (end + alignments[ordinal] - 1) / alignments[ordinal] * alignments[ordinal];
      made.numbers[1 + 2 * ordinal] = offset;
      made.numbers[2 + 2 * ordinal] = sizes[ordinal];
      end = offset + sizes[ordinal];
    }
    return made;
  }

 private:
  template <unsigned... Ordinal>
  static void call(Result (*kernel)(Types...), void* const* arguments, const trunnion_block_t* block,
                   Ordinals<Ordinal...>) {
    kernel(Parameter<Types, Ordinal + 1 == kCount>::take(arguments, block, Ordinal)...);
  }
};

template <typename Result, typename... Types>
struct Kernel<Result (*)(Types...) noexcept> : Kernel<Result (*)(Types...)> {};

}  // namespace trunnion_glue
