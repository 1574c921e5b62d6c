// What is needed of DLPack's C exchange API. Source: the DLPack specification, version 1.3 (dlpack.h).
#pragma once

#include <stdint.h>

enum { EXCHANGE_MAJOR = 1, TYPE_CODE_INT = 0, TYPE_CODE_UINT = 1 };

typedef struct {
  int32_t kind;
  int32_t ordinal;
} ExchangeDevice;  // DLDevice

typedef struct {
  uint8_t code;
  uint8_t bits;
  uint16_t lanes;
} ExchangeType;  // DLDataType

typedef struct {
  void* data;
  ExchangeDevice device;
  int32_t ndim;
  ExchangeType dtype;
  const int64_t* shape;
  const int64_t* strides;  // may be null: row-major
  uint64_t byte_offset;
} ExchangeTensor;  // DLTensor

typedef struct ExchangeHeader {
  uint32_t major;
  uint32_t minor;
  const struct ExchangeHeader* previous;  // of an older version, or null
} ExchangeHeader;                         // DLPackExchangeAPIHeader

// Fills the tensor, which shows the object's memory until control is given back; 0, or -1 with an exception.
typedef int (*ExchangeView)(void* object, ExchangeTensor* tensor);

typedef struct {
  ExchangeHeader header;
  void* allocate;
  void* from_object;
  void* to_object;
  ExchangeView view_object;  // dltensor_from_py_object_no_sync; may be null
  void* current_stream;
} ExchangeApi;  // DLPackExchangeAPI
