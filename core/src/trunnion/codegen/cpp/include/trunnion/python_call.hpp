// A call from Python: what its words mean, and its values as a launcher reads them.
#pragma once

#include <trunnion/python_entry.hpp>

namespace trunnion {

class PythonCall {
 public:
  PythonCall(PythonEntry& entry, const CallRule& rule, const PythonRoom& room)
      : entry_(entry), rule_(rule), room_(room.objects), values_(room.values), given_(room.given) {}

  // Take the call; false: the general entry knows better what is meant, or what is wrong.
  bool take(void* const* args, intptr_t count, void* names);

  // What a launcher reads.
  Arguments arguments() const { return Arguments(given_, count_ + (device_ == nullptr ? 0 : kTrailing)); }
  int32_t count() const { return count_; }
  bool has_destinations() const { return out_ != nullptr; }

  // Whether all tensors are what their views show: none negated or conjugated lazily, all elements within the storage. Of
  // an address both are asked once: a storage that shrinks moves, as a rule. Of what looks like half of a complex tensor,
  // or is one, the first is asked in every call.
  bool is_whole() const;

  // Whether Python has an exception to raise that is none of what tensor libraries raise: a signal's handler did.
  bool raised() const { return raised_; }

  // Whether it has one that may be either: what tensor libraries say of a tensor without memory, or a handler.
  bool may_have_raised() const { return may_have_raised_; }

  bool names_stream() const { return stream_ != nullptr; }

  // The stream that the call names, if it does.
  bool read_stream(uint64_t& handle) const;

  void* destination(int32_t index) const { return objects_[rule_.inputs + index]; }

 private:
  bool arrange(void* const* args, intptr_t count, void* names);
  int32_t place_of(void* name, intptr_t guess) const;
  bool take_destinations();
  bool convert(char kind, int32_t index);
  bool convert_tensor(int32_t index);
  bool convert_word(int32_t index, bool full);
  bool convert_bytes(int32_t index);
  bool convert_complex(int32_t index);
  bool convert_device(TVMFFIAny& given) const;
  void* asked(void* answer) const;
  bool answers_no(void* question, void* object) const;
  bool is_plain(void* object, const DLTensor& tensor) const;
  bool is_vouched(void* object, const DLTensor& tensor) const;
  TRUNNION_COLD bool vouch(void* object, const DLTensor& tensor, uint64_t nbytes, Vouched* known) const;

  PythonEntry& entry_;
  const CallRule& rule_;
  void** room_;                     // for the objects
  void* const* objects_ = nullptr;  // the arguments, then the destinations
  PythonValue* values_;
  TVMFFIAny* given_;
  int32_t count_ = 0;
  mutable bool raised_ = false, may_have_raised_ = false;
  void *out_ = nullptr, *stream_ = nullptr, *device_ = nullptr;  // null: not said, or None
};

}  // namespace trunnion
