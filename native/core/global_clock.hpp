// How the monotonic clock of this rank is read against that of rank 0: by a line, with a bound of its error. Ranks that
// provably read one clock (same boot, same time namespace) share it and need no line.
#pragma once

#include <cmath>
#include <cstdint>

#include "core/message.hpp"

namespace fabricbench {

/// global = local + offset + drift * (local - at), in nanoseconds of KernelClock.
struct ClockModel {
  static constexpr MessageType message_type = MessageType::clock_model;
  double offset_ns = 0;
  double drift = 0;  // of the reference against this clock, 1e-9 is 1 ppb
  std::int64_t at_ns = 0;
  double error_ns = 0;     // what bounds the error at `at`
  double drift_error = 0;  // what bounds the error of the drift: the bound grows with the distance from `at`
  bool is_shared = true;
  // What the synchronisation found, whether it was needed or not: on a shared clock it shows how well it works.
  double estimated_offset_ns = 0;
  double estimated_drift = 0;
  double estimated_error_ns = 0;
  int exchanges = 0;

  std::int64_t to_global(std::uint64_t local_ns) const {
    const auto local = static_cast<std::int64_t>(local_ns);
    return local + static_cast<std::int64_t>(offset_ns + drift * static_cast<double>(local - at_ns));
  }
  /// What bounds the error of `to_global` at a time.
  double error_at(std::uint64_t local_ns) const {
    return error_ns + drift_error * std::abs(static_cast<double>(static_cast<std::int64_t>(local_ns) - at_ns));
  }
  std::uint64_t to_local(std::int64_t global_ns) const {
    // One step of the fixed point is exact to drift^2, some 1e-10 of the distance.
    const double first = static_cast<double>(global_ns - at_ns) - offset_ns;
    return static_cast<std::uint64_t>(global_ns - static_cast<std::int64_t>(offset_ns + drift * first));
  }
};

}  // namespace fabricbench
