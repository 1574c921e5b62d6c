#include <trunnion/life.hpp>

namespace trunnion {

static const void* this_thread() {
  static thread_local char own;
  return &own;
}

static time_t now() {
  timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return time.tv_sec;
}

// Whether a mutex could be locked before so many seconds were over; 0: there is no end to waiting.
static bool lock(pthread_mutex_t& mutex, int32_t seconds) {
  if (seconds == 0) return pthread_mutex_lock(&mutex) == 0;
  const time_t end = now() + seconds;
  do {
    timespec soon;
    clock_gettime(CLOCK_REALTIME, &soon);  // the only one that older systems wait by; somebody may set it
    soon.tv_sec += 1;
    if (pthread_mutex_timedlock(&mutex, &soon) == 0) return true;
  } while (now() < end);
  return false;
}

Locked::Locked(Gate& gate, int32_t seconds)
    : gate_(gate),
      nested_(__atomic_load_n(&gate.thread, __ATOMIC_RELAXED) == this_thread()),
      mine_(!nested_ && lock(gate.mutex, seconds)) {
  if (mine_) __atomic_store_n(&gate_.thread, this_thread(), __ATOMIC_RELAXED);
}

Locked::~Locked() {
  // In a child that was forked meanwhile nobody holds anything.
  if (!mine_ || __atomic_load_n(&gate_.thread, __ATOMIC_RELAXED) != this_thread()) return;
  __atomic_store_n(&gate_.thread, nullptr, __ATOMIC_RELAXED);
  pthread_mutex_unlock(&gate_.mutex);
}

void* map_forgetful(size_t nbytes) {
  void* made = mmap(nullptr, nbytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (made == MAP_FAILED) return nullptr;
  madvise(made, nbytes, MADV_WIPEONFORK);
  return made;
}

Present* Life::make_present() {
  auto* mine = static_cast<Present*>(map_forgetful(sizeof(Present)));
  if (mine == nullptr) return nullptr;
  Present* there = nullptr;
  if (__atomic_compare_exchange_n(&present_, &there, mine, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
    return mine;
  munmap(mine, sizeof(Present));  // another thread was faster
  return there;
}

bool Life::watch_forks() {
  Present* here = present();
  if (here == nullptr) return false;
  __atomic_store_n(&here->loaded, true, __ATOMIC_RELAXED);
  __atomic_store_n(&watches_, true, __ATOMIC_RELEASE);  // whoever sees it sees that it is loaded
  return true;
}

}  // namespace trunnion
