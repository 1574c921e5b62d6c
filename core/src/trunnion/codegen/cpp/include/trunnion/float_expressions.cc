#include <trunnion/float_expressions.hpp>

namespace trunnion {

bool raise_float(double value, const char* type, const char* text) {
  Text shown;
  shown << value;
  return value - value != 0 ? raise_not_finite(shown, text) : raise_float_unfit(shown, text, type);
}

}  // namespace trunnion
