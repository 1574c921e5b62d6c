// The results of floating-point expressions: finite, and rounded once to the type in which they travel.
#pragma once

#include <trunnion/scalars.hpp>

namespace trunnion {

// `text` is the author's own, of the expression; it holds no null character.
bool raise_float(double value, const char* type, const char* text);

// The result of an expression in a type; false, and raised: it is infinite or NaN, or the type cannot hold it.
template <typename Part>
bool round_result(double value, const char* type, const FloatFormat* format, const char* text, Part& out) {
  const bool held = value - value == 0 && round_to(value, format, out);
  return TRUNNION_UNLIKELY(!held) ? raise_float(value, type, text) : true;
}

}  // namespace trunnion
