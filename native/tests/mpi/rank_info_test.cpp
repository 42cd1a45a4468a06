// What a rank finds out about its processors on machines that are larger than this one.
#include "core/rank_info.hpp"

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>

namespace {

/// What the machine is to look like; nothing: as it is.
struct Machine {
  std::size_t possible = 0;
  int first_allowed = 0;
  int allowed = 0;
  bool refuses = false;
};
Machine machine;

}  // namespace

/// In the place of the system's, for the whole program.
extern "C" int sched_getaffinity(pid_t pid, std::size_t bytes, cpu_set_t* cpus) noexcept {
  if (machine.refuses) {
    errno = EPERM;
    return -1;
  }
  std::memset(cpus, 0, bytes);
  if (machine.possible == 0) return syscall(SYS_sched_getaffinity, pid, bytes, cpus) < 0 ? -1 : 0;
  if (bytes * 8 < machine.possible) {
    errno = EINVAL;
    return -1;
  }
  for (int i = 0; i < machine.allowed; ++i) {
    CPU_SET_S(static_cast<std::size_t>(machine.first_allowed + i), bytes, cpus);
  }
  return 0;
}

namespace fabricbench {
namespace {

class Whereabouts : public testing::Test {
 protected:
  void TearDown() override { machine = {}; }
  static int own_rank() {
    int rank = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    return rank;
  }
};

TEST_F(Whereabouts, RanksThatShareAProcessorOfALargeMachineHaveNoneOfTheirOwn) {
  machine = {.possible = 8192, .first_allowed = 5000, .allowed = 1};
  EXPECT_FALSE(has_own_processors(MPI_COMM_WORLD, 1));
  EXPECT_EQ(rank_info(0)["cpus"], nlohmann::json({5000}));
}

TEST_F(Whereabouts, RanksOnProcessorsOfTheirOwnOfALargeMachineHaveThem) {
  machine = {.possible = 8192, .first_allowed = 5000 + own_rank(), .allowed = 1};
  EXPECT_TRUE(has_own_processors(MPI_COMM_WORLD, 1));
  EXPECT_FALSE(has_own_processors(MPI_COMM_WORLD, 2));
}

TEST_F(Whereabouts, RanksWhoseMachinesAreOfAnotherSizeCanBeCompared) {
  machine = {.possible = own_rank() == 0 ? std::size_t{64} : std::size_t{8192}, .first_allowed = 3, .allowed = 1};
  EXPECT_FALSE(has_own_processors(MPI_COMM_WORLD, 1));
}

TEST_F(Whereabouts, WhoCannotTellItsProcessorsSharesThemWithAll) {
  machine.refuses = own_rank() == 0;
  EXPECT_FALSE(has_own_processors(MPI_COMM_WORLD, 1));
  machine.refuses = true;
  EXPECT_EQ(rank_info(0)["cpus"], nlohmann::json::array());
}

}  // namespace
}  // namespace fabricbench
