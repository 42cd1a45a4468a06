#include "kernel/frame/outcome.hpp"

#include <time.h>

#include <cstdio>

#include "core/version.hpp"
#include "kernel/npb/record.hpp"

namespace fabricbench::npb {
namespace {

using Line = nlohmann::ordered_json;

/// Of the clock that timed sections read.
double clock_resolution_ns() {
  timespec resolution{};
  clock_getres(CLOCK_MONOTONIC, &resolution);
  return static_cast<double>(resolution.tv_sec) * 1e9 + static_cast<double>(resolution.tv_nsec);
}

Line checks_of(const Result& result) {
  Line checks = Line::array();
  for (const Check& check : result.checks) {
    checks.push_back({{"name", check.name},
                      {"found", check.found},
                      {"expected", check.expected},
                      {"tolerance", check.tolerance},
                      {"holds", check.holds()}});
  }
  return checks;
}

Line calls_of(const Profile& profile) {
  Line calls = Line::array();
  for (std::size_t i = 0; i < counted_calls.size(); ++i) {
    const CallTotal& call = profile.calls[i];
    if (call.number == 0) continue;
    calls.push_back({{"call", counted_calls[i]},
                     {"number", call.number},
                     {"seconds", static_cast<double>(call.time_ns) * 1e-9},
                     {"bytes", call.bytes}});
  }
  return calls;
}

Line message_sizes_of(const Profile& profile) {
  Line sizes = Line::array();
  for (std::size_t bin = 0; bin < size_bins; ++bin) {
    if (profile.message_sizes[bin] == 0) continue;
    sizes.push_back(
        {{"from_bytes", smallest_in(bin)}, {"to_bytes", largest_in(bin)}, {"number", profile.message_sizes[bin]}});
  }
  return sizes;
}

Line profile_line(const Profile& profile) {
  Line compute_seconds = Line::array();
  Line mpi_seconds = Line::array();
  Line bytes_sent = Line::array();
  for (const RankShare& share : profile.ranks) {
    compute_seconds.push_back(share.compute_seconds());
    mpi_seconds.push_back(share.mpi_seconds);
    bytes_sent.push_back(static_cast<std::uint64_t>(share.bytes_sent));
  }
  return {{"compute_seconds", compute_seconds},
          {"mpi_seconds", mpi_seconds},
          {"bytes_sent", bytes_sent},
          {"calls", calls_of(profile)},
          {"message_sizes", message_sizes_of(profile)},
          {"interfaces", profile.interfaces}};
}

/// As text: 64 bits do not fit the numbers of every JSON reader.
std::string hexadecimal(std::uint64_t number) {
  std::array<char, 17> digits{};
  std::snprintf(digits.data(), digits.size(), "%016llx", static_cast<unsigned long long>(number));
  return digits.data();
}

}  // namespace

void Record::write_header(const Kernel& kernel, Class problem, const std::vector<nlohmann::json>& ranks,
                          const std::string& mpi_library) {
  file_.add({{"type", "kernel_header"},
             {"schema", "fabricbench/kernel-record/1"},
             {"program", "fabricbench-npb"},
             {"program_version", version},
             {"kernel", kernel.name},
             {"class", std::string(1, static_cast<char>(problem))},
             {"rank_count", ranks.size()},
             {"ranks", ranks},
             {"mpi_library", mpi_library},
             {"clock_resolution_ns", clock_resolution_ns()},
             {"started_unix_ns", unix_ns()}});
  file_.flush();
}

void Record::write_run(const Result& result, const Profile& profile) {
  const double mops = mops_total(result);
  file_.add({{"type", "kernel_run"},
             {"repetition", runs_},
             {"size", result.size},
             {"iterations", result.iterations},
             {"seconds", result.seconds},
             {"operations", result.operations},
             {"operation_unit", result.operation_unit},
             {"mops_total", mops},
             {"mops_per_process", mops / static_cast<double>(profile.ranks.size())},
             {"verified", is_verified(result)},
             {"checks", checks_of(result)},
             {"fingerprint", hexadecimal(result.fingerprint)},
             {"profile", profile_line(profile)}});
  file_.flush();
  runs_ += 1;
  verified_ += is_verified(result) ? 1 : 0;
}

void Record::write_footer() {
  file_.add({{"type", "kernel_footer"}, {"finished_unix_ns", unix_ns()}, {"runs", runs_}, {"verified", verified_}});
  file_.flush();
}

}  // namespace fabricbench::npb
