#include "kernel/frame/outcome.hpp"

#include <algorithm>

namespace fabricbench::npb {

bool is_verified(const Result& result) {
  return !result.checks.empty() && std::ranges::all_of(result.checks, &Check::holds);
}

Exit after(Exit so_far, const Result& result) {
  return so_far == Exit::verified && !is_verified(result) ? Exit::wrong : so_far;
}

double mops_total(const Result& result) { return result.operations / result.seconds * 1e-6; }

}  // namespace fabricbench::npb
