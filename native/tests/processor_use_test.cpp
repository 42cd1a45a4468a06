// Who else used the processors: a process that does nothing but that is seen, and this one is not.
#include "base/processor_use.hpp"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.hpp"

namespace fabricbench {
namespace {

constexpr std::uint64_t spun_ns = 300'000'000;

void spin() {
  for (const std::uint64_t end = KernelClock::now() + spun_ns; KernelClock::now() < end;) {
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

}  // namespace
}  // namespace fabricbench
