// What kernels need to copy boxes of tensors into shared memory by tensor map (TMA), under the PTX names.
//
// An mbarrier counts arrivals and bytes: thread 0 announces the bytes of a copy, the hardware counts them down
// as they land, and whoever waits for the phase then sees them. Elements outside the tensor arrive as zeros and
// count as landed too.

#pragma once

// The driver's opaque CUtensorMap: only its size and alignment matter here.
struct alignas(64) TensorMap {
  unsigned char opaque[128];
};

__device__ __forceinline__ unsigned shared_address(const void* pointer) {
  return static_cast<unsigned>(__cvta_generic_to_shared(pointer));
}

__device__ __forceinline__ unsigned long long map_address(const TensorMap& map) {
  return reinterpret_cast<unsigned long long>(&map);
}

// To be followed by fence_proxy_async, and then by a barrier of the block, before anybody uses it.
__device__ __forceinline__ void mbarrier_init(unsigned barrier, unsigned arrivals) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(arrivals) : "memory");
}

// Shows fresh barriers to TMA.
__device__ __forceinline__ void fence_proxy_async() {
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

__device__ __forceinline__ void mbarrier_arrive_expect_tx(unsigned barrier, unsigned bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;"
               ::"r"(barrier), "r"(bytes) : "memory");
}

// Returns once the phase of that parity has completed. On a fresh barrier, parity 1 counts as completed.
__device__ __forceinline__ void mbarrier_wait(unsigned barrier, unsigned parity) {
  unsigned done = 0;
  while (done == 0) {
    asm volatile(
        "{\n"
        ".reg .pred p;\n"
        "mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\n"
        "selp.u32 %0, 1, 0, p;\n"
        "}"
        : "=r"(done) : "r"(barrier), "r"(parity) : "memory");
  }
}

// Coordinates run innermost first, as in PTX.

__device__ __forceinline__ void copy_box(unsigned to, const TensorMap& map, unsigned barrier, int x, int y) {
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes "
      "[%0], [%1, {%2, %3}], [%4];"
      ::"r"(to), "l"(map_address(map)), "r"(x), "r"(y), "r"(barrier) : "memory");
}

__device__ __forceinline__ void copy_box(unsigned to, const TensorMap& map, unsigned barrier, int x, int y,
                                         int z, int w) {
  asm volatile(
      "cp.async.bulk.tensor.4d.shared::cluster.global.tile.mbarrier::complete_tx::bytes "
      "[%0], [%1, {%2, %3, %4, %5}], [%6];"
      ::"r"(to), "l"(map_address(map)), "r"(x), "r"(y), "r"(z), "r"(w), "r"(barrier) : "memory");
}

// Copies pixels of an im2col map: as many as the map says, from (w, h, n) on along w, then h, then n, always
// within the map's corners; each is read at an offset from where it lies.
__device__ __forceinline__ void copy_pixels(unsigned to, const TensorMap& map, unsigned barrier, int c, int w,
                                            int h, int n, unsigned short offset_w, unsigned short offset_h) {
  asm volatile(
      "cp.async.bulk.tensor.4d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes "
      "[%0], [%1, {%2, %3, %4, %5}], [%6], {%7, %8};"
      ::"r"(to), "l"(map_address(map)), "r"(c), "r"(w), "r"(h), "r"(n), "r"(barrier), "h"(offset_w),
        "h"(offset_h) : "memory");
}
