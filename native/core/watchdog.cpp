#include "core/watchdog.hpp"

#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "base/failure.hpp"

namespace fabricbench {
namespace {

// Real-time signals of our own: MPI libraries and launchers use the classic ones.
int watchdog_signal() { return SIGRTMIN + 5; }
int alarm_signal() { return SIGRTMIN + 6; }

// What the signal handler says and how it ends: it may not allocate.
std::array<char, 512> said{};
std::size_t said_size = 0;
int ends_with = 1;

void end_process(int) {
  [[maybe_unused]] const auto written = write(STDERR_FILENO, said.data(), said_size);
  constexpr timespec for_the_others{1, 0};
  nanosleep(&for_the_others, nullptr);
  _exit(ends_with);
}

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

HangAlarm::HangAlarm(std::optional<double> seconds, const std::string& message, int exit_code) {
  if (!seconds) return;
  said_size = ("fabricbench-probe: " + message + "\n").copy(said.data(), said.size());
  ends_with = exit_code;
  struct sigaction action{};
  action.sa_handler = end_process;
  sigaction(alarm_signal(), &action, nullptr);
  sigevent event{};
  event.sigev_notify = SIGEV_SIGNAL;
  event.sigev_signo = alarm_signal();
  timer_t timer{};
  if (timer_create(CLOCK_MONOTONIC, &event, &timer) != 0) fail_with_errno("timer_create");
  timer_ = timer;
  double whole = 0;
  const double rest = std::modf(*seconds, &whole);
  const itimerspec once{{}, {static_cast<time_t>(whole), static_cast<long>(rest * 1e9) + 1}};
  timer_settime(timer, 0, &once, nullptr);
}

HangAlarm::~HangAlarm() {
  if (timer_) timer_delete(*timer_);
}

}  // namespace fabricbench
