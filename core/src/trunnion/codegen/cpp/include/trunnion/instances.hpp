// Several programs of one library: whoever loads the same bytes again needs no second copy of the code.
//
// An export that is called without an object of its own is of the library's own program. `open` gives another one: a
// function that finds its exports by name. A program is forgotten when the last function of it is gone and it is closed;
// one that is never closed stays, because what it launched may be captured. The library counts them, so that whoever
// loaded it knows when none of its code can be reached any more.
#pragma once

#include <new>
#include <trunnion/calls.hpp>
#include <trunnion/life.hpp>

namespace trunnion {

struct Export {
  const char* name;
  TVMFFISafeCallType function;
};

// What a library has of its own: how to make a program, and its exports, the last one without a name.
struct LibraryRule {
  uint32_t size, alignment;  // bytes of one program
  Program* (*make)(void* memory);
  const Export* exports;
};

// The program that a function is of.
inline Program& program_of(void* self, Program& own) {
  return self == nullptr ? own : *static_cast<Program*>(self);
}

// Make a program, and give the function that finds its exports; None if the library is to be unloaded.
int open_program(const LibraryRule& rule, TVMFFIAny* result);

// Give an export by its name.
int find_export(Program& program, const LibraryRule& rule, const TVMFFIAny* given, int32_t count,
                TVMFFIAny* result);

// Give whether no program is left, and make none from now on if so.
int retire_library(TVMFFIAny* result);

// A function of a program is gone; `program` may be with it.
void leave_program(Program& program);

}  // namespace trunnion
