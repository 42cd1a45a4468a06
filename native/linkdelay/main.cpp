// fabricbench-linkdelay: the one-way delay between two network namespaces, by the kernel's own time stamps.
//
// Here are the command line, the loop and the result; a socket in a namespace, with time stamps, is stamped_socket.hpp.
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <exception>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/failure.hpp"
#include "base/json_text.hpp"
#include "base/program.hpp"
#include "linkdelay/stamped_socket.hpp"

namespace {

using namespace fabricbench::linkdelay;
using fabricbench::ExitCode;
using fabricbench::InputError;
using fabricbench::json_text;

constexpr int kTimeoutMs = 200;
constexpr int kMostLostInARow = 20;  // then the path is taken to be broken
constexpr std::size_t kHeaderBytes = 14 + 20 + 8;

constexpr const char* kUsage =
    "usage: fabricbench-linkdelay --from NS --to NS --source ADDRESS --destination ADDRESS [options]\n\n"
    "Measures how long a frame takes from one network namespace to another: sends UDP datagrams one at a time and "
    "takes\n"
    "the difference of two time stamps that the kernel takes (SO_TIMESTAMPING): handed to the sending interface (TX "
    "SND), and handed\n"
    "over by the receiving interface (RX). No wake-up and no system call of this program is in between.\n\n"
    "  --from NS, --to NS      a PID in the namespace, or a path such as /proc/PID/ns/net\n"
    "  --source ADDRESS        IPv4 address of the sending interface\n"
    "  --destination ADDRESS   IPv4 address of the receiving interface\n"
    "  --bytes N               UDP payload, default 64 (the frame is 42 bytes longer)\n"
    "  --count N               datagrams that are measured, default 1000\n"
    "  --warmup N              datagrams before them, default 100\n"
    "  --interval-us N         pause between datagrams, default 200\n\n"
    "Prints one JSON object: bytes, frame_bytes, count, lost, delay_ns {minimum, p10, median, p90, maximum}.\n"
    "Exit codes: 0 measured, 2 wrong usage, 3 a namespace, permission or time stamp is missing, or nothing arrived.\n\n"
    "Example: fabricbench-linkdelay --from 4711 --to 4712 --source 10.98.1.1 --destination 10.98.1.2 --bytes 1472\n";

struct Options {
  std::string from;  // a PID, or the path of a network namespace
  std::string to;
  std::string source;  // IPv4 addresses
  std::string destination;
  std::size_t bytes = 64;  // UDP payload
  int count = 1000;
  int warmup = 100;
  int interval_us = 200;
};

std::uint64_t whole(std::string_view option, std::string_view text, std::uint64_t least, std::uint64_t largest) {
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || end != text.data() + text.size() || number < least || number > largest) {
    throw InputError(std::string(option) + " needs a number from " + std::to_string(least) + " to " +
                     std::to_string(largest) + ", found \"" + std::string(text) + "\"");
  }
  return number;
}

Options parse_options(int argc, char** argv) {
  Options options;
  const std::map<std::string_view, std::string*> texts = {{"--from", &options.from},
                                                          {"--to", &options.to},
                                                          {"--source", &options.source},
                                                          {"--destination", &options.destination}};
  for (int i = 1; i < argc; i += 2) {
    const std::string_view option = argv[i];
    if (i + 1 == argc) throw InputError(std::string(option) + " needs a value");
    const std::string_view value = argv[i + 1];
    if (const auto text = texts.find(option); text != texts.end()) {
      *text->second = value;
    } else if (option == "--bytes") {
      options.bytes = whole(option, value, 8, 65'507);
    } else if (option == "--count") {
      options.count = static_cast<int>(whole(option, value, 1, 10'000'000));
    } else if (option == "--warmup") {
      options.warmup = static_cast<int>(whole(option, value, 0, 10'000'000));
    } else if (option == "--interval-us") {
      options.interval_us = static_cast<int>(whole(option, value, 0, 10'000'000));
    } else {
      throw InputError(std::string(option) + " is not an option");
    }
  }
  for (const auto& [option, text] : texts) {
    if (text->empty()) throw InputError(std::string(option) + " is missing");
  }
  return options;
}

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
      return static_cast<int>(ExitCode::environment);
    }
    std::puts(json_text(summary(options, delays_ns, lost)).c_str());
    return 0;
  } catch (const InputError& error) {
    std::fprintf(stderr, "fabricbench-linkdelay: %s (see --help)\n", error.what());
    return static_cast<int>(ExitCode::bad_input);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "fabricbench-linkdelay: %s\n", error.what());
    return static_cast<int>(ExitCode::environment);
  }
}
