// How a launcher raises: a built-in kind and a readable message for everybody, and the typed error's fields for trunnion.
//
// Only kind, message and backtrace cross TVM-FFI's C ABI, and an unregistered kind becomes RuntimeError. So the fields
// travel in the backtrace, which nobody is shown: "trunnion/1 " and netstrings ("<bytes>:<text>,"), the class first, all
// of it escaped: TVM-FFI takes nothing but valid UTF-8, and a user's text may be otherwise.
#pragma once

#include <tvm/ffi/c_api.h>

#include <trunnion/text.hpp>

#define TRUNNION_COLD [[gnu::cold, gnu::noinline]]
#define TRUNNION_UNLIKELY(condition) (__builtin_expect(static_cast<bool>(condition), 0))

namespace trunnion {

// One typed error on its way out.
class Raising {
 public:
  Raising(const char* kind, const char* type);

  Raising& field(const char* bytes, size_t count);

  Raising& field(const Text& text);
  Raising& field(const char* text);

  // Always false, so that a caller can return it.
  bool with(const Text& message);

 private:
  const char* kind_;
  Text fields_;
};

bool raise_argument(const char* kind, const char* type, const Name& argument, const Text& got,
                    const Text& expected);

bool raise_argument_type(const Name& argument, const Text& got, const Text& expected);

bool raise_argument_value(const Name& argument, const Text& got, const Text& expected);

// An error whose only field is its text: ExprError (ValueError), CaptureError and LifecycleError (RuntimeError).
bool raise_plain(const char* kind, const char* type, const Text& message);

bool raise_expr(const Text& message);

bool raise_capture(const Text& message);

bool raise_lifecycle(const char* message);

bool raise_requirement(const Text& requirement, const Text& got, const char* hint = "");

// A symbol that no argument of the call gives a value: the places where it stands in vain, as one text each.
bool raise_unbound(const Name& symbol, const Name* places, uint32_t count);

}  // namespace trunnion
