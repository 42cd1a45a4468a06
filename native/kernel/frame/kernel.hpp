// What a kernel's author sees of the frame. A program on it is its own executable: it names its kernels and their
// options and calls run_program() in main(). Each kernel reads its problem from the options itself. The frame has the
// rest:
//
//   options  the command line         outcome  verified or not, exit codes, what people read, what programs read
//   profile  time in MPI, by call     level    which build of the program this processor runs
//   program  from the command line to the exit code
#pragma once

#include <mpi.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "base/interface.hpp"

namespace fabricbench::kernel {

/// One number that the specification knows, beside ours. A run is verified when every check holds.
struct Check {
  std::string name;  // "zeta", "residual 3", "checksum 2 re"
  double found = 0;
  double expected = 0;
  double tolerance = 0;   // relative; 0 asks for the same number
  bool is_limit = false;  // `expected` is what must not be reached, a residual's threshold say; there is no tolerance
  bool holds() const;
};

/// What a run says; the same on every rank. `seconds` is that of the slowest rank, over the part that the specification
/// times; `operations` is the official count for the official unit, floating-point for most.
struct Result {
  double seconds = 0;
  double operations = 0;
  std::string operation_unit = "floating point";  // EP: "random numbers generated", IS: "keys ranked"
  std::string size;                               // "256 x 256 x 128", "2^28"
  int iterations = 0;
  std::vector<Check> checks;
  std::uint64_t fingerprint = 0;  // of the bits of the result: the same inputs on as many ranks give the same
  std::vector<std::pair<std::string, double>> values{};      // further numbers: {"gflops", 41.2}
  std::vector<std::pair<std::string, std::string>> facts{};  // what it computed with: {"BLAS", "OpenBLAS 0.3.34"}
};

/// A number or a word that a problem is told by: {"n", 1000}, {"class", "A"}.
struct Parameter {
  std::string_view name;
  std::variant<std::int64_t, double, std::string> value;
};

/// What is to be run: a kernel with its parameters, as the command line asks for it.
class Problem {
 public:
  virtual ~Problem() = default;
  /// For reports and records; what was not given stands here with its usual value.
  virtual std::vector<Parameter> parameters() const = 0;
  /// Why this many ranks cannot run it, with the counts that can; nothing if they can.
  virtual std::optional<std::string> refusal(int /*ranks*/) const { return std::nullopt; }
  /// Run once, the part that counts in a TimedSection. Collective over the communicator, whose ranks are not refused.
  /// Throws std::bad_alloc or Failure (base/failure.hpp) where it cannot.
  virtual Result run(MPI_Comm communicator) const = 0;
};

/// "class S", "n 1000, block 64".
std::string label_of(const Problem& problem);

/// A wrong command line; the message says which word it is about and what is needed.
struct UsageError {
  std::string message;
};

/// What a program's own options were given on the command line.
class Arguments {
 public:
  /// The last one counts.
  void set(std::string_view option, std::string_view value) { values_.emplace_back(option, value); }
  /// One of these words, `otherwise` where the option is not given. Throws UsageError, as number() does.
  std::string_view word(std::string_view option, std::span<const std::string_view> words,
                        std::string_view otherwise) const;
  /// A whole number within these bounds, `otherwise` where the option is not given.
  std::int64_t number(std::string_view option, std::int64_t smallest, std::int64_t largest,
                      std::int64_t otherwise) const;
  /// Whatever was given, a path say.
  std::string_view text(std::string_view option, std::string_view otherwise) const;
  bool has(std::string_view option) const { return find(option).has_value(); }
  /// The interface of this host that leads into the fabric under test, by --interface and --subnet; nothing where
  /// neither is given, or where this host has none.
  std::optional<Interface> fabric_interface() const;

 private:
  std::optional<std::string_view> find(std::string_view option) const;
  std::vector<std::pair<std::string_view, std::string_view>> values_;
};

/// An option of a program's own, which takes a value: {"--n", "N", "the points of the line; default 1000"}.
struct Option {
  std::string_view name;
  std::string_view value;
  std::string_view meaning;
};

struct Kernel {
  std::string_view name;     // "ep"
  std::string_view summary;  // one line: what it computes and what it asks of the network
  /// Throws UsageError.
  std::function<std::unique_ptr<const Problem>(const Arguments&)> read;
};

/// Kernel::read of a problem that is made from the arguments.
template <class P>
std::unique_ptr<const Problem> read_problem(const Arguments& arguments) {
  return std::make_unique<P>(arguments);
}

/// What a program gives the frame. Where it has one kernel, the command line names none.
struct Program {
  std::string_view name;     // "fabricbench-npb"
  std::string_view purpose;  // a sentence, for --help
  std::vector<Kernel> kernels;
  std::vector<Option> options;
  std::string_view example;  // words of a command line, for --help
};

/// Do what the command line asks; the exit code of main().
int run_program(const Program& program, int argc, char** argv);

/// The part of a run that counts: starts together on all ranks, and only in it are MPI calls attributed (profile.hpp).
/// Collective to make and to end.
class TimedSection {
 public:
  explicit TimedSection(MPI_Comm communicator);
  /// End it; the seconds of the slowest rank, on every rank.
  double end();

 private:
  MPI_Comm communicator_;
  std::uint64_t begin_ns_;
};

/// FNV-1a over the bits of doubles or integers, for Result::fingerprint. Chain calls through `hash`.
inline constexpr std::uint64_t fingerprint_start = 0xcbf29ce484222325U;
std::uint64_t fingerprint(const void* data, std::size_t bytes, std::uint64_t hash = fingerprint_start);

}  // namespace fabricbench::kernel
