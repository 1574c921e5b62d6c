#include <trunnion/python_call.hpp>

namespace trunnion {

// Words ---------------------------------------------------------------------------------------------------------------

// Names that stand in a call are interned, as those of the entry are: other texts are the general entry's to compare.
int32_t PythonCall::place_of(void* name, intptr_t guess) const {
  const CPython& python = entry_.python;
  const int32_t count = rule_.inputs + 3;
  if (guess < count && python.get_item(entry_.names, guess) == name) return static_cast<int32_t>(guess);
  for (int32_t place = 0; place < count; ++place) {
    if (python.get_item(entry_.names, place) == name) return place;
  }
  return -1;
}

bool PythonCall::arrange(void* const* args, intptr_t count, void* names) {
  const CPython& python = entry_.python;
  const int32_t inputs = rule_.inputs;
  objects_ = names == nullptr ? args : room_;
  if (names == nullptr || count > inputs) return count == inputs;
  for (int32_t index = 0; index < inputs; ++index) room_[index] = index < count ? args[index] : nullptr;
  void** const words[] = {&out_, &stream_, &device_};
  const intptr_t named = python.tuple_size(names);
  for (intptr_t index = 0; index < named; ++index) {
    const int32_t place = place_of(python.get_item(names, index), count + index);
    void* value = args[count + index];
    if (place >= inputs) {
      *words[place - inputs] = value == python.none ? nullptr : value;
    } else if (place >= 0 && room_[place] == nullptr) {
      room_[place] = value;
    } else {
      return false;
    }
  }
  for (int32_t index = 0; index < inputs; ++index) {
    if (room_[index] == nullptr) return false;
  }
  return true;
}

// One tensor for one output, else a tuple: a list could change meanwhile.
bool PythonCall::take_destinations() {
  const CPython& python = entry_.python;
  if (rule_.outputs == 0) return false;
  if (type_of(out_) == python.tuple_type) {
    if (python.tuple_size(out_) != rule_.outputs) return false;
    for (int32_t index = 0; index < rule_.outputs; ++index)
      room_[rule_.inputs + index] = python.get_item(out_, index);
  } else if (rule_.outputs == 1) {
    room_[rule_.inputs] = out_;
  } else {
    return false;
  }
  for (int32_t index = rule_.inputs; index < count_; ++index) {
    if (!convert_tensor(index)) return false;
  }
  return true;
}

// Values --------------------------------------------------------------------------------------------------------------

bool PythonCall::convert_tensor(int32_t index) {
  if (!entry_.is_tensor(objects_[index])) return false;
  DLTensor& view = values_[index].tensor;
  given_[index].type_index = kTVMFFIDLTensorPtr;
  given_[index].zero_padding = 0;
  given_[index].v_ptr = &view;
  return entry_.exchange->dltensor_from_py_object_no_sync(objects_[index], &view) == 0;
}

// An integer; `full`: its 64 bits may be without a sign, and travel as an address then.
bool PythonCall::convert_word(int32_t index, bool full) {
  const CPython& python = entry_.python;
  TVMFFIAny& given = given_[index];
  int beyond = 0;
  given.type_index = kTVMFFIInt;
  given.v_int64 = python.as_long(objects_[index], &beyond);
  if (beyond == 0) return true;
  if (!full || beyond < 0) return false;
  given.type_index = kTVMFFIOpaquePtr;
  given.v_uint64 = python.as_unsigned(objects_[index]);
  return given.v_uint64 != UINT64_MAX;  // or an error, which the general entry says
}

bool PythonCall::convert_bytes(int32_t index) {
  const CPython& python = entry_.python;
  if (type_of(objects_[index]) != python.bytes_type) return false;
  TVMFFIByteArray& bytes = values_[index].bytes;
  bytes = {python.as_bytes(objects_[index]), static_cast<size_t>(python.byte_count(objects_[index]))};
  given_[index].type_index = kTVMFFIByteArrayPtr;
  given_[index].v_ptr = &bytes;
  return true;
}

bool PythonCall::convert_complex(int32_t index) {
  const CPython& python = entry_.python;
  PythonValue& value = values_[index];
  value.parts[0] = python.as_real(objects_[index]);
  value.parts[1] = python.as_imaginary(objects_[index]);
  value.bytes = {reinterpret_cast<const char*>(value.parts), sizeof value.parts};
  given_[index].type_index = kTVMFFIByteArrayPtr;
  given_[index].v_ptr = &value.bytes;
  return true;
}

// Convert one argument that is no tensor ('t'): 'n' a tensor that may be None, 'i' an integer, 'u' one of 64 bits without
// a sign, 'f' a float, 'c' a complex number, 'b' a bool, 'p' an address, 'q' one that may be None, 's' a struct.
bool PythonCall::convert(char kind, int32_t index) {
  const CPython& python = entry_.python;
  void* object = objects_[index];
  TVMFFIAny& given = given_[index];
  given.zero_padding = 0;
  given.v_int64 = 0;
  if (object == python.none) {
    given.type_index = kTVMFFINone;
    return kind == 'n' || kind == 'q';
  }
  if (kind == 'n') return convert_tensor(index);
  if (kind == 's') return convert_bytes(index);
  if (kind == 'b') {
    given.type_index = kTVMFFIBool;
    given.v_int64 = object == python.yes;
    return object == python.yes || object == python.no;
  }
  void* type = type_of(object);
  if (type == python.long_type) return convert_word(index, kind == 'u' || kind == 'p' || kind == 'q');
  if (kind == 'c' && type == python.complex_type) return convert_complex(index);
  given.type_index = kTVMFFIFloat;
  if ((kind != 'f' && kind != 'c') || type != python.float_type) return false;
  given.v_float64 = python.as_double(object);
  return true;
}

bool PythonCall::convert_device(TVMFFIAny& given) const {
  const CPython& python = entry_.python;
  int beyond = 0;
  if (type_of(device_) != python.long_type) return false;
  given.type_index = kTVMFFIInt;
  given.v_int64 = python.as_long(device_, &beyond);
  return beyond == 0;
}

bool PythonCall::take(void* const* args, intptr_t count, void* names) {
  if (!arrange(args, count, names)) return false;
  for (int32_t index = 0; index < rule_.inputs; ++index) {
    const char kind = rule_.kinds[index];
    if (!(kind == 't' ? convert_tensor(index) : convert(kind, index))) return false;
  }
  count_ = rule_.inputs + (out_ == nullptr ? 0 : rule_.outputs);
  if (out_ != nullptr && !take_destinations()) return false;
  if (device_ == nullptr) return true;
  TVMFFIAny* trailing = given_ + count_;
  for (int32_t index = 0; index < kTrailing; ++index) give_nothing(&trailing[index]);
  return convert_device(trailing[1]);
}

bool PythonCall::read_stream(uint64_t& handle) const {
  const CPython& python = entry_.python;
  void* number = stream_;
  if (type_of(stream_) == entry_.stream_type) {
    number = asked(python.get_attribute(stream_, entry_.stream_name));
    if (number == nullptr) return false;
  } else {
    python.increase(number);
  }
  int beyond = 0;
  const bool whole = type_of(number) == python.long_type;
  const long long got = whole ? python.as_long(number, &beyond) : -1;
  python.decrease(number);
  handle = static_cast<uint64_t>(got);
  return got >= 0 && beyond == 0;  // the great ones, of which there are none today, by the general entry
}

// Tensors -------------------------------------------------------------------------------------------------------------

// Where Python's functions run, so do signals' handlers: what those raise is no answer, and must arrive.
void* PythonCall::asked(void* answer) const {
  if (answer == nullptr)
    (entry_.python.raised(entry_.python.runtime_error) == 0 ? raised_ : may_have_raised_) = true;
  return answer;
}

bool PythonCall::answers_no(void* question, void* object) const {
  const CPython& python = entry_.python;
  void* answer = asked(python.vectorcall(question, &object, 1, nullptr));
  if (answer == nullptr) return false;
  const bool no = answer == python.no;
  python.decrease(answer);
  return no;
}

// Bytes from the first element to behind the last one.
static inline uint64_t spanned_bytes(const DLTensor& tensor) {
  uint64_t last = 0;
  for (int32_t axis = 0; axis < tensor.ndim; ++axis) {
    if (tensor.shape[axis] == 0) return 0;
    last += static_cast<uint64_t>(tensor.shape[axis] - 1) * static_cast<uint64_t>(stride_of(tensor, axis));
  }
  return (last + 1) * ((static_cast<uint64_t>(tensor.dtype.bits) * tensor.dtype.lanes + 7) / 8);
}

// Whether torch may hold a tensor conjugated or negated lazily: complex ones the former, the latter their imaginary parts,
// whose elements lie two apart; but of one element, or none, every stride is allowed.
static bool may_be_lazy(const DLTensor& tensor) {
  if (tensor.dtype.code == kDLComplex) return true;
  if (tensor.dtype.code != kDLFloat || tensor.strides == nullptr) return false;
  for (int32_t axis = tensor.ndim - 1; axis >= 0; --axis) {
    if (tensor.shape[axis] > 1 && (tensor.strides[axis] & 1) != 0) return false;
  }
  return true;
}

bool PythonCall::is_plain(void* object, const DLTensor& tensor) const {
  if (!answers_no(entry_.is_neg, object)) return false;
  return tensor.dtype.code != kDLComplex || answers_no(entry_.is_conj, object);
}

// Whether the tensor library was asked of as much memory at the same address, or answers now.
inline bool PythonCall::is_vouched(void* object, const DLTensor& tensor) const {
  const uint64_t address = address_of(tensor), nbytes = spanned_bytes(tensor);
  if (nbytes == 0) return true;
  constexpr uint64_t kSpread = 0x9E3779B97F4A7C15;  // 2 ** 64 over the golden ratio
  Vouched* const known = entry_.vouched[(address * kSpread) >> 56];
  for (size_t way = 0; way < kVouchedWays; ++way) {
    if (known[way].address == address && known[way].nbytes >= nbytes) return true;
  }
  return vouch(object, tensor, nbytes, known);
}

bool PythonCall::vouch(void* object, const DLTensor& tensor, uint64_t nbytes, Vouched* known) const {
  const CPython& python = entry_.python;
  if (!is_plain(object, tensor)) return false;
  void* number = asked(python.vectorcall(entry_.room, &object, 1, nullptr));
  if (number == nullptr) return false;
  int beyond = 0;
  const long long room = type_of(number) == python.long_type ? python.as_long(number, &beyond) : -1;
  python.decrease(number);
  if (beyond != 0 || room < 0 || static_cast<uint64_t>(room) < nbytes) return false;
  for (size_t way = kVouchedWays - 1; way > 0; --way) known[way] = known[way - 1];
  known[0] = {address_of(tensor), nbytes};
  return true;
}

bool PythonCall::is_whole() const {
  for (int32_t index = 0; index < count_; ++index) {
    if (given_[index].type_index != kTVMFFIDLTensorPtr) continue;
    const DLTensor& tensor = values_[index].tensor;
    if (!is_vouched(objects_[index], tensor)) return false;
    if (may_be_lazy(tensor) && !is_plain(objects_[index], tensor)) return false;
  }
  return true;
}

}  // namespace trunnion
