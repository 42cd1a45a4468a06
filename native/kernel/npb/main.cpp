// fabricbench-npb KERNEL: the kernels of the NAS Parallel Benchmarks, in classes of sizes.
#include "kernel/npb/npb.hpp"

namespace fabricbench::npb {
namespace {

/// All kernels: one line each.
constexpr std::array kernels{&ep, &mg, &cg, &ft, &is, &lu, &sp, &bt};

class ProblemOfClass final : public kernel::Problem {
 public:
  ProblemOfClass(const Kernel& kernel, Class letter) : kernel_(kernel), letter_(letter) {}
  std::vector<kernel::Parameter> parameters() const override {
    return {{"class", std::string(1, static_cast<char>(letter_))}};
  }
  std::optional<std::string> refusal(int ranks) const override { return kernel_.refusal(letter_, ranks); }
  Result run(MPI_Comm communicator) const override { return kernel_.run(communicator, letter_); }

 private:
  const Kernel& kernel_;
  Class letter_;
};

kernel::Kernel with_classes(const Kernel& one) {
  static constexpr std::array<std::string_view, classes.size()> letters{"S", "W", "A", "B", "C", "D"};
  return {one.name, one.summary, [&one](const kernel::Arguments& arguments) {
            const auto letter = static_cast<Class>(arguments.word("--class", letters, "S").front());
            return std::make_unique<const ProblemOfClass>(one, letter);
          }};
}

}  // namespace
}  // namespace fabricbench::npb

int main(int argc, char** argv) {
  using namespace fabricbench;
  kernel::Program program{
      .name = "fabricbench-npb",
      .purpose =
          "Runs a kernel of the NAS Parallel Benchmarks, verifies its result and tells how fast it was and "
          "where the time went.",
      .kernels = {},
      .options = {{"--class", "C", "the size of the problem: S (seconds, for trying), W, A, B, C or D; default S"}},
      .example = "cg --class A --repeat 3 --output cg.jsonl"};
  for (const npb::Kernel* one : npb::kernels) program.kernels.push_back(npb::with_classes(*one));
  return kernel::run_program(program, argc, argv);
}
