#include "core/watchdog.hpp"

#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>

#include "base/failure.hpp"

namespace fabricbench {
namespace {

// A real-time signal of our own: MPI libraries and launchers use the classic ones.
int watchdog_signal() { return SIGRTMIN + 5; }

}  // namespace

Watchdog::Watchdog(double period_seconds) {
  struct sigaction action{};
  action.sa_handler = [](int) {};  // without SA_RESTART: the interruption is the point
  sigaction(watchdog_signal(), &action, nullptr);

  sigevent event{};
  event.sigev_notify = SIGEV_THREAD_ID;  // not to a thread of the MPI library
  event.sigev_signo = watchdog_signal();
  event._sigev_un._tid = static_cast<pid_t>(syscall(SYS_gettid));
  if (timer_create(CLOCK_MONOTONIC, &event, &timer_) != 0) fail_with_errno("timer_create");
  const auto seconds = static_cast<time_t>(period_seconds);
  const timespec period{seconds, static_cast<long>((period_seconds - static_cast<double>(seconds)) * 1e9)};
  const itimerspec times{period, period};
  timer_settime(timer_, 0, &times, nullptr);
}

Watchdog::~Watchdog() { timer_delete(timer_); }

double watchdog_period(double bound_seconds) {
  constexpr double shortest = 1e-3;
  constexpr double longest = 50e-3;
  return std::clamp(bound_seconds / 8, shortest, longest);
}

}  // namespace fabricbench
