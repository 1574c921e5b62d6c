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

// Memory that a forked child wipes itself, where the kernel does not: Linux before 4.14, and sandboxes. A place whose
// memory was unmapped is another one's then: no thread can take it out of the list, since one may be forking.
struct Wiped {
  void* memory;
  size_t nbytes;
  Wiped* next;
};

static Wiped* all_wiped = nullptr;

static void wipe_in_child() {
  for (const Wiped* one = all_wiped; one != nullptr; one = one->next)
    if (one->memory != nullptr) std::memset(one->memory, 0, one->nbytes);
}

static bool take_place(void* from, void* to, size_t nbytes) {
  for (Wiped* one = __atomic_load_n(&all_wiped, __ATOMIC_ACQUIRE); one != nullptr; one = one->next) {
    void* there = from;
    if (one->nbytes == nbytes &&
        __atomic_compare_exchange_n(&one->memory, &there, to, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
      return true;
  }
  return false;
}

static bool wipe_at_forks(void* memory, size_t nbytes) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  static bool watched = false;
  pthread_once(&once, [] { watched = pthread_atfork(nullptr, nullptr, wipe_in_child) == 0; });
  if (!watched || take_place(nullptr, memory, nbytes)) return watched;
  auto* made = static_cast<Wiped*>(std::malloc(sizeof(Wiped)));
  if (made == nullptr) return false;
  *made = Wiped{memory, nbytes, __atomic_load_n(&all_wiped, __ATOMIC_RELAXED)};
  while (!__atomic_compare_exchange_n(&all_wiped, &made->next, made, false, __ATOMIC_RELEASE,
                                      __ATOMIC_RELAXED)) {
  }
  return true;
}

void* map_forgetful(size_t nbytes) {
  void* made = mmap(nullptr, nbytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (made == MAP_FAILED) return nullptr;
  if (madvise(made, nbytes, MADV_WIPEONFORK) == 0 || wipe_at_forks(made, nbytes)) return made;
  munmap(made, nbytes);
  return nullptr;
}

void unmap_forgetful(void* memory, size_t nbytes) {
  take_place(memory, nullptr, nbytes);
  munmap(memory, nbytes);
}

Present* Life::make_present() {
  auto* mine = static_cast<Present*>(map_forgetful(sizeof(Present)));
  if (mine == nullptr) return nullptr;
  Present* there = nullptr;
  if (__atomic_compare_exchange_n(&present_, &there, mine, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
    return mine;
  unmap_forgetful(mine, sizeof(Present));  // another thread was faster
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
