#include "farm/output.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <string>

#include "base/failure.hpp"
#include "farm/digest.hpp"

namespace {

int reads_until_interruption = 0;  // 0: none is interrupted

}  // namespace

/// In the place of the system's, for the whole program.
extern "C" ssize_t read(int file, void* buffer, std::size_t bytes) {
  if (reads_until_interruption > 0 && --reads_until_interruption == 0) {
    errno = EINTR;
    return -1;
  }
  return syscall(SYS_read, file, buffer, bytes);
}

namespace fabricbench::farm {
namespace {

namespace fs = std::filesystem;

class Outputs : public testing::Test {
 protected:
  Outputs() : folder(testing::TempDir() + "farm-output-" + std::to_string(getpid())), path(folder + "/output") {
    fs::create_directories(folder);
  }
  ~Outputs() override { fs::remove_all(folder); }

  std::string refusal() const {
    try {
      const OutputFile output(path);
    } catch (const Failure& failure) {
      return failure.what();
    }
    return {};
  }

  std::string folder;
  std::string path;
};

TEST_F(Outputs, AreReadOnceWhileWhoReadsTellsThatItLives) {
  const std::string text(3'000'000, 'x');
  std::ofstream(path) << text;
  const OutputFile output(path);
  EXPECT_EQ(output.bytes(), text.size());
  std::string kept;
  int calls = 0;
  EXPECT_EQ(output.read(&kept, [&calls] { ++calls; }), digest_of_file(path).digest);
  EXPECT_EQ(kept, text);
  EXPECT_GE(calls, 3);
}

TEST_F(Outputs, AreReadOnWhereASignalInterruptsTheirReader) {
  const std::string text(3'000'000, 'x');
  std::ofstream(path) << text;
  const FileDigest whole = digest_of_file(path);
  reads_until_interruption = 2;
  const FileDigest interrupted = digest_of_file(path);
  EXPECT_EQ(reads_until_interruption, 0);
  EXPECT_EQ(interrupted.bytes, whole.bytes);
  EXPECT_EQ(interrupted.digest, whole.digest);
  reads_until_interruption = 2;
  EXPECT_EQ(OutputFile(path).read(nullptr, [] {}), whole.digest);
  EXPECT_EQ(reads_until_interruption, 0);
}

TEST_F(Outputs, OfAPipeADirectoryOrALinkAreRefusedByNameAtOnce) {
  mkfifo(path.c_str(), 0600);
  EXPECT_NE(refusal().find(path + " is no regular file"), std::string::npos) << refusal();
  fs::remove(path);
  fs::create_directory(path);
  EXPECT_NE(refusal().find(path + " is no regular file"), std::string::npos) << refusal();
  fs::remove(path);
  fs::create_symlink("/etc/hostname", path);
  EXPECT_NE(refusal().find(path + " is no regular file"), std::string::npos) << refusal();
}

TEST_F(Outputs, ThatAreNotThereAreSaidToBeMissing) {
  EXPECT_NE(refusal().find("it left no output"), std::string::npos) << refusal();
}

}  // namespace
}  // namespace fabricbench::farm
