#include "farm/output.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "base/failure.hpp"
#include "farm/digest.hpp"

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
