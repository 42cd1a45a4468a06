#include "kernel/npb/report.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <numeric>
#include <string>

#include "kernel/frame/outcome.hpp"

namespace fabricbench::npb {
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

}  // namespace

void print_result(std::FILE* out, const Kernel& kernel, Class problem, const Result& result, const Profile& profile) {
  std::string name(kernel.name);
  std::ranges::transform(name, name.begin(),
                         [](unsigned char letter) { return static_cast<char>(std::toupper(letter)); });
  const std::size_t ranks = profile.ranks.size();
  std::fprintf(out, "%s class %c: %s, %d %s, %zu %s\n", name.c_str(), static_cast<char>(problem), result.size.c_str(),
               result.iterations, result.iterations == 1 ? "iteration" : "iterations", ranks,
               ranks == 1 ? "rank" : "ranks");
  std::fprintf(out, "  time          %.6f s\n", result.seconds);
  std::fprintf(out, "  rate          %.2f Mop/s, %.2f a process (by the official count: %s)\n", mops_total(result),
               mops_total(result) / static_cast<double>(ranks), result.operation_unit.c_str());
  print_checks(out, result);
  print_split(out, profile);
  print_calls(out, profile);
  print_sizes(out, profile);
  std::fflush(out);
}

}  // namespace fabricbench::npb
