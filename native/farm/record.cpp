#include "farm/record.hpp"

#include <algorithm>
#include <array>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <numeric>

#include "base/program.hpp"

namespace fabricbench::farm {
namespace {

using nlohmann::json;
using nlohmann::ordered_json;

constexpr std::size_t tar_block = 512;
constexpr std::string_view outputs_name = "outputs.tar";

/// An octal number as wide as a field, which ends with a NUL.
void put_octal(std::string& head, std::size_t at, std::size_t width, std::uint64_t number) {
  for (std::size_t place = width - 1; place-- > 0; number /= 8) head[at + place] = static_cast<char>('0' + number % 8);
}

}  // namespace

std::string tar_head(const std::string& name, std::size_t bytes) {
  std::string head(tar_block, '\0');
  head.replace(0, std::min<std::size_t>(name.size(), 100), name, 0, 100);
  put_octal(head, 100, 8, 0644);
  put_octal(head, 108, 8, 0);
  put_octal(head, 116, 8, 0);
  put_octal(head, 124, 12, bytes);
  put_octal(head, 136, 12, 0);
  head.replace(148, 8, 8, ' ');
  head[156] = '0';
  head.replace(257, 8, std::string("ustar\00000", 8));
  const auto sum = std::accumulate(head.begin(), head.end(), std::uint64_t{0}, [](std::uint64_t so_far, char each) {
    return so_far + static_cast<unsigned char>(each);
  });
  put_octal(head, 148, 7, sum);
  head[154] = '\0';
  return head;
}

FarmRecord::FarmRecord(const std::string& path, const FarmPlan& plan) : file_(path), plan_(plan) {
  if (plan.output_bytes > 0) {
    outputs_.emplace((std::filesystem::path(path).parent_path() / outputs_name).string());
  }
}

void FarmRecord::write_header(const std::vector<json>& ranks, const std::vector<int>& workers,
                              const std::string& mpi_library) {
  file_.add({{"type", "farm_header"},
             {"schema", "fabricbench/farm-record/1"},
             {"program", "fabricbench-farm"},
             {"program_version", version},
             {"name", plan_.name},
             {"jobs", plan_.jobs},
             {"at_once", plan_.at_once},
             {"retries", plan_.retries},
             {"workers", workers},
             {"rank_count", ranks.size()},
             {"ranks", ranks},
             {"mpi_library", mpi_library},
             {"started_unix_ns", unix_ns()}});
  file_.flush();
}

void FarmRecord::write_attempt(const AttemptTold& told, const FarmResult& result) {
  if (outputs_ && result.ended == ended::done) keep_output(told, result.output);
  ordered_json line{{"type", "farm_attempt"}, {"job", told.job},   {"attempt", told.attempt},
                    {"node", told.node},      {"rank", told.rank}, {"ended", result.ended}};
  line["exit_code"] = result.exit_code;
  line["signal"] = result.signal;
  line["reason"] = result.reason;
  line["is_last"] = told.is_last;
  line["counts"] = told.counts;
  line["given_s"] = told.given_s;
  line["staged_s"] = told.staged_s ? ordered_json(*told.staged_s) : ordered_json(nullptr);
  line["run_seconds"] = result.run_seconds;
  line["ended_s"] = told.ended_s;
  line["input_bytes"] = told.input_bytes;
  line["input_digest"] = told.input_digest;
  line["output_bytes"] = result.output_bytes;
  line["output_digest"] = result.output_digest;
  file_.add(line);
  file_.flush();
  ++attempts_;
}

void FarmRecord::write_lost(const Given& given, const std::string& why, double ended_s) {
  FarmResult result;
  result.ended = ended::node;
  result.reason = why;
  AttemptTold told;
  told.job = given.job;
  told.attempt = given.attempt;
  told.given_s = told.ended_s = ended_s;
  told.counts = false;
  write_attempt(told, result);
}

void FarmRecord::write_footer(const FarmTotals& totals) {
  if (outputs_) {
    outputs_->add_text(std::string(2 * tar_block, '\0'));
    outputs_->close();
  }
  ordered_json left_out = ordered_json::array();
  for (const auto& [node, reason] : totals.left_out) left_out.push_back({{"node", node}, {"reason", reason}});
  ordered_json interfaces = ordered_json::object();
  for (const auto& [name, bytes] : totals.interfaces) interfaces[name] = bytes;
  file_.add({{"type", "farm_footer"},
             {"finished_unix_ns", unix_ns()},
             {"seconds", totals.seconds},
             {"attempts", attempts_},
             {"done", totals.done},
             {"lost", totals.lost},
             {"retried", totals.retried},
             {"staged_bytes", totals.staged_bytes},
             {"left_out", left_out},
             {"left_behind", totals.left_behind},
             {"interfaces", interfaces}});
  file_.close();
}

void FarmRecord::keep_output(const AttemptTold& told, std::string_view output) {
  outputs_->add_text(tar_head("job-" + std::to_string(told.job), output.size()));
  outputs_->add_text(output);
  outputs_->add_text(std::string((tar_block - output.size() % tar_block) % tar_block, '\0'));
  outputs_->flush();
}

}  // namespace fabricbench::farm
