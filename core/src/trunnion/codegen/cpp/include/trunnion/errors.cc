#include <trunnion/errors.hpp>

namespace trunnion {

Raising::Raising(const char* kind, const char* type) : kind_(kind) {
  fields_ << "trunnion/1 ";
  field(type, std::strlen(type));
}

Raising& Raising::field(const char* bytes, size_t count) {
  fields_ << static_cast<uint64_t>(count) << ":";
  fields_.append(bytes, count) << ",";
  return *this;
}

Raising& Raising::field(const Text& text) { return field(text.data(), text.size()); }

Raising& Raising::field(const char* text) { return field(text, std::strlen(text)); }

bool Raising::with(const Text& message) {
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

bool raise_argument(const char* kind, const char* type, const Name& argument, const Text& got,
                    const Text& expected) {
  Text message;
  if (argument.size != 0) message << "argument " << argument;
  if (argument.place != nullptr) message << " (" << argument.place << ")";
  message << (argument.size != 0 ? ": got " : "got ") << got << ", expected " << expected;
  Raising raising(kind, type);
  raising.field(argument.text, argument.size).field(got).field(expected);
  if (argument.place != nullptr) raising.field(argument.place);
  return raising.with(message);
}

bool raise_argument_type(const Name& argument, const Text& got, const Text& expected) {
  return raise_argument("TypeError", "ArgumentTypeError", argument, got, expected);
}

bool raise_argument_value(const Name& argument, const Text& got, const Text& expected) {
  return raise_argument("ValueError", "ArgumentValueError", argument, got, expected);
}

bool raise_plain(const char* kind, const char* type, const Text& message) {
  return Raising(kind, type).field(message).with(message);
}

bool raise_expr(const Text& message) { return raise_plain("ValueError", "ExprError", message); }

bool raise_capture(const Text& message) { return raise_plain("RuntimeError", "CaptureError", message); }

bool raise_lifecycle(const char* message) {
  Text text;
  text << message;
  return raise_plain("RuntimeError", "LifecycleError", text);
}

bool raise_requirement(const Text& requirement, const Text& got, const char* hint) {
  Text message;
  message << "needs " << requirement << ", got " << got;
  if (*hint != '\0') message << "; " << hint;
  return Raising("RuntimeError", "DeviceRequirementError")
      .field(requirement)
      .field(got)
      .field(hint)
      .with(message);
}

bool raise_unbound(const Name& symbol, const Name* places, uint32_t count) {
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
