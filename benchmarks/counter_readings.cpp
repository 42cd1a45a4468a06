// What a reading of each kind of counters takes, in a row and with warm caches: processor time, and the shortest one.
//
//   g++ -std=c++20 -O2 -Inative -I NLOHMANN_JSON benchmarks/counter_readings.cpp native/core/counters.cpp
//       native/base/hardware_events.cpp -o counter_readings && ./counter_readings eth0
//
// docs/costs.md has what came out.
#include <sys/resource.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <limits>

#include "base/clock.hpp"
#include "core/counters.hpp"

namespace fabricbench {
namespace {

constexpr int readings = 2'000;

double processor_us() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto us = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) * 1e6 + static_cast<double>(time.tv_usec);
  };
  return us(usage.ru_utime) + us(usage.ru_stime);
}

template <class Read>
void show(const char* what, Read read) {
  read();
  std::uint64_t least_ns = std::numeric_limits<std::uint64_t>::max();
  const double begin_us = processor_us();
  for (int i = 0; i < readings; ++i) {
    const std::uint64_t begin = Clock::now();
    read();
    least_ns = std::min(least_ns, Clock::now() - begin);
  }
  std::printf("%-8s %6.1f us of a processor, %6.1f us at least\n", what, (processor_us() - begin_us) / readings,
              static_cast<double>(least_ns) / 1e3);
}

}  // namespace
}  // namespace fabricbench

int main(int argc, char** argv) {
  using namespace fabricbench;
  const RankCounters rank;
  HostCounters host(argc > 1 ? argv[1] : "");
  show("rank", [&] { rank.read(); });
  show("host", [&] { host.read_host(); });
  show("machine", [&] { host.read_machine(); });
}
