// The threads of a sweep over memory that all processors share: each is bound to a processor of its own and works on
// its part of the arrays, which it has touched first, so that the part lies in that processor's memory. All meet after
// each sweep, as STREAM's do. The calling thread is one of them.
#pragma once

#include <sched.h>

#include <atomic>
#include <barrier>
#include <cstddef>
#include <thread>
#include <vector>

namespace fabricbench {

/// The processors that this process may be given, whatever the thread is bound to now.
std::vector<int> allowed_processors();

/// Binds the calling thread to a processor, and back to where it was.
class BoundThread {
 public:
  explicit BoundThread(int processor);
  ~BoundThread();
  BoundThread(const BoundThread&) = delete;
  BoundThread& operator=(const BoundThread&) = delete;

 private:
  cpu_set_t before_{};
};

/// Threads that do `work(member)` together, again and again.
template <class Work>
class Crew {
 public:
  /// One thread for each of these processors; `begin(member)` is done by each before the first work.
  template <class Begin>
  Crew(const std::vector<int>& processors, Begin begin, Work work)
      : work_(work), own_(processors.front()), all_(static_cast<std::ptrdiff_t>(processors.size())) {
    others_.reserve(processors.size() - 1);
    try {
      for (std::size_t member = 1; member < processors.size(); ++member) {
        others_.emplace_back([this, member, processor = processors[member], begin] {
          const BoundThread bound(processor);
          begin(member);
          follow(member);
        });
      }
    } catch (...) {
      // Those that were not started are missed by nobody.
      for (std::size_t missing = others_.size() + 1; missing < processors.size(); ++missing) all_.arrive_and_drop();
      end();
      throw;
    }
    begin(0);
  }
  ~Crew() { end(); }
  Crew(const Crew&) = delete;
  Crew& operator=(const Crew&) = delete;

  /// Do the work so many times; all have done each before anybody begins the next.
  void run(std::size_t times) {
    times_.store(times, std::memory_order_relaxed);
    all_.arrive_and_wait();
    repeat(0, times);
  }

 private:
  void follow(std::size_t member) {
    for (;;) {
      all_.arrive_and_wait();
      const std::size_t times = times_.load(std::memory_order_relaxed);
      if (times == 0) return;
      repeat(member, times);
    }
  }
  void repeat(std::size_t member, std::size_t times) {
    for (std::size_t i = 0; i < times; ++i) {
      work_(member);
      all_.arrive_and_wait();
    }
  }
  void end() {
    times_.store(0, std::memory_order_relaxed);
    all_.arrive_and_wait();
    for (std::thread& other : others_) other.join();
    others_.clear();
  }

  Work work_;
  BoundThread own_;
  std::barrier<> all_;
  std::atomic<std::size_t> times_ = 0;
  std::vector<std::thread> others_;
};

}  // namespace fabricbench
