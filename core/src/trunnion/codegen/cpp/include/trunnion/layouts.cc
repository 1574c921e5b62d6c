// The layouts that launchers rely on. What a launcher is compiled with and what it is loaded beside are different releases
// of TVM-FFI, DLPack and Python as a rule: they fit only as long as all of them mean the same bytes. A header that means
// others is refused here, once for each toolchain. TVM-FFI has these since 0.1.11; CPython's are those of its stable ABI.
#include <trunnion/big_integer.hpp>
#include <trunnion/python_entry.hpp>

namespace trunnion {

#define TRUNNION_IS(condition, what) static_assert(condition, "another " what " than the one written for")
#define TRUNNION_SIZE(type, size) TRUNNION_IS(sizeof(type) == (size), #type)
#define TRUNNION_FIELD(type, field, offset, size) \
  TRUNNION_IS(offsetof(type, field) == (offset) && sizeof(type::field) == (size), #type)

// This machine ---------------------------------------------------------------------------------------------------------

TRUNNION_IS(sizeof(void*) == 8 && sizeof(size_t) == 8 && sizeof(long long) == 8, "width of addresses");
TRUNNION_IS(sizeof(int) == 4 && sizeof(short) == 2 && sizeof(bool) == 1, "width of integers");
TRUNNION_IS(sizeof(float) == 4 && sizeof(double) == 8 && __DBL_MANT_DIG__ == 53 && __FLT_MANT_DIG__ == 24,
            "floating point");
TRUNNION_IS(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ && -1 >> 1 == -1, "order of bytes");

// DLPack ---------------------------------------------------------------------------------------------------------------

TRUNNION_IS(DLPACK_MAJOR_VERSION == 1, "DLPack");
TRUNNION_SIZE(DLDevice, 8);
TRUNNION_FIELD(DLDevice, device_type, 0, 4);
TRUNNION_FIELD(DLDevice, device_id, 4, 4);
TRUNNION_SIZE(DLDataType, 4);
TRUNNION_FIELD(DLDataType, code, 0, 1);
TRUNNION_FIELD(DLDataType, bits, 1, 1);
TRUNNION_FIELD(DLDataType, lanes, 2, 2);
TRUNNION_SIZE(DLTensor, 48);
TRUNNION_FIELD(DLTensor, data, 0, 8);
TRUNNION_FIELD(DLTensor, device, 8, 8);
TRUNNION_FIELD(DLTensor, ndim, 16, 4);
TRUNNION_FIELD(DLTensor, dtype, 20, 4);
TRUNNION_FIELD(DLTensor, shape, 24, 8);
TRUNNION_FIELD(DLTensor, strides, 32, 8);
TRUNNION_FIELD(DLTensor, byte_offset, 40, 8);
TRUNNION_SIZE(DLManagedTensorVersioned, 80);
TRUNNION_FIELD(DLManagedTensorVersioned, version, 0, 8);
TRUNNION_FIELD(DLManagedTensorVersioned, manager_ctx, 8, 8);
TRUNNION_FIELD(DLManagedTensorVersioned, deleter, 16, 8);
TRUNNION_FIELD(DLManagedTensorVersioned, flags, 24, 8);
TRUNNION_FIELD(DLManagedTensorVersioned, dl_tensor, 32, 48);
TRUNNION_FIELD(DLPackExchangeAPI, header, 0, 16);
TRUNNION_FIELD(DLPackExchangeAPI, managed_tensor_allocator, 16, 8);
TRUNNION_FIELD(DLPackExchangeAPI, dltensor_from_py_object_no_sync, 40, 8);
TRUNNION_FIELD(DLPackExchangeAPI, current_work_stream, 48, 8);
TRUNNION_IS(kDLCPU == 1 && kDLCUDA == 2, "DLDeviceType");

// TVM-FFI --------------------------------------------------------------------------------------------------------------

TRUNNION_SIZE(TVMFFIAny, 16);
TRUNNION_FIELD(TVMFFIAny, type_index, 0, 4);
TRUNNION_FIELD(TVMFFIAny, zero_padding, 4, 4);
TRUNNION_FIELD(TVMFFIAny, small_str_len, 4, 4);
TRUNNION_FIELD(TVMFFIAny, v_int64, 8, 8);
TRUNNION_FIELD(TVMFFIAny, v_uint64, 8, 8);
TRUNNION_FIELD(TVMFFIAny, v_float64, 8, 8);
TRUNNION_FIELD(TVMFFIAny, v_ptr, 8, 8);
TRUNNION_FIELD(TVMFFIAny, v_obj, 8, 8);
TRUNNION_FIELD(TVMFFIAny, v_c_str, 8, 8);
TRUNNION_FIELD(TVMFFIAny, v_bytes, 8, 8);
TRUNNION_SIZE(TVMFFIObject,
              24);  // behind it lies what an object holds: a tensor, bytes, an error, words of a BigInt
TRUNNION_FIELD(TVMFFIObject, combined_ref_count, 0, 8);
TRUNNION_FIELD(TVMFFIObject, type_index, 8, 4);
TRUNNION_SIZE(TVMFFIByteArray, 16);
TRUNNION_FIELD(TVMFFIByteArray, data, 0, 8);
TRUNNION_FIELD(TVMFFIByteArray, size, 8, 8);
TRUNNION_FIELD(TVMFFIErrorCell, kind, 0, 16);
TRUNNION_FIELD(TVMFFIErrorCell, message, 16, 16);
TRUNNION_FIELD(TVMFFIErrorCell, backtrace, 32, 16);
TRUNNION_IS(kTVMFFINone == 0 && kTVMFFIInt == 1 && kTVMFFIBool == 2 && kTVMFFIFloat == 3 &&
                kTVMFFIOpaquePtr == 4,
            "TVMFFITypeIndex");
TRUNNION_IS(kTVMFFIDLTensorPtr == 7 && kTVMFFIRawStr == 8 && kTVMFFIByteArrayPtr == 9 &&
                kTVMFFISmallStr == 11 && kTVMFFISmallBytes == 12,
            "TVMFFITypeIndex");
TRUNNION_IS(kTVMFFIStaticObjectBegin == 64 && kTVMFFIStr == 65 && kTVMFFIBytes == 66 && kTVMFFIError == 67 &&
                kTVMFFIFunction == 68 && kTVMFFITensor == 70 && kTVMFFIArray == 71,
            "TVMFFITypeIndex");
TRUNNION_IS(kBigInt > kTVMFFIArray && kBigInt < kTVMFFIDynObjectBegin, "TVMFFITypeIndex");

// CPython --------------------------------------------------------------------------------------------------------------

TRUNNION_SIZE(PyHead, 16);
TRUNNION_FIELD(PyHead, type, 8, 8);
TRUNNION_SIZE(PyMethod, 32);
TRUNNION_FIELD(PyMethod, function, 8, 8);
TRUNNION_FIELD(PyMethod, flags, 16, 4);
TRUNNION_FIELD(PyMethod, doc, 24, 8);

}  // namespace trunnion
