// What every kernel of the NAS Parallel Benchmarks looks like to the program: who may run it, how it runs, what it says
// afterwards. Specification: Bailey et al., "The NAS Parallel Benchmarks", RNR-94-007, and NAS-95-020 for the MPI
// versions' rules.
#pragma once

#include <mpi.h>

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace fabricbench::npb {

/// The size of a problem, chosen at run time.
enum class Class : char { S = 'S', W = 'W', A = 'A', B = 'B', C = 'C', D = 'D' };
inline constexpr std::string_view classes = "SWABCD";

/// The problem of a class, of those of all classes in their order.
template <class Problem>
constexpr const Problem& of_class(const std::array<Problem, classes.size()>& problems, Class letter) {
  return problems[classes.find(static_cast<char>(letter))];
}

/// One number that the specification knows, beside ours. A run is verified when every check holds.
struct Check {
  std::string name;  // "zeta", "residual 3", "checksum 2 re"
  double found = 0;
  double expected = 0;
  double tolerance = 0;  // relative; 0 asks for the same number
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
};

/// A kernel. `run` is collective over the communicator and needs a count of ranks that `refusal` does not refuse.
/// It throws std::bad_alloc or Failure (base/failure.hpp) where it cannot.
struct Kernel {
  std::string_view name;     // "ep"
  std::string_view summary;  // one line: what it computes and what it asks of the network
  /// Why this many ranks cannot run this class, with the counts that can; nothing if they can.
  std::optional<std::string> (*refusal)(Class problem, int ranks);
  Result (*run)(MPI_Comm communicator, Class problem);
};

extern const Kernel ep, mg, cg, ft, is, lu, sp, bt;

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

}  // namespace fabricbench::npb
