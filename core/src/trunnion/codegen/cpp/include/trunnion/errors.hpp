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

// Refusals ------------------------------------------------------------------------------------------------------------

// Words that are shown as they are.
struct Words {
  Words(const char* words) : text(words), size(std::strlen(words)) {}
  Words(const Text& words) : text(words.data()), size(words.size()) {}
  Words(const Name& words) : text(words.text), size(words.size) {}

  const char* text;
  size_t size;
};

// An integer of 64 bits, with or without a sign.
struct Number {
  Number(int32_t value) : bits(value) {}
  Number(int64_t value) : bits(value) {}
  Number(uint64_t value) : bits(static_cast<int64_t>(value)), is_signed(false) {}

  int64_t bits;
  bool is_signed = true;
};

// A field of a refusal, and how it is shown; see FieldKind in trunnion.model.plan.refusals.
class Field {
 public:
  static Field raw(const Words& words) { return {Kind::kRaw, words.text, words.size}; }
  static Field name(const Name& name) { return {Kind::kName, name.text, name.size}; }
  static Field author(const Name& words) { return {Kind::kAuthor, words.text, words.size}; }
  static Field number(const Number& number) {
    return {number.is_signed ? Kind::kSigned : Kind::kUnsigned, number.bits};
  }
  static Field address(uint64_t value) { return {Kind::kAddress, static_cast<int64_t>(value)}; }
  static Field axis(int64_t value) { return {Kind::kAxis, value}; }
  static Field version(int64_t value) { return {Kind::kVersion, value}; }
  // Of a tensor whose rank is negative, as anybody's C may say, there are none.
  static Field dims(const int64_t* numbers, int32_t count) {
    return {Kind::kDims, numbers, count > 0 ? static_cast<size_t>(count) : 0};
  }
  static Field names(const Name* names, int32_t count) {
    return {Kind::kNames, names, static_cast<size_t>(count)};
  }
  static Field places(const Name* places, int32_t count) {
    return {Kind::kPlaces, places, static_cast<size_t>(count)};
  }

  // `before` is what the field in front of this one is shown as.
  void show(Text& text, const Text& before) const;

  // Send the field along, as `RefusalRow.read` of Python takes it.
  void send(Raising& raising) const;

 private:
  enum class Kind {
    kRaw,
    kName,
    kAuthor,
    kSigned,
    kUnsigned,
    kAddress,
    kAxis,
    kVersion,
    kDims,
    kNames,
    kPlaces
  };

  Field(Kind kind, const void* what, size_t count) : kind_(kind), what_(what), count_(count) {}
  Field(Kind kind, int64_t value) : kind_(kind), value_(value) {}

  void list(Text& text, const char* comma, size_t most) const;

  Kind kind_;
  const void* what_ = nullptr;
  size_t count_ = 0;
  int64_t value_ = 0;
};

// How the texts of an error make a message, as its class in trunnion.errors has it.
enum class Form { kArgument, kRequirement, kMessage, kPlaced };

// A row of the table of refusals.
struct RefusalRow {
  const char* id;
  const char* kind;
  Form form;
  const char* texts[3];  // a field is its position in braces
};

// Raise the error of a row; always false. `place` is where the argument was given, if its name does not say that.
bool refuse(const RefusalRow& row, const Field* fields = nullptr, uint32_t count = 0,
            const char* place = nullptr);

template <uint32_t Count>
bool refuse(const RefusalRow& row, const Field (&fields)[Count], const char* place = nullptr) {
  return refuse(row, fields, Count, place);
}

}  // namespace trunnion
