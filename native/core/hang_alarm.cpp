#include "core/hang_alarm.hpp"

#include <signal.h>
#include <unistd.h>

#include <array>
#include <cmath>

#include "base/failure.hpp"

namespace fabricbench {
namespace {

// What the signal handler says and how it ends: it may not allocate.
std::array<char, 512> said{};
std::size_t said_size = 0;
int ends_with = 1;

int alarm_signal() { return SIGRTMIN + 6; }

void end_process(int) {
  [[maybe_unused]] const auto written = write(STDERR_FILENO, said.data(), said_size);
  constexpr timespec for_the_others{1, 0};
  nanosleep(&for_the_others, nullptr);
  _exit(ends_with);
}

}  // namespace

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
