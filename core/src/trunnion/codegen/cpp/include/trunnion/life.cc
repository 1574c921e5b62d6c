#include <trunnion/life.hpp>

namespace trunnion {

bool Life::watch_forks() {
  if (alive_ != nullptr) return true;
  const size_t page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  void* made = mmap(nullptr, page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (made == MAP_FAILED) return false;
  madvise(made, page, MADV_WIPEONFORK);
  alive_ = static_cast<volatile unsigned char*>(made);
  *alive_ = 1;
  return true;
}

}  // namespace trunnion
