// Integers of a width, each as libcu++ has it, whose own header comes first where there is one.
#pragma once

#if __cplusplus >= 201703L && __has_include(<cuda/std/cstdint>)
#include <cuda/std/cstdint>
#else
typedef signed char int8_t;
typedef unsigned char uint8_t;
typedef short int16_t;
typedef unsigned short uint16_t;
typedef int int32_t;
typedef unsigned int uint32_t;
typedef long long int64_t;
typedef unsigned long long uint64_t;
typedef int8_t int_least8_t;
typedef uint8_t uint_least8_t;
typedef int16_t int_least16_t;
typedef uint16_t uint_least16_t;
typedef int32_t int_least32_t;
typedef uint32_t uint_least32_t;
typedef int64_t int_least64_t;
typedef uint64_t uint_least64_t;
typedef int8_t int_fast8_t;
typedef uint8_t uint_fast8_t;
typedef int16_t int_fast16_t;
typedef uint16_t uint_fast16_t;
typedef int32_t int_fast32_t;
typedef uint32_t uint_fast32_t;
typedef int64_t int_fast64_t;
typedef uint64_t uint_fast64_t;
typedef int64_t intptr_t;
typedef uint64_t uintptr_t;
typedef int64_t intmax_t;
typedef uint64_t uintmax_t;

#define INT8_MAX 127
#define INT8_MIN (-127 - 1)
#define UINT8_MAX 0xff
#define INT16_MAX 32767
#define INT16_MIN (-32767 - 1)
#define UINT16_MAX 0xffff
#define INT32_MAX 2147483647
#define INT32_MIN (-2147483647 - 1)
#define UINT32_MAX 0xffffffffU
#define INT64_MAX 9223372036854775807LL
#define INT64_MIN (-9223372036854775807LL - 1)
#define UINT64_MAX 0xffffffffffffffffULL
#define INT_LEAST8_MAX 127
#define INT_LEAST8_MIN (-127 - 1)
#define UINT_LEAST8_MAX 0xff
#define INT_LEAST16_MAX 32767
#define INT_LEAST16_MIN (-32767 - 1)
#define UINT_LEAST16_MAX 0xffff
#define INT_LEAST32_MAX 2147483647
#define INT_LEAST32_MIN (-2147483647 - 1)
#define UINT_LEAST32_MAX 0xffffffffU
#define INT_LEAST64_MAX 9223372036854775807LL
#define INT_LEAST64_MIN (-9223372036854775807LL - 1)
#define UINT_LEAST64_MAX 0xffffffffffffffffULL
#define INT_FAST8_MAX 127
#define INT_FAST8_MIN (-127 - 1)
#define UINT_FAST8_MAX 0xff
#define INT_FAST16_MAX 32767
#define INT_FAST16_MIN (-32767 - 1)
#define UINT_FAST16_MAX 0xffff
#define INT_FAST32_MAX 2147483647
#define INT_FAST32_MIN (-2147483647 - 1)
#define UINT_FAST32_MAX 0xffffffffU
#define INT_FAST64_MAX 9223372036854775807LL
#define INT_FAST64_MIN (-9223372036854775807LL - 1)
#define UINT_FAST64_MAX 0xffffffffffffffffULL
#define INTPTR_MAX 9223372036854775807LL
#define INTPTR_MIN (-9223372036854775807LL - 1)
#define UINTPTR_MAX 0xffffffffffffffffULL
#define INTMAX_MAX 9223372036854775807LL
#define INTMAX_MIN (-9223372036854775807LL - 1)
#define UINTMAX_MAX 0xffffffffffffffffULL
#define SIZE_MAX 0xffffffffffffffffULL
#define PTRDIFF_MAX 9223372036854775807LL
#define PTRDIFF_MIN (-9223372036854775807LL - 1)

#define INT8_C(value) value
#define UINT8_C(value) value
#define INT16_C(value) value
#define UINT16_C(value) value
#define INT32_C(value) value
#define UINT32_C(value) value##U
#define INT64_C(value) value##LL
#define UINT64_C(value) value##ULL
#define INTMAX_C(value) value##LL
#define UINTMAX_C(value) value##ULL
#endif
