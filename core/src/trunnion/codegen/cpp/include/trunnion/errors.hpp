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
  Raising(const char* kind, const char* type) : kind_(kind) {
    fields_ << "trunnion/1 ";
    field(type, std::strlen(type));
  }

  Raising& field(const char* bytes, size_t count) {
    fields_ << static_cast<uint64_t>(count) << ":";
    fields_.append(bytes, count) << ",";
    return *this;
  }

  Raising& field(const Text& text) { return field(text.data(), text.size()); }
  Raising& field(const char* text) { return field(text, std::strlen(text)); }

  // Always false, so that a caller can return it.
  bool with(const Text& message) {
    Text shown, hidden;
    shown.append_valid(message, false);
    hidden.append_valid(fields_, true);
    const TVMFFIByteArray kind{kind_, std::strlen(kind_)};
    const TVMFFIByteArray text{shown.data(), shown.size()};
    const TVMFFIByteArray fields{hidden.data(), hidden.size()};
    TVMFFIObjectHandle error = nullptr;
    if (TVMFFIErrorCreate(&kind, &text, &fields, &error) == 0) {
      TVMFFIErrorSetRaised(error);
      TVMFFIObjectDecRef(error);
    }
    return false;
  }

 private:
  const char* kind_;
  Text fields_;
};

TRUNNION_COLD inline bool raise_argument(const char* kind, const char* type, const Name& argument,
                                         const Text& got, const Text& expected) {
  Text message;
  if (argument.size != 0) message << "argument " << argument << ": ";
  message << "got " << got << ", expected " << expected;
  return Raising(kind, type).field(argument.text, argument.size).field(got).field(expected).with(message);
}

TRUNNION_COLD inline bool raise_argument_type(const Name& argument, const Text& got, const Text& expected) {
  return raise_argument("TypeError", "ArgumentTypeError", argument, got, expected);
}

TRUNNION_COLD inline bool raise_argument_value(const Name& argument, const Text& got, const Text& expected) {
  return raise_argument("ValueError", "ArgumentValueError", argument, got, expected);
}

// An error whose only field is its text: ExprError (ValueError), CaptureError and LifecycleError (RuntimeError).
TRUNNION_COLD inline bool raise_plain(const char* kind, const char* type, const Text& message) {
  return Raising(kind, type).field(message).with(message);
}

TRUNNION_COLD inline bool raise_expr(const Text& message) {
  return raise_plain("ValueError", "ExprError", message);
}

TRUNNION_COLD inline bool raise_capture(const Text& message) {
  return raise_plain("RuntimeError", "CaptureError", message);
}

TRUNNION_COLD inline bool raise_lifecycle(const char* message) {
  Text text;
  text << message;
  return raise_plain("RuntimeError", "LifecycleError", text);
}

TRUNNION_COLD inline bool raise_requirement(const Text& requirement, const Text& got, const char* hint = "") {
  Text message;
  message << "needs " << requirement << ", got " << got;
  if (*hint != '\0') message << "; " << hint;
  return Raising("RuntimeError", "DeviceRequirementError")
      .field(requirement)
      .field(got)
      .field(hint)
      .with(message);
}

// A symbol that no argument of the call gives a value: the places where it stands in vain, as one text each.
TRUNNION_COLD inline bool raise_unbound(const Name& symbol, const Name* places, uint32_t count) {
  constexpr uint32_t kMost = 12;
  Text message;
  message << "symbol " << symbol
          << " has no value: no input has it as a bare dimension, stride or scalar (it stands here: ";
  Raising raising("ValueError", "UnboundSymbolError");
  raising.field(symbol.text, symbol.size);
  for (uint32_t index = 0; index < count; ++index) {
    raising.field(places[index].text, places[index].size);
    if (index < kMost) (message << (index != 0 ? ", " : "")).append(places[index].text, places[index].size);
  }
  if (count > kMost) message << " and " << count - kMost << " more";
  message << "); add a parameter that does";
  return raising.with(message);
}

}  // namespace trunnion
