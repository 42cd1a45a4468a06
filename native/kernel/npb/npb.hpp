// What every kernel of the NAS Parallel Benchmarks looks like to the program: who may run it, how it runs, what it says
// afterwards. Specification: Bailey et al., "The NAS Parallel Benchmarks", RNR-94-007, and NAS-95-020 for the MPI
// versions' rules.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>

#include "kernel/frame/kernel.hpp"

namespace fabricbench::npb {

using kernel::Check;
using kernel::fingerprint;
using kernel::fingerprint_start;
using kernel::Result;
using kernel::TimedSection;

/// The size of a problem, chosen at run time.
enum class Class : char { S = 'S', W = 'W', A = 'A', B = 'B', C = 'C', D = 'D' };
inline constexpr std::string_view classes = "SWABCD";

/// The problem of a class, of those of all classes in their order.
template <class Problem>
constexpr const Problem& of_class(const std::array<Problem, classes.size()>& problems, Class letter) {
  return problems[classes.find(static_cast<char>(letter))];
}

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

}  // namespace fabricbench::npb
