// Who else used the processors: a process that does nothing but that is seen, and this one is not.
#include "base/processor_use.hpp"

#include <gtest/gtest.h>
#include <linux/sched.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>

#include "base/clock.hpp"

namespace fabricbench {
namespace {

constexpr std::uint64_t spun_ns = 300'000'000;

void spin() {
  for (const std::uint64_t end = Clock::now() + spun_ns; Clock::now() < end;) {
  }
}

TEST(OtherProcesses, OneThatUsesAProcessorIsSeen) {
  const OtherProcesses others;
  const pid_t child = fork();
  if (child == 0) {
    spin();
    _exit(0);
  }
  spin();
  const auto found = others.busiest();  // before the child is waited for, and gone
  waitpid(child, nullptr, 0);
  ASSERT_TRUE(found);
  EXPECT_GE(found->share, 0.01);
  EXPECT_FALSE(found->process.empty());
}

/// fork() with the number that the child is to have.
pid_t fork_as(pid_t number) {
  clone_args arguments{};
  arguments.exit_signal = SIGCHLD;
  arguments.set_tid = reinterpret_cast<std::uintptr_t>(&number);
  arguments.set_tid_size = 1;
  return static_cast<pid_t>(syscall(SYS_clone3, &arguments, sizeof arguments));
}

TEST(OtherProcesses, OneThatHasTheNumberOfAnEarlierOneUsedNoMoreThanItsOwn) {
  const pid_t earlier = fork();
  if (earlier == 0) {
    spin();
    pause();
    _exit(0);
  }
  spin();
  spin();
  const OtherProcesses others;
  kill(earlier, SIGKILL);
  waitpid(earlier, nullptr, 0);
  const pid_t later = fork_as(earlier);
  if (later == 0) {
    for (const std::uint64_t end = Clock::now() + spun_ns / 3; Clock::now() < end;) {
    }
    pause();
    _exit(0);
  }
  if (later < 0) GTEST_SKIP() << "a process's number cannot be chosen here: errno " << errno;
  spin();
  const auto found = others.busiest();
  kill(later, SIGKILL);
  waitpid(later, nullptr, 0);
  EXPECT_LE(found ? found->share : 0, 1.5);
}

}  // namespace
}  // namespace fabricbench
