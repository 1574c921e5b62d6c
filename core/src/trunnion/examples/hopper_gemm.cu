// C = A * B^T on Hopper: tensor-map copies (TMA) feed a ring of shared-memory stages, from which warpgroups
// multiply (wgmma).
//
//   A  fp16 [m, k] row-major, read through `a`: a tiled map, box 128 rows x 64 columns, 128-byte swizzle
//   B  fp16 [n, k] row-major, read through `b`: the same box and swizzle over B
//   C  fp32 [m, n] row-major, written by plain stores
//
// m, n >= 1 in any size; k >= 8 a multiple of 8, because a tensor map's row pitch is a multiple of 16 bytes.
// Launch: grid (ceildiv(m, 128), ceildiv(n, 128)), block 288, dynamic shared memory
// kStages * 32768 + 1024 bytes.
// Target: sm_90a. The PTX instructions that tensor_copy.cuh does not have are wrapped below, under their PTX names.

#include "tensor_copy.cuh"

constexpr int kTileM = 128;
constexpr int kTileN = 128;
constexpr int kTileK = 64;                 // 64 fp16 are 128 bytes: one row of the 128-byte swizzle
constexpr int kConsumerWarpgroups = 2;     // each multiplies 64 of the tile's 128 rows
constexpr int kConsumerWarps = 4 * kConsumerWarpgroups;
constexpr int kThreads = 32 * (kConsumerWarps + 1);  // the last warp is the producer
constexpr unsigned kBytesA = kTileM * kTileK * 2;
constexpr unsigned kBytesB = kTileN * kTileK * 2;
constexpr unsigned kStageBytes = kBytesA + kBytesB;
constexpr unsigned kSwizzleAtom = 1024;    // the swizzle's period, 8 rows of 128 bytes: aligns every tile
constexpr int kAccumulators = 64;          // a 64 x 128 fp32 tile over 128 threads

// mbarriers: `full` says that a stage's bytes have landed, `empty` that every consumer warp has read them.

__device__ __forceinline__ void mbarrier_arrive(unsigned barrier) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(barrier) : "memory");
}

// wgmma: the 128 threads of a warpgroup multiply two shared-memory operands into their registers.

// Matrix descriptor of a K-major operand in the 128-byte swizzle (PTX ISA, "Matrix Descriptor Format"), in
// 16-byte units: start address in bits 0-13, leading offset (unused by a swizzled K-major operand) in 16-29,
// distance between groups of 8 rows in 32-45, the swizzle mode in 62-63.
__device__ __forceinline__ unsigned long long matrix_descriptor(unsigned address) {
  return static_cast<unsigned long long>((address & 0x3FFFF) >> 4) | 1ULL << 16 |
         static_cast<unsigned long long>(kSwizzleAtom >> 4) << 32 | 1ULL << 62;
}

__device__ __forceinline__ void wgmma_fence() {
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}

__device__ __forceinline__ void wgmma_commit() {
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}

// Returns once at most `kPending` committed groups are still running.
template <int kPending>
__device__ __forceinline__ void wgmma_wait() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(kPending) : "memory");
}

#define ACCUMULATORS_4(i) "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3])
#define ACCUMULATORS_8(i) ACCUMULATORS_4(i), ACCUMULATORS_4(i + 4)
#define ACCUMULATORS_16(i) ACCUMULATORS_8(i), ACCUMULATORS_8(i + 8)

// d[64 x 128] += a[64 x 16] * b[128 x 16]^T; asynchronous, so d is unreadable until wgmma_wait<0>.
__device__ __forceinline__ void wgmma_m64n128k16(float (&d)[kAccumulators], unsigned long long a,
                                                 unsigned long long b) {
  asm volatile(
      "{\n"
      ".reg .pred accumulate;\n"
      "setp.eq.u32 accumulate, 0, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16 {"
      "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
      "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, "
      "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, "
      "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63}, "
      "%64, %65, accumulate, 1, 1, 0, 0;\n"  // no negation of a, b; both are K-major, so no transposition
      "}"
      : ACCUMULATORS_16(0), ACCUMULATORS_16(16), ACCUMULATORS_16(32), ACCUMULATORS_16(48)
      : "l"(a), "l"(b));
}

#undef ACCUMULATORS_16
#undef ACCUMULATORS_8
#undef ACCUMULATORS_4

// Slot i % kStages of the ring holds k-tile i; its barriers then complete their phase i / kStages, and a wait
// names a phase by its parity.

