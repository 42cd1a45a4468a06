#include "farm/source.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>

#include "base/failure.hpp"

namespace fabricbench::farm {
namespace {

namespace fs = std::filesystem;

std::string text_of(Input input, std::size_t piece) {
  std::string text(input.bytes(), '\0');
  const std::span<std::byte> bytes = std::as_writable_bytes(std::span(text));
  for (std::size_t at = 0; at < bytes.size(); at += piece) {
    input.read(bytes.subspan(at, std::min(piece, bytes.size() - at)));
  }
  return text;
}

class Sources : public testing::Test {
 protected:
  Sources() : folder(testing::TempDir() + "farm-source-" + std::to_string(getpid())) {
    fs::create_directories(folder);
    std::ofstream(folder + "/b") << "second";
    std::ofstream(folder + "/a") << "first";
    plan.jobs = 2;
    plan.input_path = folder;
  }
  ~Sources() override { fs::remove_all(folder); }

  std::string refusal() const {
    try {
      const Source source(plan);
    } catch (const InputError& error) {
      return error.what();
    }
    return {};
  }

  std::string folder;
  FarmPlan plan;
};

TEST(MadeUpInputs, AreTheJobsOwnAndTheSameInWhateverPieces) {
  const std::string whole = text_of(Input(3, 1001), 1001);
  EXPECT_EQ(text_of(Input(3, 1001), 13), whole);
  EXPECT_NE(text_of(Input(4, 1001), 1001), whole);
  EXPECT_EQ(text_of(Input(0, 0), 1), "");
}

TEST_F(Sources, OfAFolderAreItsFilesInTheOrderOfTheirNames) {
  const Source source(plan);
  EXPECT_EQ(text_of(source.open(0), 2), "first");
  EXPECT_EQ(source.name_of(1), "b");
}

TEST_F(Sources, AreNamedWithoutBeingOpened) {
  const Source source(plan);
  fs::remove(folder + "/b");
  EXPECT_EQ(source.name_of(1), "b");
  EXPECT_THROW(source.open(1), Failure);
}

TEST_F(Sources, OfAFileAreThatForEveryJob) {
  plan.input_path = folder + "/b";
  plan.jobs = 7;
  EXPECT_EQ(text_of(Source(plan).open(6), 100), "second");
}

TEST_F(Sources, ThatAreNotThereSayWhatIs) {
  plan.jobs = 3;
  EXPECT_NE(refusal().find("has 2 files, needed 3, one for each job"), std::string::npos) << refusal();
  plan.input_path = folder + "/none";
  EXPECT_NE(refusal().find("neither a file nor a folder"), std::string::npos) << refusal();
}

TEST_F(Sources, TellOfAFileThatHasBecomeShorter) {
  Input input(folder + "/b");
  fs::resize_file(folder + "/b", 2);
  std::array<std::byte, 6> bytes{};
  EXPECT_THROW(input.read(bytes), Failure);
}

}  // namespace
}  // namespace fabricbench::farm
