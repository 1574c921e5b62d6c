// The fastest way in from Python: a function of CPython's own calling convention, beside the exported ones.
//
// TVM-FFI's generic call costs as much as all the rest of a launch on the host. This one converts the arguments of one
// program: plain torch tensors through DLPack's exchange API, and plain Python numbers. Whatever is not plain, and every
// call that is refused, goes to the general entry, which takes everything and says what is wrong: this one only ever
// launches or hands on. Functions of CPython are found in the process and are of its stable ABI alone; nothing here is
// used, or needed, unless trunnion asks for it after loading.
#pragma once

#include <trunnion/cpython.hpp>
#include <trunnion/run.hpp>

namespace trunnion {

// What the adapter hands in; references to Python objects are its own, and it keeps them for as long as there is a
// function of Python's that was made of `method`; its `self` is a capsule around this.
struct PythonEntry {
  PyMethod method;
  CPython python;
  Program* program;
  const DLPackExchangeAPI* exchange;
  void* general;  // takes the arguments again
  void* failed;   // raises what a launch raised
  void* tensor_type;
  void* allocate;  // of the tensor library: extents, element type, device, stream
  void* quick;     // the same of extents, strides and element type; null: there is none
  void* types;     // a tuple: the element type of each output, then that of bytes
};

// Launch, or hand on to the general entry; what it returns.
void* call_from_python(const CallRule& rule, void* self, void* const* args, intptr_t count);

// Take what the entry needs (addresses, in the order of `PythonEntry`; 0 for no `quick`) and give its own address: it begins
// with that of its definition, and lies in the program's memory. 0 where this process has no CPython that it could use.
int offer_entry(Program& program, void* (*function)(void*, void* const*, intptr_t), const TVMFFIAny* given,
                int32_t count, TVMFFIAny* result);

}  // namespace trunnion
