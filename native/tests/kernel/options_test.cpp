#include "kernel/frame/options.hpp"

#include <gtest/gtest.h>

#include <array>
#include <initializer_list>
#include <vector>

namespace fabricbench::kernel {
namespace {

/// A problem in classes, as NPB has, that runs on the numbers of ranks which a function takes.
class Classed final : public Problem {
 public:
  using Refusal = std::optional<std::string> (*)(char letter, int ranks);
  Classed(const Arguments& arguments, Refusal rule) : refusal_(rule) {
    static constexpr std::array<std::string_view, 6> letters{"S", "W", "A", "B", "C", "D"};
    letter_ = arguments.word("--class", letters, "S").front();
  }
  std::vector<Parameter> parameters() const override { return {{"class", std::string(1, letter_)}}; }
  std::optional<std::string> refusal(int ranks) const override { return refusal_(letter_, ranks); }
  Result run(MPI_Comm) const override { return {}; }

 private:
  char letter_ = 'S';
  Refusal refusal_;
};

/// A problem by numbers.
class Blocked final : public Problem {
 public:
  explicit Blocked(const Arguments& arguments)
      : n_(arguments.number("--n", 1, 100'000, 1000)), block_(arguments.number("--block", 1, 512, 64)) {}
  std::vector<Parameter> parameters() const override { return {{"n", n_}, {"block", block_}, {"threshold", 16.5}}; }
  Result run(MPI_Comm) const override { return {}; }

 private:
  std::int64_t n_;
  std::int64_t block_;
};

Kernel classed(std::string_view name, std::string_view summary, Classed::Refusal refusal) {
  return {name, summary,
          [refusal](const Arguments& arguments) { return std::make_unique<const Classed>(arguments, refusal); }};
}

std::optional<std::string> only_squares(char letter, int ranks) {
  const int most = letter == 'S' ? 9 : 64;
  for (int edge = 1; edge * edge <= most; ++edge) {
    if (edge * edge == ranks) return std::nullopt;
  }
  return "it runs on squares";
}
std::optional<std::string> any(char, int) { return std::nullopt; }
std::optional<std::string> none(char, int) { return "never"; }

const Program several{
    .name = "several",
    .purpose = "Runs one of three.",
    .kernels = {classed("bt", "squares only", only_squares), classed("ep", "any number", any),
                classed("no", "nowhere", none)},
    .options = {{"--class", "C", "the size of the problem"}},
    .example = "ep --class A",
};
const Program alone{
    .name = "alone",
    .purpose = "Runs the only one.",
    .kernels = {{"lu", "rows and columns", read_problem<Blocked>}},
    .options = {{"--n", "N", "the rows of the matrix"}, {"--block", "N", "columns at a time"}},
    .example = "--n 5000",
};

Options parse(std::initializer_list<const char*> words, const Program& program = several) {
  std::vector<char*> arguments;
  for (const char* word : words) arguments.push_back(const_cast<char*>(word));
  return parse_options(program, arguments);
}

std::string refusal(std::initializer_list<const char*> words, const Program& program = several) {
  try {
    parse(words, program);
  } catch (const UsageError& error) {
    return error.message;
  }
  return "taken";
}

TEST(KernelOptions, AreTheUsualProblemOnAllRanksOnceWhereNothingElseIsSaid) {
  const Options options = parse({"ep"});
  EXPECT_EQ(options.action, Action::run);
  EXPECT_EQ(options.kernel, &several.kernels[1]);
  EXPECT_EQ(label_of(*options.problem), "class S");
  EXPECT_FALSE(options.ranks);
  EXPECT_EQ(options.repetitions, 1);
  EXPECT_TRUE(options.output.empty());
}

TEST(KernelOptions, AreTakenBeforeAndAfterTheKernel) {
  const Options options = parse({"--class", "B", "--ranks", "4", "bt", "--repeat", "3", "--output", "-"});
  EXPECT_EQ(options.kernel, several.kernels.data());
  EXPECT_EQ(label_of(*options.problem), "class B");
  EXPECT_EQ(options.ranks, 4);
  EXPECT_EQ(options.repetitions, 3);
  EXPECT_EQ(options.output, "-");
}

TEST(KernelOptions, OfAProgramWithOneKernelNeedNotNameIt) {
  EXPECT_EQ(label_of(*parse({}, alone).problem), "n 1000, block 64, threshold 16.5");
  EXPECT_EQ(label_of(*parse({"--n", "7", "--n", "5000", "lu", "--block", "8"}, alone).problem),
            "n 5000, block 8, threshold 16.5");
  EXPECT_EQ(refusal({"--n", "0"}, alone), "--n needs a number from 1 to 100000, found \"0\"");
  EXPECT_EQ(refusal({"--class", "A"}, alone), "there is no option --class");
}

TEST(KernelOptions, AskForHelpWithoutAKernel) {
  EXPECT_EQ(parse({"--help"}).action, Action::help);
  EXPECT_EQ(parse({"--list", "--class", "A"}).action, Action::list);
  EXPECT_EQ(parse({"--version"}).action, Action::version);
  EXPECT_EQ(parse({"--mpi"}).action, Action::mpi);
}

TEST(KernelOptions, ThatAreWrongAreRefusedWithWhatIsNeeded) {
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

TEST(KernelHelp, ShowsTheOptionsOfTheProgramAndOfTheFrame) {
  const std::string text = usage_text(alone);
  EXPECT_TRUE(
      text.starts_with("Usage: mpiexec -n RANKS alone [options]\n\nRuns the only one.\n\n"
                       "  --n N           the rows of the matrix\n"
                       "  --block N       columns at a time\n"
                       "  --ranks N       run on"))
      << text;
  EXPECT_TRUE(text.ends_with("\nExample: mpiexec -n 4 alone --n 5000\n")) << text;
  EXPECT_NE(usage_text(several).find("several KERNEL [options]"), std::string::npos);
}

TEST(KernelList, ShowsTheNumbersOfRanksOfTheProblem) {
  EXPECT_EQ(list_text(several, {}),
            "bt  squares only\n    ranks, class S: 1 4 9\n"
            "ep  any number\n    ranks, class S: 1-64\n"
            "no  nowhere\n    ranks, class S: none\n");
  const Options larger = parse({"--list", "--class", "A"});
  EXPECT_NE(list_text(several, larger.arguments).find("class A: 1 4 9 16 25 36 49 64\n"), std::string::npos);
}

TEST(Arguments, TellTheInterfaceIntoTheFabric) {
  Arguments arguments;
  EXPECT_FALSE(arguments.fabric_interface());
  arguments.set("--subnet", "127.0.0.0/8");
  ASSERT_TRUE(arguments.fabric_interface());
  EXPECT_EQ(arguments.fabric_interface()->name, "lo");
  arguments.set("--interface", "no-such-interface");
  EXPECT_FALSE(arguments.fabric_interface());
}

}  // namespace
}  // namespace fabricbench::kernel
