#include <algorithm>
#include <cmath>

#include "core/clock.hpp"
#include "kernel/frame/profile.hpp"
#include "kernel/npb/npb.hpp"

namespace fabricbench::npb {
namespace {

bool is_first(MPI_Comm communicator) {
  int rank = 0;
  MPI_Comm_rank(communicator, &rank);
  return rank == 0;
}

}  // namespace

bool Check::holds() const {
  if (tolerance == 0) return found == expected;
  return std::abs(found - expected) <= tolerance * std::abs(expected);  // false for not-a-number
}

TimedSection::TimedSection(MPI_Comm communicator) : communicator_(communicator) {
  if (is_first(communicator_)) begin_interface_use();
  MPI_Barrier(communicator_);
  counts().is_on = true;
  begin_ns_ = KernelClock::now();
}

double TimedSection::end() {
  const std::uint64_t own_ns = KernelClock::now() - begin_ns_;
  counts().is_on = false;
  counts().section_ns += own_ns;
  const double own = static_cast<double>(own_ns) * 1e-9;
  double slowest = 0;
  MPI_Allreduce(&own, &slowest, 1, MPI_DOUBLE, MPI_MAX, communicator_);
  if (is_first(communicator_)) end_interface_use();
  return slowest;
}

std::uint64_t fingerprint(const void* data, std::size_t bytes, std::uint64_t hash) {
  const auto* byte = static_cast<const unsigned char*>(data);
  for (std::size_t i = 0; i < bytes; ++i) hash = (hash ^ byte[i]) * 0x100000001b3U;
  return hash;
}

}  // namespace fabricbench::npb
