#include "linkdelay/options.hpp"

#include <charconv>
#include <map>
#include <string_view>

namespace fabricbench::linkdelay {

const char* const kUsage =
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

namespace {

std::uint64_t whole(std::string_view option, std::string_view text, std::uint64_t least, std::uint64_t largest) {
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || end != text.data() + text.size() || number < least || number > largest) {
    throw UsageError{std::string(option) + " needs a number from " + std::to_string(least) + " to " +
                     std::to_string(largest) + ", found \"" + std::string(text) + "\""};
  }
  return number;
}

}  // namespace

Options parse_options(int argc, char** argv) {
  Options options;
  const std::map<std::string_view, std::string*> texts = {{"--from", &options.from},
                                                          {"--to", &options.to},
                                                          {"--source", &options.source},
                                                          {"--destination", &options.destination}};
  for (int i = 1; i < argc; i += 2) {
    const std::string_view option = argv[i];
    if (i + 1 == argc) throw UsageError{std::string(option) + " needs a value"};
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
      throw UsageError{std::string(option) + " is not an option"};
    }
  }
  for (const auto& [option, text] : texts) {
    if (text->empty()) throw UsageError{std::string(option) + " is missing"};
  }
  return options;
}

}  // namespace fabricbench::linkdelay
