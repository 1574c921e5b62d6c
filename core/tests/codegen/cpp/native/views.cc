// Views of one to four extents, with and without strides, made in memory that is full of ones: writes the bytes of each.
#include <cstdio>
#include <cstring>
#include <new>
#include <trunnion/views.hpp>

using namespace trunnion;

template <typename Held>
static void write(int extents, int strides) {
  alignas(Held) static unsigned char memory[sizeof(Held)];
  std::memset(memory, 0xff, sizeof memory);
  asm volatile("" ::: "memory");  // no compiler takes these ones for bytes that nobody reads
  Held* view = new (memory) Held;
  view->address = 0x0807060504030201;
  for (int at = 0; at < extents; ++at) view->extents[at] = 0x04030201;
  if constexpr (sizeof(Held) >= 24) {
    for (int at = 0; at < strides; ++at) std::memset(memory + sizeof memory - 8 * (at + 1), 0x11, 8);
  }
  asm volatile("" ::: "memory");
  std::fwrite(memory, 1, sizeof memory, stdout);
}

int main() {
  write<View<1, 0>>(1, 0);
  write<View<2, 0>>(2, 0);
  write<View<3, 0>>(3, 0);
  write<View<1, 1>>(1, 1);
  write<View<3, 2>>(3, 2);
}
