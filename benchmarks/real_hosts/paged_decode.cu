// FlashInfer: what its own bindings do for each call, from the parameters' struct on.
// tensors: q, k, v, indices, indptr, last_page_len, requests, tiles, chunk, out;
// numbers: sequences, heads of queries, heads of keys, tokens of a page.

#include <flashinfer/attention/decode.cuh>
#include <flashinfer/attention/default_decode_params.cuh>
#include <flashinfer/attention/variants.cuh>

#include <cmath>

#include "timed.h"

namespace {

using Variant = flashinfer::DefaultAttention<false, false, false, false>;
using Params = flashinfer::BatchDecodeParams<half, half, half, int32_t>;
constexpr uint32_t kDim = TRUNNION_DIM;  // of the program

bool decode(void* const* tensors, const long long* numbers) {
  const uint32_t batch = numbers[0], heads = numbers[1], groups = numbers[2], page = numbers[3];
  const int64_t strides[3] = {page * groups * kDim, groups * kDim, kDim};
  flashinfer::paged_kv_t<half, int32_t> cache(
      groups, page, kDim, batch, flashinfer::QKVLayout::kNHD, at<half>(tensors, 1), at<half>(tensors, 2),
      strides, at<int32_t>(tensors, 3), at<int32_t>(tensors, 4), at<int32_t>(tensors, 5));
  Params params(at<half>(tensors, 0), nullptr, cache, at<half>(tensors, 9), nullptr, nullptr, heads,
                heads * kDim, kDim, -1, 0.0f, 1.0f / std::sqrt(static_cast<float>(kDim)), 1.0f, 1e4f);
  params.padded_batch_size = batch;
  params.request_indices = at<int32_t>(tensors, 6);
  params.kv_tile_indices = at<int32_t>(tensors, 7);
  params.kv_chunk_size_ptr = at<int32_t>(tensors, 8);
  return flashinfer::BatchDecodeWithPagedKVCacheDispatched<kDim, flashinfer::PosEncodingMode::kNone, Variant>(
             params, nullptr, nullptr, false, nullptr) == cudaSuccess;
}

}  // namespace

EXPORT double one_launch(long long calls, void* const* tensors, const long long* numbers) {
  return timed(calls, [=] { return decode(tensors, numbers); });
}

EXPORT double zeroed(long long calls, void* const* tensors, const long long* numbers) {
  return timed(calls, [=] {
    return cudaMemsetAsync(tensors[7], 0, numbers[0] * sizeof(int32_t)) == cudaSuccess &&
           cudaMemsetAsync(tensors[8], 0, sizeof(int32_t)) == cudaSuccess && decode(tensors, numbers);
  });
}
