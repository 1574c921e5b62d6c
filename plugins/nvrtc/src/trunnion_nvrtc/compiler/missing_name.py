"""In which header a name is that a source uses and that NVRTC does not know: nvcc has many of them without any."""

from __future__ import annotations

import re

__all__ = ["name_hints"]

_UNKNOWN = re.compile(r'identifier "(\w+)" is undefined|namespace "std" has no member "(\w+)"')
_INTEGER = r"u?int(?:_least|_fast)?(?:8|16|32|64)_t|u?int(?:max|ptr)_t"

_GLOBAL = (
    (_INTEGER + r"|U?INT(?:8|16|32|64)_(?:MAX|MIN)|SIZE_MAX", "cstdint"),
    (r"(?:FLT|DBL)_(?:MAX|MIN|EPSILON|TRUE_MIN|DIG|MANT_DIG|MAX_EXP|MIN_EXP)", "cfloat"),
    (r"CHAR_BIT|(?:S?CHAR|SHRT|INT|LONG|LLONG)_(?:MAX|MIN)|U(?:CHAR|SHRT|INT|LONG|LLONG)_MAX", "climits"),
    (r"INFINITY|NAN|HUGE_VALF?|M_(?:E|LOG2E|LOG10E|LN2|LN10|PI|PI_2|PI_4|1_PI|2_PI|2_SQRTPI|SQRT2|SQRT1_2)", "math.h"),
    (r"__half2?|half2?|__float2half(?:_rn)?|__half2float", "cuda_fp16.h"),
    (r"__nv_bfloat162?|nv_bfloat162?|__float2bfloat16|__bfloat162float", "cuda_bf16.h"),
    (r"__nv_fp8_e[45]m[23]", "cuda_fp8.h"),
    (r"CUDART_(?!VERSION|CB|DEVICE)\w+", "math_constants.h"),
    (r"CUtensorMap|CUdeviceptr", "cuda.h"),
)  # fmt: skip
_IN_STD = (
    (_INTEGER, "cstdint"),
    (r"size_t|ptrdiff_t|nullptr_t|byte", "cstddef"),
    (r"min|max|clamp", "algorithm"),
    (r"printf", "cstdio"),
    (r"memcpy|memset", "cstring"),
    (r"numeric_limits", "limits"),
    (r"tuple|make_tuple|get|tuple_size(?:_v)?|tie", "tuple"),
    (r"array", "array"),
    (r"pair|make_pair|swap|exchange|declval|(?:make_)?(?:index|integer)_sequence", "utility"),
    (r"is_\w+|enable_if(?:_t)?|conditional(?:_t)?|decay(?:_t)?|remove_\w+|integral_constant|(?:true|false)_type",
     "type_traits"),
    (r"sqrt|abs|fabs|pow|exp2?|log(?:2|10|1p)?|sin|cos|tanh?|floor|ceil|round|trunc|fmax|fmin|fma|isnan|isinf|erf",
     "cmath"),
)  # fmt: skip


def name_hints(log: str) -> list[str]:
    """Return a hint for each name that a log says to be unknown, if a header that can be included has it."""
    found = dict.fromkeys(_UNKNOWN.findall(log))
    return [hint for alone, in_std in found for hint in (_hint(alone, in_std),) if hint]


def _hint(alone: str, in_std: str) -> str | None:
    name, table = (alone, _GLOBAL) if alone else (in_std, _IN_STD)
    header = next((header for names, header in table if re.fullmatch(names, name)), None)
    return (
        None if header is None else f"hint: {name if alone else f'std::{name}'} is in <{header}>; include it"
    )
