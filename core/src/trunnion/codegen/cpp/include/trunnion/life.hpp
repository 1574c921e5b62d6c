// From load to close of one program: who is launching, and who may no more.
#pragma once

#include <pthread.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include <cstdlib>

#include <trunnion/refusals.hpp>

namespace trunnion {

// What one thread does at a time. It lies in a page that a forked child finds zeroed: nobody does it there.
struct Gate {
  pthread_mutex_t mutex;
  const void* thread;  // an address of its own; null: nobody
};

// A thread's time to do it, for which it waits. Within that time, the same thread's next one does not wait: a driver that
// is simulated, or a hook, runs Python, and so whatever a signal's handler or a finalizer calls. That may be another
// program, which is another thread's, that waits for this one: so there is an end to waiting, unless `seconds` are 0.
class Locked {
 public:
  explicit Locked(Gate& gate, int32_t seconds = 0);
  ~Locked();
  Locked(const Locked&) = delete;
  Locked& operator=(const Locked&) = delete;
  bool is_mine() const { return mine_; }
  bool is_nested() const { return nested_; }

 private:
  Gate& gate_;
  const bool nested_;
  const bool mine_;  // given back at the end
};

#ifndef TRUNNION_PATIENCE_SECONDS
#define TRUNNION_PATIENCE_SECONDS 600
#endif

// How long another thread is waited for that loads: longer than any driver takes.
constexpr int32_t kPatienceSeconds = TRUNNION_PATIENCE_SECONDS;

// What is true of one process. It lies in a page that a forked child finds zeroed: whoever was loading, launching or
// closing is not there. A mutex of zeros is one that nobody holds.
struct Present {
  int32_t in_flight;
  bool loaded;
  Gate loading, closing;
};

// Memory of zeros, whole pages of it, that a forked child finds zeroed again; null: there is none.
void* map_forgetful(size_t nbytes);
void unmap_forgetful(void* memory, size_t nbytes);

class Flight;

class Life {
 public:
  bool enter_call() {
    Present* here = present();
    if (__builtin_expect(here == nullptr, 0)) return raise_no_own_memory();
    __atomic_add_fetch(&here->in_flight, 1, __ATOMIC_SEQ_CST);
    if (__builtin_expect(!is_gone(), 1)) return true;
    leave_call();
    return is_forked() ? raise_forked() : raise_closed();
  }

  void leave_call() { __atomic_sub_fetch(&present_->in_flight, 1, __ATOMIC_SEQ_CST); }

  // Wait for all launches, then unload, once; again where something was left to do.
  template <typename Unload>
  bool end(Unload unload) {
    if (is_launching()) return raise_close_within();
    if (is_forked()) return true;  // nothing that was loaded is left
    Present* here = present();
    if (here == nullptr) return raise_no_own_memory();
    const Locked closing(here->closing);
    if (closing.is_nested()) return true;  // whoever closes, further up in this thread, does it
    if (__atomic_exchange_n(&closed_, true, __ATOMIC_SEQ_CST) && !unfinished_) return true;
    const timespec poll{0, 500000};
    // Less than none: a launch itself forked, and came to its end here.
    while (__atomic_load_n(&here->in_flight, __ATOMIC_SEQ_CST) > 0) nanosleep(&poll, nullptr);
    return unload();
  }

  // Memory of zeros that lasts as long as the program, the same each time; null: there is none.
  void* own_memory(size_t nbytes) {
    if (memory_ == nullptr) memory_ = std::calloc(1, nbytes);
    return memory_;
  }

  // Whether the calling thread is within a call of this program.
  bool is_launching() const;

  // Whether nothing of it is left to unload, so that it may be forgotten once no function of it is left.
  bool is_over(bool loaded) const { return !loaded || is_forked() || (is_ended() && !unfinished_); }

  // Whoever can make a call of a program that is one of several (`instances.hpp`); the last one, leaving, forgets it.
  void count_holders() { is_counted_ = true; }
  void hold() { __atomic_add_fetch(&holders_, 1, __ATOMIC_RELAXED); }
  bool leave() { return __atomic_sub_fetch(&holders_, 1, __ATOMIC_ACQ_REL) == 0 && is_counted_; }

  // What was loaded does not survive a fork: no call is made in a child any more. False: there is no memory.
  bool watch_forks();

 protected:
  // Give back what calls need.
  void forget() {
    if (present_ != nullptr) unmap_forgetful(present_, sizeof(Present));
    std::free(memory_);
  }

  // Unloading was forbidden by a stream capture; whoever closes reads and writes it.
  bool unfinished_ = false;

  bool is_forked() const {
    return __atomic_load_n(&watches_, __ATOMIC_ACQUIRE) &&
           !__atomic_load_n(&present_->loaded, __ATOMIC_RELAXED);
  }

  // What loading is done behind, within a call alone: whoever entered one has the page.
  Gate& loading() { return present_->loading; }

  static bool raise_refused(const Locked& locked) {
    return locked.is_nested() ? raise_loading_nested() : raise_loading_elsewhere();
  }

 private:
  bool is_ended() const { return __atomic_load_n(&closed_, __ATOMIC_SEQ_CST); }
  bool is_gone() const { return is_ended() || is_forked(); }

  // The page; null: there is no memory.
  Present* present() {
    Present* here = __atomic_load_n(&present_, __ATOMIC_ACQUIRE);
    return __builtin_expect(here != nullptr, 1) ? here : make_present();
  }

  [[gnu::cold]] Present* make_present();

  Present* present_ = nullptr;
  void* memory_ = nullptr;
  int32_t holders_ = 0;
  bool is_counted_ = false;
  bool closed_ = false;
  bool watches_ = false;
};

// A call under way: the program's end waits for it.
class Flight {
 public:
  explicit Flight(Life& life)
      : life_(life), innermost_(innermost()), outer_(innermost_), open_(life.enter_call()) {
    innermost_ = this;
  }
  ~Flight() {
    innermost_ = outer_;
    if (open_) life_.leave_call();
  }
  Flight(const Flight&) = delete;
  Flight& operator=(const Flight&) = delete;
  explicit operator bool() const { return open_; }

  // Whether the calling thread is within a call of that program.
  static bool is_within(const Life& life) {
    for (const Flight* flight = innermost(); flight != nullptr; flight = flight->outer_) {
      if (&flight->life_ == &life) return true;
    }
    return false;
  }

 private:
  static const Flight*& innermost() {
    static thread_local const Flight* flight = nullptr;
    return flight;
  }

  Life& life_;
  const Flight*& innermost_;  // the thread's, which costs a call to find
  const Flight* const outer_;
  const bool open_;
};

inline bool Life::is_launching() const { return Flight::is_within(*this); }

}  // namespace trunnion
