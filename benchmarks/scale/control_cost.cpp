// What the control plane costs by itself, over the ranks of an MPI start: an agreement along the tree, and rank 0's
// orders to all with a report from each. Prints medians in nanoseconds and the processor time of one agreement on all
// ranks together, which does not depend on how many processors they share. Also how large a report's parts are in
// memory.
//
//   control_cost AGREEMENTS
#include <mpi.h>
#include <sys/prctl.h>
#include <sys/resource.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <numeric>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "core/channel.hpp"
#include "core/report.hpp"

namespace {

using fabricbench::Clock;
using Order = fabricbench::Signal<fabricbench::MessageType::measure>;
using Done = fabricbench::Signal<fabricbench::MessageType::begun>;

double processor_seconds() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

std::uint64_t median(std::vector<std::uint64_t> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  prctl(PR_SET_TIMERSLACK, 1000);  // as the measurer does
  {
    const fabricbench::Control control;
    std::vector<int> all(static_cast<std::size_t>(control.size()));
    std::iota(all.begin(), all.end(), 0);
    const fabricbench::CellTeam team(control, all, 0);
    const int rounds = argc > 1 ? std::atoi(argv[1]) : 100;
    const fabricbench::Channel channel(control);
    const auto join = [](fabricbench::Verdict one, const fabricbench::Verdict&) { return one; };
    team.converge<fabricbench::Verdict>({}, join);
    std::vector<std::uint64_t> agreement;
    std::vector<std::uint64_t> orders;
    const double before = processor_seconds();
    for (int i = 0; i < rounds; ++i) {
      const std::uint64_t begin = Clock::now();
      team.converge<fabricbench::Verdict>({}, join);
      agreement.push_back(Clock::now() - begin);
    }
    double spent = (processor_seconds() - before) / rounds;
    double spent_by_all = 0;
    MPI_Reduce(&spent, &spent_by_all, 1, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
    for (int i = 0; i < rounds; ++i) {
      const std::uint64_t begin = Clock::now();
      if (control.rank() == 0) {
        for (int other = 1; other < control.size(); ++other) channel.send(other, Order{});
        for (int other = 1; other < control.size(); ++other) channel.receive<Done>(other);
      } else {
        channel.receive<Order>(0);
        channel.send(0, Done{});
      }
      orders.push_back(Clock::now() - begin);
    }
    if (control.rank() == 0) {
      std::printf("channel_report_bytes %zu\ncell_report_bytes %zu\n", sizeof(fabricbench::ChannelReport),
                  sizeof(fabricbench::CellReport));
      std::printf("agreement_ns %llu\norders_ns %llu\nagreement_processor_ns %.0f\n",
                  static_cast<unsigned long long>(median(agreement)), static_cast<unsigned long long>(median(orders)),
                  spent_by_all * 1e9);
    }
  }
  MPI_Finalize();
  return 0;
}
