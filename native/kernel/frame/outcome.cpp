#include "kernel/frame/outcome.hpp"

#include <time.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <numeric>

#include "base/program.hpp"

namespace fabricbench::kernel {
namespace {

/// "1.5 MiB": three figures are enough for people; the record has them all.
std::string bytes_text(double bytes) {
  constexpr std::array units{"B", "KiB", "MiB", "GiB", "TiB"};
  std::size_t unit = 0;
  for (; bytes >= 1024 && unit + 1 < units.size(); ++unit) bytes /= 1024;
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), unit == 0 ? "%.0f %s" : "%.3g %s", bytes, units[unit]);
  return text.data();
}

/// Wrong ones are always shown; of those that hold a screenful is enough, the record has all.
constexpr std::size_t most_right_checks = 16;

void print_check(std::FILE* out, const Check& check) {
  if (check.is_limit) {
    std::fprintf(out, "    %-24s %-22.15g must be less than %-22.15g %s\n", check.name.c_str(), check.found,
                 check.expected, check.holds() ? "ok" : "WRONG");
    return;
  }
  std::array<char, 32> tolerance{"exactly"};
  if (check.tolerance > 0) std::snprintf(tolerance.data(), tolerance.size(), "within %.0e", check.tolerance);
  std::fprintf(out, "    %-24s %-22.15g expected %-22.15g %-14s %s\n", check.name.c_str(), check.found, check.expected,
               tolerance.data(), check.holds() ? "ok" : "WRONG");
}

void print_checks(std::FILE* out, const Result& result) {
  std::fprintf(out, "  verification  %s\n", is_verified(result) ? "successful" : "FAILED");
  if (result.checks.empty()) std::fputs("    nothing was checked\n", out);
  std::size_t right = 0;
  for (const Check& check : result.checks) {
    if (!check.holds() || right < most_right_checks) print_check(out, check);
    right += check.holds() ? 1 : 0;
  }
  if (right > most_right_checks) std::fprintf(out, "    %zu more, all ok\n", right - most_right_checks);
}

void print_split(std::FILE* out, const Profile& profile) {
  double section = 0;
  double mpi = 0;
  double least = 1;
  double most = 0;
  for (const RankShare& rank : profile.ranks) {
    section += rank.section_seconds;
    mpi += rank.mpi_seconds;
    const double share = rank.section_seconds > 0 ? rank.mpi_seconds / rank.section_seconds : 0;
    least = std::min(least, share);
    most = std::max(most, share);
  }
  if (section <= 0) return;
  std::fprintf(out, "  split         %.1f %% computing, %.1f %% in MPI (by rank %.1f to %.1f %%)\n",
               100 * (1 - mpi / section), 100 * mpi / section, 100 * least, 100 * most);
}

/// All ranks together, what takes longest first.
void print_calls(std::FILE* out, const Profile& profile) {
  std::array<std::size_t, counted_calls.size()> order{};
  std::iota(order.begin(), order.end(), 0U);
  std::ranges::stable_sort(order, std::greater{}, [&](std::size_t i) { return profile.calls[i].time_ns; });
  std::fprintf(out, "    %-24s %12s %12s %12s\n", "all ranks", "calls", "seconds", "sent");
  for (const std::size_t i : order) {
    const CallTotal& call = profile.calls[i];
    if (call.number == 0) continue;
    std::fprintf(out, "    %-24s %12llu %12.6f %12s\n", counted_calls[i].data(),
                 static_cast<unsigned long long>(call.number), static_cast<double>(call.time_ns) * 1e-9,
                 bytes_text(static_cast<double>(call.bytes)).c_str());
  }
}

void print_sizes(std::FILE* out, const Profile& profile) {
  if (std::ranges::all_of(profile.message_sizes, [](std::uint64_t number) { return number == 0; })) return;
  std::fprintf(out, "    %-24s %12s\n", "bytes a message", "messages");
  for (std::size_t bin = 0; bin < size_bins; ++bin) {
    if (profile.message_sizes[bin] == 0) continue;
    const std::string range = std::to_string(smallest_in(bin)) + " to " + std::to_string(largest_in(bin));
    std::fprintf(out, "    %-24s %12llu\n", bin < 2 ? std::to_string(bin).c_str() : range.c_str(),
                 static_cast<unsigned long long>(profile.message_sizes[bin]));
  }
}

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
    if (check.is_limit) checks.back()["is_limit"] = true;
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
  Line line{{"compute_seconds", compute_seconds},
            {"mpi_seconds", mpi_seconds},
            {"bytes_sent", bytes_sent},
            {"calls", calls_of(profile)},
            {"message_sizes", message_sizes_of(profile)},
            {"interfaces", profile.interfaces}};
  if (!profile.other_hosts.empty()) line["other_hosts"] = profile.other_hosts;
  return line;
}

/// As text: 64 bits do not fit the numbers of every JSON reader.
std::string hexadecimal(std::uint64_t number) {
  std::array<char, 17> digits{};
  std::snprintf(digits.data(), digits.size(), "%016llx", static_cast<unsigned long long>(number));
  return digits.data();
}

