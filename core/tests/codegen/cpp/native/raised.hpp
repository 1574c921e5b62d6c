// Stands in for TVM-FFI's errors: keeps the first one that is raised, and counts the others.
#pragma once

#include <tvm/ffi/c_api.h>

#include <cstdio>
#include <cstring>

static char raised_kind[64];
static char raised_message[4096];
static char raised_fields[4096];
static int raised_count = 0;

static void copy_bytes(char* to, size_t room, const TVMFFIByteArray* from) {
  const size_t count = from->size < room - 1 ? from->size : room - 1;
  std::memcpy(to, from->data, count);
  to[count] = '\0';
}

extern "C" int TVMFFIErrorCreate(const TVMFFIByteArray* kind, const TVMFFIByteArray* message,
                                 const TVMFFIByteArray* backtrace, TVMFFIObjectHandle* out) {
  if (raised_count == 0) {
    copy_bytes(raised_kind, sizeof raised_kind, kind);
    copy_bytes(raised_message, sizeof raised_message, message);
    copy_bytes(raised_fields, sizeof raised_fields, backtrace);
  }
  *out = nullptr;
  return 0;
}

extern "C" void TVMFFIErrorSetRaised(TVMFFIObjectHandle) { ++raised_count; }

extern "C" int TVMFFIObjectDecRef(TVMFFIObjectHandle) { return 0; }
