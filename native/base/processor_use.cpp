#include "base/processor_use.hpp"

#include <dirent.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <sstream>
#include <string_view>

#include "base/clock.hpp"

namespace fabricbench {
namespace {

struct ProcessFacts {
  std::string name;
  std::uint64_t ticks = 0;        // of clock, in user and kernel
  std::uint64_t start_ticks = 0;  // after boot: with the number it tells processes apart
  int processor = 0;              // that it ran on last
  int policy = 0;
};

/// Nothing of a process that has ended.
std::optional<ProcessFacts> read_process(int process) {
  std::ifstream file("/proc/" + std::to_string(process) + "/stat");
  std::string text;
  if (!std::getline(file, text)) return std::nullopt;
  const std::size_t open = text.find('(');
  const std::size_t close = text.rfind(')');  // a name may have brackets of its own
  if (open == std::string::npos || close == std::string::npos) return std::nullopt;
  ProcessFacts facts{.name = text.substr(open + 1, close - open - 1)};
  for (char& each : facts.name) {
    if (std::isprint(static_cast<unsigned char>(each)) == 0) each = '?';
  }
  constexpr int state = 3;
  constexpr int user_ticks = 14;
  constexpr int kernel_ticks = 15;
  constexpr int start_ticks = 22;
  constexpr int last_processor = 39;
  constexpr int scheduling_policy = 41;
  std::istringstream fields(text.substr(close + 1));
  std::string field;
  for (int number = state; number <= scheduling_policy && fields >> field; ++number) {
    if (number == user_ticks || number == kernel_ticks) facts.ticks += std::strtoull(field.c_str(), nullptr, 10);
    if (number == start_ticks) facts.start_ticks = std::strtoull(field.c_str(), nullptr, 10);
    if (number == last_processor) facts.processor = std::atoi(field.c_str());
    if (number == scheduling_policy) facts.policy = std::atoi(field.c_str());
  }
  return facts;
}

template <class Use>
void for_each_other_process(Use use) {
  const std::unique_ptr<DIR, int (*)(DIR*)> folder(opendir("/proc"), closedir);
  if (!folder) return;
  const int own = getpid();
  while (const dirent* const entry = readdir(folder.get())) {
    const std::string_view name = entry->d_name;
    int process = 0;
    const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), process);
    if (error != std::errc{} || end != name.data() + name.size() || process == own) continue;
    if (const auto facts = read_process(process)) use(process, *facts);
  }
}

}  // namespace

OtherProcesses::OtherProcesses() : begin_ns_(Clock::now()) {
  for_each_other_process([this](int process, const ProcessFacts& facts) {
    begin_[process] = {.ticks = facts.ticks, .start_ticks = facts.start_ticks};
  });
}

std::optional<ProcessorUse> OtherProcesses::busiest() const {
  constexpr double least_share = 0.01;
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  if (sched_getaffinity(0, sizeof allowed, &allowed) != 0) return std::nullopt;
  const double ticks_of_all = ns_to_seconds(Clock::now() - begin_ns_) * static_cast<double>(sysconf(_SC_CLK_TCK));
  std::optional<ProcessorUse> found;
  for_each_other_process([&](int process, const ProcessFacts& facts) {
    if (facts.processor < 0 || facts.processor >= CPU_SETSIZE || !CPU_ISSET(facts.processor, &allowed)) return;
    // A number may be another process's by now, whose ticks are all new.
    const auto before = begin_.find(process);
    const bool is_same = before != begin_.end() && before->second.start_ticks == facts.start_ticks;
    const std::uint64_t used = facts.ticks - (is_same ? std::min(before->second.ticks, facts.ticks) : 0);
    const double share = static_cast<double>(used) / ticks_of_all;
    if (share < least_share || (found && share <= found->share)) return;
    found = {
        .process = facts.name, .share = share, .is_realtime = facts.policy == SCHED_FIFO || facts.policy == SCHED_RR};
  });
  return found;
}

}  // namespace fabricbench
