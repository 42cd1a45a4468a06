// fabricbench-linkdelay: the one-way delay between two network namespaces, by the kernel's own time stamps.
//
// options: the command line      stamped_socket: a socket in a namespace, with time stamps      here: the loop and the
// result
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <exception>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>
#include <vector>

#include "linkdelay/options.hpp"
#include "linkdelay/stamped_socket.hpp"

namespace {

using namespace fabricbench::linkdelay;

constexpr int kTimeoutMs = 200;
constexpr int kMostLostInARow = 20;  // then the path is taken to be broken
constexpr std::size_t kHeaderBytes = 14 + 20 + 8;

/// Sends one datagram and returns its delay; nothing where it, or a stamp, got lost.
std::optional<std::int64_t> measure_one(StampedSocket& sender, StampedSocket& receiver,
                                        std::vector<std::uint8_t>& datagram, std::uint64_t sequence) {
  std::memcpy(datagram.data(), &sequence, sizeof sequence);
  const std::uint32_t number = sender.send(datagram);
  const std::optional<std::int64_t> sent_ns = sender.take_sent_ns(number, kTimeoutMs);
  while (const auto arrival = receiver.take_arrival(kTimeoutMs)) {
    if (arrival->sequence != sequence) continue;  // one that was given up
    if (!sent_ns || !arrival->received_ns) return std::nullopt;
    return *arrival->received_ns - *sent_ns;
  }
  return std::nullopt;
}

std::vector<std::int64_t> measure(const Options& options, int& lost) {
  enter(options.to);
  StampedSocket receiver(options.destination);
  enter(options.from);
  StampedSocket sender(options.source);
  sender.connect_to(receiver);
  std::vector<std::uint8_t> datagram(options.bytes);
  std::vector<std::int64_t> delays_ns;
  int lost_in_a_row = 0;
  for (int i = 0; i < options.warmup + options.count && lost_in_a_row < kMostLostInARow; ++i) {
    const auto delay_ns = measure_one(sender, receiver, datagram, static_cast<std::uint64_t>(i));
    lost_in_a_row = delay_ns ? 0 : lost_in_a_row + 1;
    if (i >= options.warmup) {
      if (delay_ns) delays_ns.push_back(*delay_ns);
      lost += delay_ns ? 0 : 1;
    }
    if (options.interval_us > 0) usleep(static_cast<useconds_t>(options.interval_us));
  }
  std::sort(delays_ns.begin(), delays_ns.end());
  return delays_ns;
}

nlohmann::json summary(const Options& options, const std::vector<std::int64_t>& sorted_ns, int lost) {
  const auto at = [&](double share) {
    return sorted_ns[static_cast<std::size_t>(std::lround(share * static_cast<double>(sorted_ns.size() - 1)))];
  };
  return {{"bytes", options.bytes},
          {"frame_bytes", options.bytes + kHeaderBytes},
          {"count", sorted_ns.size()},
          {"lost", lost},
          {"delay_ns",
           {{"minimum", sorted_ns.front()},
            {"p10", at(0.1)},
            {"median", at(0.5)},
            {"p90", at(0.9)},
            {"maximum", sorted_ns.back()}}}};
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 2 && (std::string_view(argv[1]) == "--help" || std::string_view(argv[1]) == "-h")) {
    std::fputs(kUsage, stdout);
    return 0;
  }
  try {
    const Options options = parse_options(argc, argv);
    int lost = 0;
    const std::vector<std::int64_t> delays_ns = measure(options, lost);
    if (delays_ns.empty()) {
      std::fputs("fabricbench-linkdelay: no datagram and its stamps came through\n", stderr);
      return 3;
    }
    std::puts(summary(options, delays_ns, lost).dump().c_str());
    return 0;
  } catch (const UsageError& error) {
    std::fprintf(stderr, "fabricbench-linkdelay: %s (see --help)\n", error.message.c_str());
    return 2;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "fabricbench-linkdelay: %s\n", error.what());
    return 3;
  }
}
