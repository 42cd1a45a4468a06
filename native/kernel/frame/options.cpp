#include "kernel/frame/options.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <string_view>

namespace fabricbench::npb {

const char* const usage_text =
    "Usage: mpiexec -n RANKS fabricbench-npb KERNEL [options]\n"
    "\n"
    "Runs a kernel of the NAS Parallel Benchmarks, verifies its result and tells how fast it was and where the time "
    "went.\n"
    "\n"
    "  --class C       the size of the problem: S (seconds, for trying), W, A, B, C or D; default S\n"
    "  --ranks N       run on the first N ranks, the others sleep; default all\n"
    "  --repeat N      run N times in a row; default 1\n"
    "  --output FILE   write a record too, one JSON object a line (schema/kernel_record.json); - for stdout, which "
    "then\n"
    "                  has nothing else\n"
    "  --interface I   the interface that leads into the fabric under test: the record then has its address\n"
    "  --subnet NET    the same, found by its network, 10.98.1.0/24 say\n"
    "  --list          the kernels, and on how many ranks (up to 64) each runs the class\n"
    "  --version       the version\n"
    "  --help          this text\n"
    "\n"
    "Exit codes: 0 verified, 1 a result is wrong, 2 wrong usage or a number of ranks that the kernel cannot run on,\n"
    "3 the environment lacks something, memory or a place to write to for example.\n"
    "\n"
    "Example: mpiexec -n 4 fabricbench-npb cg --class A --repeat 3 --output cg.jsonl\n";

namespace {

constexpr int most_ranks = 1'000'000;
constexpr int most_repetitions = 1'000'000;
constexpr int listed_ranks = 64;

Class parse_class(std::string_view text) {
  if (text.size() == 1 && classes.find(text[0]) != std::string_view::npos) return static_cast<Class>(text[0]);
  throw UsageError{"--class needs one of S, W, A, B, C, D, found \"" + std::string(text) + "\""};
}

int parse_number(std::string_view option, std::string_view text, int largest) {
  int number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || end != text.data() + text.size() || number < 1 || number > largest) {
    throw UsageError{std::string(option) + " needs a number from 1 to " + std::to_string(largest) + ", found \"" +
                     std::string(text) + "\""};
  }
  return number;
}

const Kernel* find_kernel(std::string_view name, std::span<const Kernel* const> kernels) {
  std::string known;
  for (const Kernel* kernel : kernels) {
    if (kernel->name == name) return kernel;
    known.append(known.empty() ? "" : ", ").append(kernel->name);
  }
  throw UsageError{"there is no kernel \"" + std::string(name) + "\"; there are " + known};
}

std::optional<Action> action_of(std::string_view word) {
  if (word == "--help" || word == "-h") return Action::help;
  if (word == "--list") return Action::list;
  if (word == "--version") return Action::version;
  return std::nullopt;
}

void set_option(Options& options, std::string_view option, std::string_view value) {
  if (option == "--class") {
    options.problem = parse_class(value);
  } else if (option == "--ranks") {
    options.ranks = parse_number(option, value, most_ranks);
  } else if (option == "--repeat") {
    options.repetitions = parse_number(option, value, most_repetitions);
  } else if (option == "--interface") {
    options.interface = value;
  } else if (option == "--subnet") {
    options.subnet = parse_subnet(value);
    if (!options.subnet)
      throw UsageError{"--subnet needs a network such as 10.98.1.0/24, found \"" + std::string(value) + "\""};
  } else {
    options.output = value;
  }
}

bool takes_value(std::string_view word) {
  constexpr std::array with_value{"--class", "--ranks", "--repeat", "--output", "--interface", "--subnet"};
  return std::ranges::find(with_value, word) != with_value.end();
}

/// "1-4 8": the numbers of ranks that are not refused.
std::string possible_ranks(const Kernel& kernel, Class problem) {
  std::string text;
  const auto can_run = [&](int ranks) { return ranks <= listed_ranks && !kernel.refusal(problem, ranks); };
  for (int first = 1; first <= listed_ranks; ++first) {
    if (!can_run(first)) continue;
    int last = first;
    while (can_run(last + 1)) ++last;
    text.append(text.empty() ? "" : " ").append(std::to_string(first));
    if (last > first) text.append("-").append(std::to_string(last));
    first = last;
  }
  return text.empty() ? "none" : text;
}

}  // namespace

Options parse_options(std::span<char* const> arguments, std::span<const Kernel* const> kernels) {
  Options options;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const std::string_view word = arguments[i];
    if (const auto action = action_of(word)) {
      options.action = *action;
    } else if (takes_value(word)) {
      if (++i == arguments.size()) throw UsageError{std::string(word) + " needs a value"};
      set_option(options, word, arguments[i]);
    } else if (word.starts_with('-')) {
      throw UsageError{"there is no option " + std::string(word)};
    } else if (options.kernel != nullptr) {
      throw UsageError{"one kernel is needed, found \"" + std::string(word) + "\" after " +
                       std::string(options.kernel->name)};
    } else {
      options.kernel = find_kernel(word, kernels);
    }
  }
  if (options.action == Action::run && options.kernel == nullptr) throw UsageError{"a kernel is needed"};
  return options;
}

std::string list_text(std::span<const Kernel* const> kernels, Class problem) {
  std::string text;
  for (const Kernel* kernel : kernels) {
    text.append(kernel->name).append("  ").append(kernel->summary).append("\n");
    text.append("    ranks, class ").append(1, static_cast<char>(problem)).append(": ");
    text.append(possible_ranks(*kernel, problem)).append("\n");
  }
  return text;
}

}  // namespace fabricbench::npb
