// The way in from Python: a function of CPython's own calling convention, beside the exported ones.
//
// TVM-FFI's generic call costs as much as all the rest of a launch on the host. This one takes a call of one program as
// people write it: by position and by name, with destinations, stream and device; torch's tensors through DLPack's
// exchange API, and Python's own numbers. Whatever is something else, and every call that is refused, goes to the general
// entry, which takes everything and says what is wrong: this one only ever launches or hands on. Functions of CPython are
// found in the process and are of its stable ABI alone; nothing here is used, or needed, unless trunnion asks for it after
// loading.
#pragma once

#include <trunnion/cpython.hpp>
#include <trunnion/run.hpp>

namespace trunnion {

// Memory of a tensor that the tensor library was asked about.
struct Vouched {
  uint64_t address, nbytes;
};

inline constexpr size_t kVouchedSets = 256, kVouchedWays = 4;

// What the adapter hands in; references to Python objects are its own, and it keeps them for as long as there is a
// function of Python's that was made of `method`; its `self` is a capsule around this.
struct PythonEntry {
  PyMethod method;
  CPython python;
  Program* program;
  const DLPackExchangeAPI* exchange;
  void* general;  // takes the call again
  void* failed;   // raises what a launch raised, of which it is given the address
  void* names;    // a tuple: each argument's, None of one that has none; then those of out, stream and device
  void* tensor_type;     // of tensors that `exchange` takes
  void* parameter_type;  // another such
  void* is_neg;          // of a tensor: whether it is negated lazily
  void* is_conj;         // of a complex tensor: whether it is conjugated lazily
  void* room;            // of a tensor: bytes from its first element to the end of its storage
  void* stream_type;     // of streams
  void* stream_name;     // the attribute of those that is the driver's handle
  void* allocate;        // of the tensor library: extents, element type, device, stream
  void* quick;           // the same of extents, strides and element type; null: there is none
  void* types;           // a tuple: the element type of each output, then that of bytes
  Vouched vouched[kVouchedSets][kVouchedWays];

  bool is_tensor(void* object) const {
    return type_of(object) == tensor_type || type_of(object) == parameter_type;
  }
};

// A value as it travels, with what it points to.
struct PythonValue {
  DLTensor tensor;
  TVMFFIByteArray bytes;
  double parts[2];
};

// Memory for one call: for its arguments and destinations, and for the call itself.
struct PythonRoom {
  void** objects;
  PythonValue* values;
  TVMFFIAny* given;
  void* call;
};

// Launch, or hand on to the general entry; what it returns.
void* call_from_python(const CallRule& rule, const PythonRoom& room, void* self, void* const* args,
                       intptr_t count, void* names);

// The same of a call whose size is known, `objects` being its arguments and destinations: memory of a size that is only
// computed costs a division each.
template <typename Call, int32_t objects>
void* call_in_room(const CallRule& rule, void* self, void* const* args, intptr_t count, void* names) {
  void* room_of_objects[objects + 1];
  PythonValue room_of_values[objects + 1];
  TVMFFIAny room_of_given[objects + kTrailing];
  alignas(kCallAlignment) unsigned char room_of_call[sizeof(Call)];
  const PythonRoom room{room_of_objects, room_of_values, room_of_given, room_of_call};
  return call_from_python(rule, room, self, args, count, names);
}

// Raise an error by its address, in one step for the library that called: the other half of `failed`.
int raise_held(const TVMFFIAny* given, int32_t count);

// Take what the entry needs (addresses, in the order of `PythonEntry`; 0 for no `quick`) and give its own address: it begins
// with that of its definition, and lies in the program's memory. 0 where this process has no CPython that it could use.
int offer_entry(Program& program, PyFunction function, const TVMFFIAny* given, int32_t count,
                TVMFFIAny* result);

}  // namespace trunnion
