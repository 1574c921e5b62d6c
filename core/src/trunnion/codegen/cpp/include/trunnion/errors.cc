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

void Field::list(Text& text, const char* comma, size_t most) const {
  const auto* names = static_cast<const Name*>(what_);
  for (size_t index = 0; index < count_ && index < most; ++index) {
    text << (index != 0 ? comma : "");
    if (kind_ == Kind::kNames) {
      text << names[index];
    } else {
      text.append(names[index].text, names[index].size);
    }
  }
  if (count_ > most) text << " and " << static_cast<uint64_t>(count_ - most) << " more";
}

void Field::show(Text& text, const Text& before) const {
  constexpr size_t kMostPlaces = 12;
  const auto* bytes = static_cast<const char*>(what_);
  switch (kind_) {
    case Kind::kRaw:
      text.append(bytes, count_);
      return;
    case Kind::kName:
      text << Name{bytes, static_cast<uint32_t>(count_)};
      return;
    case Kind::kAuthor:
      if (count_ != before.size() || std::memcmp(bytes, before.data(), count_) != 0)
        (text << " (").append(bytes, count_) << ")";
      return;
    case Kind::kSigned:
      text << value_;
      return;
    case Kind::kUnsigned:
      text << static_cast<uint64_t>(value_);
      return;
    case Kind::kAddress:
      text.hexadecimal(static_cast<uint64_t>(value_));
      return;
    case Kind::kAxis:
      text.append(&"xyz"[value_], 1);
      return;
    case Kind::kVersion:
      text << value_ / 1000 << "." << value_ % 1000 / 10;
      return;
    case Kind::kDims:
      describe_numbers(text, static_cast<const int64_t*>(what_), static_cast<int32_t>(count_));
      return;
    case Kind::kNames:
      text << static_cast<uint64_t>(count_) << (count_ != 0 ? " (" : " (none");
      list(text, ", ", SIZE_MAX);
      text << ")";
      return;
    case Kind::kPlaces:
      list(text, ", ", kMostPlaces);
  }
}

void Field::send(Raising& raising) const {
  Text text;
  switch (kind_) {
    case Kind::kRaw:
    case Kind::kName:
    case Kind::kAuthor:
      raising.field(static_cast<const char*>(what_), count_);
      return;
    case Kind::kDims:
      for (size_t index = 0; index < count_; ++index)
        text << (index != 0 ? " " : "") << static_cast<const int64_t*>(what_)[index];
      break;
    case Kind::kNames:
    case Kind::kPlaces:
      for (size_t index = 0; index < count_; ++index) {
        const Name& name = static_cast<const Name*>(what_)[index];
        raising.field(name.text, name.size);
      }
      return;
    case Kind::kUnsigned:
    case Kind::kAddress:
      text << static_cast<uint64_t>(value_);
      break;
    default:
      text << value_;
  }
  raising.field(text);
}

// Write the text of a row, with what its fields are shown as.
static void fill(Text& text, const char* words, const Field* fields) {
  for (const char* at = words; *at != '\0'; ++at) {
    const char* opened = std::strchr(at, '{');
    if (opened == nullptr) {
      text << at;
      return;
    }
    text.append(at, static_cast<size_t>(opened - at));
    const uint32_t index = static_cast<uint32_t>(opened[1] - '0');
    Text before, none;
    if (index != 0) fields[index - 1].show(before, none);
    fields[index].show(text, before);
    at = opened + 2;
  }
}

bool refuse(const RefusalRow& row, const Field* fields, uint32_t count, const char* place) {
  Text texts[3], message;
  for (uint32_t index = 0; index < 3 && row.texts[index] != nullptr; ++index)
    fill(texts[index], row.texts[index], fields);
  const Name argument{texts[0].data(), static_cast<uint32_t>(texts[0].size())};
  switch (row.form) {
    case Form::kArgument:
      if (argument.size != 0) message << "argument " << argument;
      if (place != nullptr) message << " (" << place << ")";
      message << (argument.size != 0 ? ": got " : "got ") << texts[1] << ", expected " << texts[2];
      break;
    case Form::kRequirement:
      message << "needs " << texts[0] << ", got " << texts[1];
      if (texts[2].size() != 0) message << "; " << texts[2];
      break;
    case Form::kPlaced:
      message << texts[0] << ": " << texts[1];
      break;
    case Form::kMessage:
      message << texts[0];
  }
  Raising raising(row.kind, row.id);
  raising.field(place != nullptr ? place : "");
  for (uint32_t index = 0; index < count; ++index) fields[index].send(raising);
  return raising.with(message);
}

}  // namespace trunnion
