#include "base/line_file.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>

#include "base/failure.hpp"
#include "tests/json_lines.hpp"

namespace {

int synced = 0;
int fsync_error = 0;

}  // namespace

/// Stands before the C library's: a file server tells of a full disk or quota only when all is brought to it.
extern "C" int fsync(int) {
  ++synced;
  errno = fsync_error;
  return fsync_error == 0 ? 0 : -1;
}

namespace fabricbench {
namespace {

class LineFiles : public testing::Test {
 protected:
  LineFiles() : path(testing::TempDir() + "lines-" + std::to_string(getpid()) + ".jsonl") {
    synced = 0;
    fsync_error = 0;
  }
  ~LineFiles() override { std::filesystem::remove(path); }

  std::string problem_of_closing() const {
    LineFile file(path);
    file.add({{"type", "footer"}});
    try {
      file.close();
    } catch (const OutputError& error) {
      return error.what();
    }
    return {};
  }

  std::string path;
};

TEST_F(LineFiles, AreOnTheDiskWhenTheyAreClosed) {
  EXPECT_EQ(problem_of_closing(), "");
  EXPECT_EQ(synced, 1);
  EXPECT_EQ(read_lines(path).size(), 1U);
}

TEST_F(LineFiles, SayThatTheDiskIsFullAlsoWhereThatShowsWhenTheyAreClosedOnly) {
  fsync_error = EDQUOT;
  const std::string problem = problem_of_closing();
  EXPECT_TRUE(problem.starts_with("cannot write " + path + " (fsync: Disk quota exceeded): ")) << problem;
}

TEST_F(LineFiles, MayGoToAPipeWhichHasNoDisk) {
  fsync_error = EINVAL;
  EXPECT_EQ(problem_of_closing(), "");
}

}  // namespace
}  // namespace fabricbench