template <int kStages>
__device__ __forceinline__ void produce(const TensorMap& a, const TensorMap& b, unsigned stages,
                                        unsigned full, unsigned empty, int row, int column, int k_tiles) {
  for (int tile = 0; tile < k_tiles; ++tile) {
    const unsigned slot = tile % kStages;
    const unsigned stage = stages + slot * kStageBytes;
    const unsigned landed = full + slot * 8;
    mbarrier_wait(empty + slot * 8, (tile / kStages + 1) & 1);  // the phase before: passes in the first round
    mbarrier_arrive_expect_tx(landed, kStageBytes);
    copy_box(stage, a, landed, tile * kTileK, row);
    copy_box(stage + kBytesA, b, landed, tile * kTileK, column);
  }
}

template <int kStages>
__device__ __forceinline__ void consume(float (&d)[kAccumulators], unsigned stages, unsigned full,
                                        unsigned empty, int warpgroup, int lane, int k_tiles) {
  for (int tile = 0; tile < k_tiles; ++tile) {
    const unsigned slot = tile % kStages;
    const unsigned stage = stages + slot * kStageBytes;
    const unsigned rows = stage + warpgroup * (kBytesA / kConsumerWarpgroups);
    mbarrier_wait(full + slot * 8, (tile / kStages) & 1);
    wgmma_fence();
#pragma unroll
    for (int column = 0; column < kTileK; column += 16) {
      wgmma_m64n128k16(d, matrix_descriptor(rows + column * 2),
                       matrix_descriptor(stage + kBytesA + column * 2));
    }
    wgmma_commit();
    // This tile's group keeps running while the one before it, now done, gives its stage back.
    wgmma_wait<1>();
    if (tile > 0 && lane == 0) {
      mbarrier_arrive(empty + (tile - 1) % kStages * 8);
    }
  }
  wgmma_wait<0>();  // the last tile's stage is never refilled, so it needs no arrival
}

// Row and column are those of the thread's first accumulator. Four accumulators hold two neighbours in each
// of two rows, 8 rows apart; the next four lie 8 columns further.
__device__ __forceinline__ void store(const float (&d)[kAccumulators], float* c, int row, int column, int m,
                                      int n) {
#pragma unroll
  for (int i = 0; i < kAccumulators; ++i) {
    const int at_row = row + i / 2 % 2 * 8;
    const int at_column = column + i / 4 * 8 + i % 2;
    if (at_row < m && at_column < n) {
      c[static_cast<long long>(at_row) * n + at_column] = d[i];
    }
  }
}

template <int kStages>
__global__ void __launch_bounds__(kThreads)
hopper_gemm(const __grid_constant__ TensorMap a, const __grid_constant__ TensorMap b, float* c, int m, int n,
            int k) {
  // A stage is given back one tile late, so a single one would never come free; 8 exceed a block's 227 KiB.
  static_assert(kStages >= 2 && kStages <= 7, "hopper_gemm runs with 2 to 7 stages");
  extern __shared__ unsigned char dynamic_shared[];
  __shared__ unsigned long long full_barriers[kStages];
  __shared__ unsigned long long empty_barriers[kStages];

  const unsigned stages = (shared_address(dynamic_shared) + kSwizzleAtom - 1) & ~(kSwizzleAtom - 1);
  const unsigned full = shared_address(full_barriers);
  const unsigned empty = shared_address(empty_barriers);
  const int warp = threadIdx.x / 32;
  const int lane = threadIdx.x % 32;
  const int row = blockIdx.x * kTileM;
  const int column = blockIdx.y * kTileN;
  const int k_tiles = (k + kTileK - 1) / kTileK;

  if (threadIdx.x == 0) {
    for (int slot = 0; slot < kStages; ++slot) {
      mbarrier_init(full + slot * 8, 1);
      mbarrier_init(empty + slot * 8, kConsumerWarps);
    }
    fence_proxy_async();
  }
  __syncthreads();

  if (warp == kConsumerWarps) {
    if (lane == 0) {
      produce<kStages>(a, b, stages, full, empty, row, column, k_tiles);
    }
  } else {
    float d[kAccumulators] = {};
    consume<kStages>(d, stages, full, empty, warp / 4, lane, k_tiles);
    store(d, c, row + warp * 16 + lane / 4, column + lane % 4 * 2, m, n);
  }
}
