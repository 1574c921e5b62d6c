#include <trunnion/life.hpp>

namespace trunnion {

Present* Life::make_present() {
  const size_t page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  void* made = mmap(nullptr, page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (made == MAP_FAILED) return nullptr;
  madvise(made, page, MADV_WIPEONFORK);
  Present* there = nullptr;
  auto* mine = static_cast<Present*>(made);
  if (__atomic_compare_exchange_n(&present_, &there, mine, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
    return mine;
  munmap(made, page);  // another thread was faster
  return there;
}

bool Life::raise_no_page() {
  Text message;
  return raise_plain("MemoryError", "MemoryError",
                     message << "the launcher's own memory could not be allocated");
}

bool Life::watch_forks() {
  Present* here = present();
  if (here == nullptr) return false;
  __atomic_store_n(&here->loaded, true, __ATOMIC_RELAXED);
  watches_ = true;
  return true;
}

}  // namespace trunnion
