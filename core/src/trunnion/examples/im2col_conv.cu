// A convolution of NHWC images, 3 x 3 and dilated, with another padding on each side, as a matrix product over
// pixels that an im2col tensor map collects.
//
//   pixels   fp16 [n, h, w, c], read through `pixels`: an im2col map, 64 pixels of 32 channels. Its corners,
//            (-TOP, -LEFT) and (bottom - 2 * DILATION_H, right - 2 * DILATION_W), bound the pixels that the filter's
//            first tap may lie on.
//   filters  fp16 [k, 3, 3, c], read through `filters`: a tiled map, box 64 x 1 x 1 x 32
//   out      fp32 [n, p, q, k]: p = h + TOP + bottom - 2 * DILATION_H, q likewise
//
// c a multiple of 8, because a tensor map's pitches are multiples of 16 bytes; all else in any size.
// Launch: grid (ceildiv(n * p * q, 64), ceildiv(k, 64)), block 128. The padding before and the dilations are macros:
// the host makes the map's corners from the same numbers.
// Target: sm_90 or later.

#include "tensor_copy.cuh"

constexpr int kPixels = 64;    // of a tile: 16 for each of the 4 warps
constexpr int kFilters = 64;   // of a tile: 8 times the 8 columns of an mma
constexpr int kChannels = 32;  // of a step: twice the 16 of an mma
constexpr int kTaps = 9;
constexpr int kStages = 2;
constexpr unsigned kStageBytes = (kPixels + kFilters) * kChannels * 2;

struct Stage {
  alignas(128) unsigned pixels[kPixels][kChannels / 2];  // fp16 in pairs
  alignas(128) unsigned filters[kFilters][kChannels / 2];
};

// d[16 x 8] += a[16 x 16] * b[8 x 16]^T over a warp. Thread `lane` holds columns lane % 4 * 2 and the next of rows
// lane / 4 and 8 further, of all three matrices.
__device__ __forceinline__ void mma_m16n8k16(float (&d)[4], const unsigned (&a)[4], const unsigned (&b)[2]) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
      "{%0, %1, %2, %3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

struct Place {
  int n, h, w;  // of the first pixel of the tile, under the filter's first tap
  int filter;   // the first of the tile
};

// Step i is tap i / chunks and the i % chunks-th chunk of the channels.
__device__ __forceinline__ void load(Stage& stage, const TensorMap& pixels, const TensorMap& filters,
                                     unsigned barrier, const Place& place, int step, int chunks) {
  const int tap_h = step / chunks / 3;
  const int tap_w = step / chunks % 3;
  const int channel = step % chunks * kChannels;
  mbarrier_arrive_expect_tx(barrier, kStageBytes);
  copy_pixels(shared_address(stage.pixels), pixels, barrier, channel, place.w, place.h, place.n,
              tap_w * DILATION_W, tap_h * DILATION_H);
  copy_box(shared_address(stage.filters), filters, barrier, channel, tap_w, tap_h, place.filter);
}

__device__ __forceinline__ void multiply(float (&d)[kFilters / 8][4], const Stage& stage, int warp, int lane) {
  const int row = warp * 16 + lane / 4;
#pragma unroll
  for (int column = lane % 4; column < kChannels / 2; column += 8) {
    const unsigned a[4] = {stage.pixels[row][column], stage.pixels[row + 8][column],
                           stage.pixels[row][column + 4], stage.pixels[row + 8][column + 4]};
#pragma unroll
    for (int i = 0; i < kFilters / 8; ++i) {
      const unsigned* filter = stage.filters[i * 8 + lane / 4];
      const unsigned b[2] = {filter[column], filter[column + 4]};
      mma_m16n8k16(d[i], a, b);
    }
  }
}

extern "C" __global__ void __launch_bounds__(128)
im2col_conv(const __grid_constant__ TensorMap pixels, const __grid_constant__ TensorMap filters, float* out,
            int images, int p, int q, int c, int k) {
  __shared__ Stage stages[kStages];
  __shared__ unsigned long long barriers[kStages];

  const int first = blockIdx.x * kPixels;
  const Place place = {first / (p * q), first / q % p - TOP, first % q - LEFT,
                       static_cast<int>(blockIdx.y) * kFilters};
  const int chunks = (c + kChannels - 1) / kChannels;
  const int steps = kTaps * chunks;
  const bool leads = threadIdx.x == 0;

  if (leads) {
    for (int i = 0; i < kStages; ++i) {
      mbarrier_init(shared_address(&barriers[i]), 1);
    }
    fence_proxy_async();
    load(stages[0], pixels, filters, shared_address(&barriers[0]), place, 0, chunks);
  }
  __syncthreads();

  float d[kFilters / 8][4] = {};
  for (int step = 0; step < steps; ++step) {
    const int next = step + 1;
    if (leads && next < steps) {
      load(stages[next % kStages], pixels, filters, shared_address(&barriers[next % kStages]), place, next,
           chunks);
    }
    mbarrier_wait(shared_address(&barriers[step % kStages]), step / kStages & 1);
    __syncwarp();  // the leader comes later
    multiply(d, stages[step % kStages], threadIdx.x / 32, threadIdx.x % 32);
    __syncthreads();  // everybody has read the stage that the next round fills
  }

  const int lane = threadIdx.x % 32;
  const long long row = first + threadIdx.x / 32 * 16 + lane / 4;
#pragma unroll
  for (int i = 0; i < kFilters / 8 * 4; ++i) {
    const long long at_row = row + i % 4 / 2 * 8;
    const int at_column = place.filter + i / 4 * 8 + lane % 4 * 2 + i % 2;
    if (at_row < static_cast<long long>(images) * p * q && at_column < k) {
      out[at_row * k + at_column] = d[i / 4][i % 4];
    }
  }
}