std::string text_of(const Parameter& parameter) {
  if (const auto* word = std::get_if<std::string>(&parameter.value)) return *word;
  if (const auto* whole = std::get_if<std::int64_t>(&parameter.value)) return std::to_string(*whole);
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%g", std::get<double>(parameter.value));
  return text.data();
}

/// "x86-64-v3", and where nodes differ "x86-64-v3 on 2 ranks, x86-64-v4 on 6": then they did not compute alike.
std::string levels_text(const std::vector<std::string>& levels) {
  std::map<std::string, int> ranks;
  for (const std::string& level : levels) ranks[level] += 1;
  if (ranks.size() == 1) return ranks.begin()->first;
  std::string text;
  for (const auto& [level, count] : ranks) {
    text.append(text.empty() ? "" : ", ").append(level).append(" on ").append(std::to_string(count));
    text.append(count == 1 ? " rank" : " ranks");
  }
  return text;
}

}  // namespace

bool Check::holds() const {
  if (is_limit) return found < expected;  // false for not-a-number, as below
  if (tolerance == 0) return found == expected;
  return std::abs(found - expected) <= tolerance * std::abs(expected);
}

std::string label_of(const Problem& problem) {
  std::string label;
  for (const Parameter& parameter : problem.parameters()) {
    label.append(label.empty() ? "" : ", ").append(parameter.name).append(" ").append(text_of(parameter));
  }
  return label;
}

std::uint64_t fingerprint(const void* data, std::size_t bytes, std::uint64_t hash) {
  const auto* byte = static_cast<const unsigned char*>(data);
  for (std::size_t i = 0; i < bytes; ++i) hash = (hash ^ byte[i]) * 0x100000001b3U;
  return hash;
}

bool is_verified(const Result& result) {
  return !result.checks.empty() && std::ranges::all_of(result.checks, &Check::holds);
}

Exit after(Exit so_far, const Result& result) {
  return so_far == Exit::verified && !is_verified(result) ? Exit::wrong : so_far;
}

double mops_total(const Result& result) { return result.operations / result.seconds * 1e-6; }

void print_result(std::FILE* out, const Subject& subject, const Result& result, const Profile& profile) {
  std::string name(subject.kernel);
  std::ranges::transform(name, name.begin(),
                         [](unsigned char letter) { return static_cast<char>(std::toupper(letter)); });
  const std::size_t ranks = profile.ranks.size();
  std::fprintf(out, "%s %s: %s, %d %s, %zu %s\n", name.c_str(), label_of(subject.problem).c_str(), result.size.c_str(),
               result.iterations, result.iterations == 1 ? "iteration" : "iterations", ranks,
               ranks == 1 ? "rank" : "ranks");
  std::fprintf(out, "  time          %.6f s\n", result.seconds);
  std::fprintf(out, "  rate          %.2f Mop/s, %.2f a process (by the official count: %s)\n", mops_total(result),
               mops_total(result) / static_cast<double>(ranks), result.operation_unit.c_str());
  for (const auto& [what, value] : result.values) std::fprintf(out, "  %-13s %.6g\n", what.c_str(), value);
  std::fprintf(out, "  compiled for  %s\n", levels_text(subject.levels).c_str());
  for (const auto& [what, fact] : result.facts) std::fprintf(out, "  %-13s %s\n", what.c_str(), fact.c_str());
  print_checks(out, result);
  print_split(out, profile);
  print_calls(out, profile);
  print_sizes(out, profile);
  std::fflush(out);
}

void Record::write_header(const Subject& subject, const std::vector<nlohmann::json>& ranks,
                          const std::string& mpi_library) {
  Line problem = Line::object();
  for (const Parameter& parameter : subject.problem.parameters()) {
    std::visit([&](const auto& value) { problem[std::string(parameter.name)] = value; }, parameter.value);
  }
  Line header{{"type", "kernel_header"},
              {"schema", "fabricbench/kernel-record/1"},
              {"program", subject.program},
              {"program_version", version},
              {"kernel", subject.kernel}};
  // Before there were other problems, this was how a record named its own.
  if (problem.contains("class")) header["class"] = problem["class"];
  header["problem"] = problem;
  header["rank_count"] = ranks.size();
  header["ranks"] = ranks;
  header["processor_levels"] = subject.levels;
  header["mpi_library"] = mpi_library;
  header["clock_resolution_ns"] = clock_resolution_ns();
  header["started_unix_ns"] = unix_ns();
  file_.add(header);
  file_.flush();
}

void Record::write_run(const Result& result, const Profile& profile) {
  const double mops = mops_total(result);
  Line line{{"type", "kernel_run"},
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
            {"profile", profile_line(profile)}};
  for (const auto& [name, value] : result.values) line["values"][name] = value;
  for (const auto& [name, fact] : result.facts) line["facts"][name] = fact;
  file_.add(line);
  file_.flush();
  runs_ += 1;
  verified_ += is_verified(result) ? 1 : 0;
}

void Record::write_footer() {
  file_.add({{"type", "kernel_footer"}, {"finished_unix_ns", unix_ns()}, {"runs", runs_}, {"verified", verified_}});
  file_.close();
}

}  // namespace fabricbench::kernel
