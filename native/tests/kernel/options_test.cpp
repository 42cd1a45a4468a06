#include "kernel/frame/options.hpp"

#include <gtest/gtest.h>

#include <array>
#include <initializer_list>
#include <vector>

namespace fabricbench::npb {
namespace {

std::optional<std::string> only_squares(Class problem, int ranks) {
  const int most = problem == Class::S ? 9 : 64;
  for (int edge = 1; edge * edge <= most; ++edge) {
    if (edge * edge == ranks) return std::nullopt;
  }
  return "it runs on squares";
}
std::optional<std::string> any(Class, int) { return std::nullopt; }
std::optional<std::string> none(Class, int) { return "never"; }

const Kernel squares{"bt", "squares only", only_squares, nullptr};
const Kernel everything{"ep", "any number", any, nullptr};
const Kernel nothing{"no", "nowhere", none, nullptr};
const std::array<const Kernel*, 3> choice{&squares, &everything, &nothing};

Options parse(std::initializer_list<const char*> words) {
  std::vector<char*> arguments;
  for (const char* word : words) arguments.push_back(const_cast<char*>(word));
  return parse_options(arguments, choice);
}

std::string refusal(std::initializer_list<const char*> words) {
  try {
    parse(words);
  } catch (const UsageError& error) {
    return error.message;
  }
  return "taken";
}

TEST(NpbOptions, AreClassSOnAllRanksOnceWhereNothingElseIsSaid) {
  const Options options = parse({"ep"});
  EXPECT_EQ(options.action, Action::run);
  EXPECT_EQ(options.kernel, &everything);
  EXPECT_EQ(options.problem, Class::S);
  EXPECT_FALSE(options.ranks);
  EXPECT_EQ(options.repetitions, 1);
  EXPECT_TRUE(options.output.empty());
}

TEST(NpbOptions, AreTakenBeforeAndAfterTheKernel) {
  const Options options = parse({"--class", "B", "--ranks", "4", "bt", "--repeat", "3", "--output", "-"});
  EXPECT_EQ(options.kernel, &squares);
  EXPECT_EQ(options.problem, Class::B);
  EXPECT_EQ(options.ranks, 4);
  EXPECT_EQ(options.repetitions, 3);
  EXPECT_EQ(options.output, "-");
}

TEST(NpbOptions, AskForHelpWithoutAKernel) {
  EXPECT_EQ(parse({"--help"}).action, Action::help);
  EXPECT_EQ(parse({"--list", "--class", "A"}).action, Action::list);
  EXPECT_EQ(parse({"--version"}).action, Action::version);
}

TEST(NpbOptions, ThatAreWrongAreRefusedWithWhatIsNeeded) {
  EXPECT_EQ(refusal({"cg"}), "there is no kernel \"cg\"; there are bt, ep, no");
  EXPECT_EQ(refusal({"ep", "bt"}), "one kernel is needed, found \"bt\" after ep");
  EXPECT_EQ(refusal({}), "a kernel is needed");
  EXPECT_EQ(refusal({"ep", "--class", "E"}), "--class needs one of S, W, A, B, C, D, found \"E\"");
  EXPECT_EQ(refusal({"ep", "--class", ""}), "--class needs one of S, W, A, B, C, D, found \"\"");
  EXPECT_EQ(refusal({"ep", "--ranks", "4x"}), "--ranks needs a number from 1 to 1000000, found \"4x\"");
  EXPECT_EQ(refusal({"ep", "--repeat", "0"}), "--repeat needs a number from 1 to 1000000, found \"0\"");
  EXPECT_EQ(refusal({"ep", "--output"}), "--output needs a value");
  EXPECT_EQ(refusal({"ep", "--fast"}), "there is no option --fast");
}

TEST(NpbList, ShowsTheNumbersOfRanksOfTheClass) {
  EXPECT_EQ(list_text(choice, Class::S),
            "bt  squares only\n    ranks, class S: 1 4 9\n"
            "ep  any number\n    ranks, class S: 1-64\n"
            "no  nowhere\n    ranks, class S: none\n");
  EXPECT_NE(list_text(choice, Class::A).find("class A: 1 4 9 16 25 36 49 64\n"), std::string::npos);
}

}  // namespace
}  // namespace fabricbench::npb
