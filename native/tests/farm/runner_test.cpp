#include "farm/runner.hpp"

#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <optional>

#include "base/failure.hpp"
#include "farm/digest.hpp"

namespace fabricbench::farm {
namespace {

namespace fs = std::filesystem;

/// Whether a process is there and no zombie.
bool is_alive(pid_t process) {
  std::ifstream file("/proc/" + std::to_string(process) + "/stat");
  std::string text;
  std::getline(file, text);
  const std::size_t end = text.rfind(") ");
  return end != std::string::npos && text[end + 2] != 'Z';
}

class Runners : public testing::Test {
 protected:
  Runners() : scratch(testing::TempDir() + "farm-runner-" + std::to_string(getpid())) {
    fs::create_directories(scratch);
    runner.emplace();
    root = runner->open(scratch);
  }
  ~Runners() override {
    runner.reset();
    EXPECT_TRUE(fs::is_empty(scratch));
    fs::remove_all(scratch);
  }

  JobToRun job(std::vector<std::string> command, double seconds = 30) {
    const std::string folder = root + "/" + std::to_string(++id);
    mkdir(folder.c_str(), 0700);
    std::ofstream(folder + "/input") << "some input";
    return {.id = id,
            .folder = folder,
            .command = std::move(command),
            .input = folder + "/input",
            .digest = digest_of_file(folder + "/input").digest,
            .seconds = seconds};
  }
  JobEnd end() {
    for (int waited = 0; waited < 20'000; waited += 5) {
      if (auto found = runner->take()) return *found;
      poll(nullptr, 0, 5);
    }
    throw std::runtime_error("no job has ended for 20 s");
  }
  JobEnd run(const JobToRun& one) {
    runner->run(one);
    return end();
  }
  static std::string text_of(const std::string& path) {
    std::ifstream file(path);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  /// The process that a job has written down.
  static pid_t process_of(const JobToRun& one) { return std::stoi(text_of(one.folder + "/process")); }

  std::string scratch;
  std::string root;
  std::uint64_t id = 0;
  std::optional<Runner> runner;
};

TEST_F(Runners, TellHowAJobEnded) {
  EXPECT_EQ(run(job({"true"})).exit_code, 0);
  EXPECT_EQ(run(job({"sh", "-c", "exit 7"})).exit_code, 7);
  EXPECT_EQ(run(job({"sh", "-c", "kill -9 $$"})).signal, SIGKILL);
}

TEST_F(Runners, StartAJobWhereItsInputLies) {
  const JobToRun one = job({"sh", "-c", "cat input; echo words >&2"});
  EXPECT_EQ(run(one).exit_code, 0);
  EXPECT_EQ(text_of(one.folder + "/stdout"), "some input");
  EXPECT_EQ(text_of(one.folder + "/stderr"), "words\n");
}

TEST_F(Runners, KeepWhatIsPrintedApartFromAnInputOfThatName) {
  JobToRun one = job({"sh", "-c", "cat stdout; echo words >&2"});
  const std::string work = one.folder + "/work";
  fs::create_directories(work);
  one.input = work + "/stdout";
  fs::rename(one.folder + "/input", one.input);
  EXPECT_EQ(run(one).exit_code, 0);
  EXPECT_EQ(text_of(one.folder + "/stdout"), "some input");
  EXPECT_EQ(text_of(one.input), "some input");
}

TEST_F(Runners, CheckTheInputWhereThereIsNoCommand) {
  EXPECT_EQ(run(job({})).exit_code, 0);
  JobToRun damaged = job({});
  std::ofstream(damaged.input) << "some other";
  EXPECT_EQ(run(damaged).exit_code, 1);
  EXPECT_NE(text_of(damaged.folder + "/stderr").find("not what rank 0 sent"), std::string::npos);
}

TEST_F(Runners, SayWhichCommandThereIsNot) {
  const JobEnd found = run(job({"no-such-program"}));
  EXPECT_EQ(found.problem, "no-such-program: No such file or directory");
  EXPECT_FALSE(found.is_of_node);
}

TEST_F(Runners, KillAJobThatTakesTooLong) {
  const JobEnd found = run(job({"sleep", "60"}, 0.2));
  EXPECT_TRUE(found.is_late);
  EXPECT_LT(found.seconds, 20);
}

TEST_F(Runners, GiveAJobUpThatStaysAfterItWasKilled) {
  // Who is traced stays as a zombie until the tracer lets it go: to its parent as one that is stuck in the kernel.
  const JobToRun one = job({"sh", "-c", "echo $$ >process; exec sleep 300"}, 1);
  runner->run(one);
  while (text_of(one.folder + "/process").empty()) poll(nullptr, 0, 5);
  const pid_t process = process_of(one);
  if (ptrace(PTRACE_SEIZE, process, nullptr, nullptr) != 0) GTEST_SKIP() << "nothing may be traced here";
  const JobEnd found = end();
  EXPECT_TRUE(found.is_late);
  EXPECT_TRUE(found.is_of_node);
  EXPECT_NE(found.problem.find("after SIGKILL it stays"), std::string::npos) << found.problem;
  EXPECT_NE(found.problem.find(std::to_string(process)), std::string::npos) << found.problem;
  waitpid(process, nullptr, __WALL);
}

TEST_F(Runners, EndWhatAJobHasStartedAlsoInASessionOfItsOwn) {
  const JobToRun one =
      job({"sh", "-c", "setsid sh -c 'echo $$ > process; exec sleep 60' & while ! [ -s process ]; do :; done"});
  EXPECT_EQ(run(one).exit_code, 0);
  EXPECT_FALSE(is_alive(process_of(one)));
}

TEST_F(Runners, RunJobsBesideOneAnother) {
  runner->run(job({"sh", "-c", "while ! [ -e ../2/there ]; do sleep 0.01; done"}));
  runner->run(job({"sh", "-c", "touch there"}));
  end();
  EXPECT_EQ(end().exit_code, 0);
}

TEST_F(Runners, GiveJobsNothingOfTheStarter) {
  runner.reset();
  setenv("PMI_RANK", "3", 1);
  setenv("LD_PRELOAD", "/nowhere/libfabricbench-yield.so", 1);
  setenv("OWN", "kept", 1);
  runner.emplace();
  unsetenv("PMI_RANK");
  unsetenv("LD_PRELOAD");
  root = runner->open(scratch);
  const JobToRun one = job({"sh", "-c", "echo $PMI_RANK,$LD_PRELOAD,$OWN"});
  run(one);
  EXPECT_EQ(text_of(one.folder + "/stdout"), ",,kept\n");
}

TEST_F(Runners, EndEverythingWhenTheyAreClosed) {
  const JobToRun one = job({"sh", "-c", "echo $$ > process; exec sleep 60"});
  runner->run(one);
  while (text_of(one.folder + "/process").empty()) poll(nullptr, 0, 5);
  const pid_t process = process_of(one);
  EXPECT_EQ(runner->close(), "");
  EXPECT_FALSE(is_alive(process));
  EXPECT_FALSE(fs::exists(root));
}

TEST_F(Runners, RemoveWhatAFarmThatWasKilledHasLeft) {
  const std::string left = root.substr(0, root.rfind('-')) + "-killed";
  fs::create_directories(left + "/3.0");
  Runner other;
  const std::string opened = other.open(scratch);
  EXPECT_FALSE(fs::exists(left));
  EXPECT_TRUE(fs::exists(root)) << "that of a farm that lives";
  EXPECT_NE(opened, root);
}

TEST_F(Runners, LeaveFoldersOfOtherNodesAlone) {
  // Their locks may not be seen here: on NFS without a lock service they are each node's own.
  const std::string before = scratch + "/fabricbench-farm-" + std::to_string(getuid()) + "-";
  const std::string alive = before + "n2-0b5e1c1e-0000-4000-8000-000000000000-abcdef";
  fs::create_directories(alive + "/3.0");
  Runner other;
  other.open(scratch);
  EXPECT_TRUE(fs::exists(alive + "/3.0"));
  fs::remove_all(alive);
}

TEST_F(Runners, SayOfOneCommandThatItIsTooLong) {
  JobToRun one = job({"true", std::string(200'000, 'x')});
  try {
    runner->run(one);
    FAIL();
  } catch (const Failure& failure) {
    EXPECT_EQ(failure.code(), FailureCode::unsupported);
  }
  EXPECT_EQ(run(job({"true"})).exit_code, 0);
}

TEST_F(Runners, CallWhoWaitsForTheirEnd) {
  int calls = 0;
  EXPECT_EQ(runner->close([&calls] { ++calls; }), "");
  EXPECT_GT(calls, 0);
}

TEST_F(Runners, SayWhereNoFolderCanBeMade) {
  Runner other;
  try {
    other.open(scratch + "/none");
    FAIL();
  } catch (const Failure& failure) {
    EXPECT_NE(std::string(failure.what()).find("`scratch` must be a folder on every node"), std::string::npos);
  }
}

}  // namespace
}  // namespace fabricbench::farm
