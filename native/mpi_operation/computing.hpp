// What a rank computes while a nonblocking call is under way. It makes no MPI call: nothing progresses but by itself.
#pragma once

#include <cstdint>

namespace fabricbench {

class Computing {
 public:
  /// Fit the loop to a time on this rank.
  void calibrate(std::int64_t time_ns);
  void operator()() const;

 private:
  std::uint64_t iterations_ = 0;
};

}  // namespace fabricbench
