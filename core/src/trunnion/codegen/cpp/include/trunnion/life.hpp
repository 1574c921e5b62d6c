// From load to close of one program: who is launching, and who may no more.
#pragma once

#include <pthread.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include <trunnion/errors.hpp>

namespace trunnion {

class Locked {
 public:
  explicit Locked(pthread_mutex_t& mutex) : mutex_(mutex) { pthread_mutex_lock(&mutex_); }
  ~Locked() { pthread_mutex_unlock(&mutex_); }
  Locked(const Locked&) = delete;
  Locked& operator=(const Locked&) = delete;

 private:
  pthread_mutex_t& mutex_;
};

// What is true of one process. It lies in a page that a forked child finds zeroed: whoever was launching, or closing, is
// not there. A mutex of zeros is one that nobody holds.
struct Present {
  int32_t in_flight;
  bool loaded;
  pthread_mutex_t closing;
};

// Memory of zeros, whole pages of it, that a forked child finds zeroed again; null: there is none.
void* map_forgetful(size_t nbytes);

bool raise_no_page();

class Life {
 public:
  // Whoever asks to be asked is told of tensors that may be lazy, and of numbers that look prepared; to others they are
  // what they look like.
  void ask() { asks_ = true; }
  bool asks() const { return asks_; }

  bool enter_call() {
    Present* here = present();
    if (__builtin_expect(here == nullptr, 0)) return raise_no_page();
    __atomic_add_fetch(&here->in_flight, 1, __ATOMIC_SEQ_CST);
    ++depth();
    if (__builtin_expect(!is_gone(), 1)) return true;
    leave_call();
    return raise_lifecycle(is_forked() ? kForked : kClosed);
  }

  void leave_call() {
    --depth();
    __atomic_sub_fetch(&present_->in_flight, 1, __ATOMIC_SEQ_CST);
  }

  // Wait for all launches, then unload, once; again where something was left to do.
  template <typename Unload>
  bool end(Unload unload) {
    if (depth() != 0) {
      return raise_lifecycle(
          "a program cannot be closed from within its own launch; close it after the call");
    }
    if (is_forked()) return true;  // nothing that was loaded is left
    Present* here = present();
    if (here == nullptr) return raise_no_page();
    const Locked closing(here->closing);
    if (__atomic_exchange_n(&closed_, true, __ATOMIC_SEQ_CST) && !unfinished_) return true;
    const timespec poll{0, 500000};
    // Less than none: a launch itself forked, and came to its end here.
    while (__atomic_load_n(&here->in_flight, __ATOMIC_SEQ_CST) > 0) nanosleep(&poll, nullptr);
    return unload();
  }

  // What was loaded does not survive a fork: no call is made in a child any more. False: there is no memory.
  bool watch_forks();

 protected:
  static constexpr const char* kClosed = "the program was closed";
  static constexpr const char* kForked =
      "the process forked after the program was loaded, and CUDA does not survive a fork: start processes by "
      "spawn, or fork before CUDA is first used";

  // Unloading was forbidden by a stream capture; whoever closes reads and writes it.
  bool unfinished_ = false;

  bool is_forked() const { return watches_ && !__atomic_load_n(&present_->loaded, __ATOMIC_RELAXED); }

 private:
  static int& depth() {
    static thread_local int calls = 0;
    return calls;
  }

  bool is_gone() const { return __atomic_load_n(&closed_, __ATOMIC_SEQ_CST) || is_forked(); }

  // The page; null: there is no memory.
  Present* present() {
    Present* here = __atomic_load_n(&present_, __ATOMIC_ACQUIRE);
    return __builtin_expect(here != nullptr, 1) ? here : make_present();
  }

  [[gnu::cold]] Present* make_present();

  Present* present_ = nullptr;
  bool closed_ = false;
  bool asks_ = false;
  bool watches_ = false;
};

// A call under way: the program's end waits for it.
class Flight {
 public:
  explicit Flight(Life& life) : life_(life), open_(life.enter_call()) {}
  ~Flight() {
    if (open_) life_.leave_call();
  }
  Flight(const Flight&) = delete;
  Flight& operator=(const Flight&) = delete;
  explicit operator bool() const { return open_; }

 private:
  Life& life_;
  bool open_;
};

}  // namespace trunnion
