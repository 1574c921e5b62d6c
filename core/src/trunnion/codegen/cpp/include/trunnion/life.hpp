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

class Life {
 public:
  // Whoever asks to be asked is told of tensors that may be lazy, and of numbers that look prepared; to others they are
  // what they look like.
  void ask() { asks_ = true; }
  bool asks() const { return asks_; }

  bool enter_call() {
    __atomic_add_fetch(&in_flight_, 1, __ATOMIC_SEQ_CST);
    ++depth();
    if (__builtin_expect(!is_gone(), 1)) return true;
    leave_call();
    return raise_lifecycle(is_forked() ? kForked : kClosed);
  }

  void leave_call() {
    --depth();
    __atomic_sub_fetch(&in_flight_, 1, __ATOMIC_SEQ_CST);
  }

  // Wait for all launches, then unload, once.
  template <typename Unload>
  bool end(Unload unload) {
    if (depth() != 0) {
      return raise_lifecycle(
          "a program cannot be closed from within its own launch; close it after the call");
    }
    if (is_forked()) return true;  // whoever held the lock may not exist here
    const Locked closing(closing_);
    if (__atomic_exchange_n(&closed_, true, __ATOMIC_SEQ_CST)) return true;
    const timespec poll{0, 500000};
    while (__atomic_load_n(&in_flight_, __ATOMIC_SEQ_CST) != 0) nanosleep(&poll, nullptr);
    return unload();
  }

  // A page that a forked child finds zeroed, where what was loaded does not survive: no call is made there any more.
  bool watch_forks();

 protected:
  static constexpr const char* kClosed = "the program was closed";
  static constexpr const char* kForked =
      "the process forked after the program was loaded; load it again in the child";

  bool is_forked() const { return alive_ != nullptr && *alive_ == 0; }

 private:
  static int& depth() {
    static thread_local int calls = 0;
    return calls;
  }

  bool is_gone() const { return __atomic_load_n(&closed_, __ATOMIC_SEQ_CST) || is_forked(); }

  int32_t in_flight_ = 0;
  bool closed_ = false;
  bool asks_ = false;
  volatile unsigned char* alive_ = nullptr;
  pthread_mutex_t closing_ = PTHREAD_MUTEX_INITIALIZER;
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
