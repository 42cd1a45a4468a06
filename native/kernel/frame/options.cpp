#include "kernel/frame/options.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <string_view>

#include "kernel/frame/level.hpp"

namespace fabricbench::kernel {
namespace {

constexpr std::int64_t most_ranks = 1'000'000;
constexpr std::int64_t most_repetitions = 1'000'000;
constexpr int listed_ranks = 64;

/// Of every program.
constexpr std::string_view frame_options =
    "  --ranks N       run on the first N ranks, the others sleep; default all\n"
    "  --repeat N      run N times in a row; default 1\n"
    "  --output FILE   write a record too, one JSON object a line (schema/kernel_record.json); - for stdout, which "
    "then\n"
    "                  has nothing else\n"
    "  --interface I   the interface that leads into the fabric under test: the record then has its address\n"
    "  --subnet NET    the same, found by its network, 10.98.1.0/24 say\n"
    "  --list          the kernels, and on how many ranks (up to 64) each runs the problem\n"
    "  --mpi           the MPI library that it runs with here, as that names itself\n"
    "  --version       the version\n"
    "  --help          this text\n";

constexpr std::string_view exit_codes =
    "Exit codes: 0 verified, 1 a result is wrong, 2 wrong usage or a number of ranks that the kernel cannot run on,\n"
    "3 the environment lacks something, memory or a place to write to for example.\n";

std::int64_t parse_number(std::string_view option, std::string_view text, std::int64_t smallest, std::int64_t largest) {
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || end != text.data() + text.size() || number < smallest || number > largest) {
    throw UsageError{std::string(option) + " needs a number from " + std::to_string(smallest) + " to " +
                     std::to_string(largest) + ", found \"" + std::string(text) + "\""};
  }
  return number;
}

const Kernel* find_kernel(const Program& program, std::string_view name) {
  std::string known;
  for (const Kernel& kernel : program.kernels) {
    if (kernel.name == name) return &kernel;
    known.append(known.empty() ? "" : ", ").append(kernel.name);
  }
  throw UsageError{"there is no kernel \"" + std::string(name) + "\"; there are " + known};
}

std::optional<Action> action_of(std::string_view word) {
  if (word == "--help" || word == "-h") return Action::help;
  if (word == "--list") return Action::list;
  if (word == "--mpi") return Action::mpi;
  if (word == "--version") return Action::version;
  return std::nullopt;
}

void set_option(Options& options, std::string_view option, std::string_view value) {
  if (option == "--ranks") {
    options.ranks = static_cast<int>(parse_number(option, value, 1, most_ranks));
  } else if (option == "--repeat") {
    options.repetitions = static_cast<int>(parse_number(option, value, 1, most_repetitions));
  } else if (option == "--output") {
    options.output = value;
  } else {
    if (option == "--subnet" && !parse_subnet(value))
      throw UsageError{"--subnet needs a network such as 10.98.1.0/24, found \"" + std::string(value) + "\""};
    options.arguments.set(option, value);
  }
}

bool takes_value(const Program& program, std::string_view word) {
  constexpr std::array with_value{"--ranks", "--repeat", "--output", "--interface", "--subnet"};
  return std::ranges::find(with_value, word) != with_value.end() ||
         std::ranges::find(program.options, word, &Option::name) != program.options.end();
}

/// "1-4 8": the numbers of ranks that are not refused.
std::string possible_ranks(const Problem& problem) {
  std::string text;
  const auto can_run = [&](int ranks) { return ranks <= listed_ranks && !problem.refusal(ranks); };
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

std::optional<std::string_view> Arguments::find(std::string_view option) const {
  for (auto given = values_.rbegin(); given != values_.rend(); ++given) {
    if (given->first == option) return given->second;
  }
  return std::nullopt;
}

std::string_view Arguments::word(std::string_view option, std::span<const std::string_view> words,
                                 std::string_view otherwise) const {
  const std::string_view found = find(option).value_or(otherwise);
  if (std::ranges::find(words, found) != words.end()) return found;
  std::string known;
  for (const std::string_view word : words) known.append(known.empty() ? "" : ", ").append(word);
  throw UsageError{std::string(option) + " needs one of " + known + ", found \"" + std::string(found) + "\""};
}

std::int64_t Arguments::number(std::string_view option, std::int64_t smallest, std::int64_t largest,
                               std::int64_t otherwise) const {
  const std::optional<std::string_view> found = find(option);
  return found ? parse_number(option, *found, smallest, largest) : otherwise;
}

std::string_view Arguments::text(std::string_view option, std::string_view otherwise) const {
  return find(option).value_or(otherwise);
}

std::optional<Interface> Arguments::fabric_interface() const {
  const std::optional<std::string_view> subnet = find("--subnet");
  const std::optional<std::string_view> name = find("--interface");
  return find_interface(name ? std::optional<std::string>(*name) : std::nullopt,
                        subnet ? parse_subnet(*subnet) : std::nullopt);
}

Options parse_options(const Program& program, std::span<char* const> words) {
  Options options;
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::string_view word = words[i];
    if (const auto action = action_of(word)) {
      options.action = *action;
    } else if (takes_value(program, word)) {
      if (++i == words.size()) throw UsageError{std::string(word) + " needs a value"};
      set_option(options, word, words[i]);
    } else if (word.starts_with('-')) {
      throw UsageError{"there is no option " + std::string(word)};
    } else if (options.kernel != nullptr) {
      throw UsageError{"one kernel is needed, found \"" + std::string(word) + "\" after " +
                       std::string(options.kernel->name)};
    } else {
      options.kernel = find_kernel(program, word);
    }
  }
  if (options.action != Action::run) return options;
  if (options.kernel == nullptr && program.kernels.size() == 1) options.kernel = program.kernels.data();
  if (options.kernel == nullptr) throw UsageError{"a kernel is needed"};
  options.problem = options.kernel->read(options.arguments);
  return options;
}

std::string usage_text(const Program& program) {
  std::string text = "Usage: mpiexec -n RANKS " + std::string(program.name);
  text += program.kernels.size() == 1 ? " [options]\n\n" : " KERNEL [options]\n\n";
  text.append(program.purpose).append("\n\n");
  constexpr std::size_t column = 18;  // of the meanings, as in frame_options
  for (const Option& option : program.options) {
    std::string line = "  " + std::string(option.name) + " " + std::string(option.value) + "  ";
    if (line.size() < column) line.resize(column, ' ');
    text.append(line).append(option.meaning).append("\n");
  }
  text.append(frame_options).append("\n").append(exit_codes).append("\n");
  if (const std::string levels = level_words(); !levels.empty()) text.append(levels).append("\n");
  return text.append("Example: mpiexec -n 4 ").append(program.name).append(" ").append(program.example).append("\n");
}

std::string list_text(const Program& program, const Arguments& arguments) {
  std::string text;
  for (const Kernel& kernel : program.kernels) {
    const auto problem = kernel.read(arguments);
    text.append(kernel.name).append("  ").append(kernel.summary).append("\n");
    text.append("    ranks, ").append(label_of(*problem)).append(": ").append(possible_ranks(*problem)).append("\n");
  }
  return text;
}

}  // namespace fabricbench::kernel
