// One launch, and what rank 0 and the others say to each other on its channel. First all learn the plan and tell who
// they are; then rank 0 directs cell by cell and writes the record, and the others wait asleep for orders:
//
//   rank 0                          another rank
//   Beginning, to all           ->
//                              <-   RankInfo
//   HostsOfRanks, to all        ->
//                              <-   ClockModel where a probe needs clocks that agree
//   Measure, to a cell's ranks  ->  takes part in it
//                              <-   CellMerge
//   SendParts, one by one       ->
//                              <-   CellParts
//   Congest, to the congestor's ->  begins
//                              <-   Begun; and when the cell is over
//   Stop                        ->
//                              <-   CellMerge
//   CheckClocks, to all         ->  all synchronise their clocks
//                              <-   ClockCheck
//   Finish, to all              ->  returns
//
// What is for many goes along a tree of them (core/tree.hpp), and what many say is joined on its way. Up to nine ranks
// are a star, where rank 0 tells and hears each. Parts are asked for one rank at a time in a star; in a larger tree
// they come with the report where they are small, and rank 0 asks some at a time of those who keep theirs.
#pragma once

#include <cstdint>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "base/program.hpp"
#include "core/message.hpp"
#include "core/rank_list.hpp"
#include "core/record_writer.hpp"
#include "probe/cell_runner.hpp"

namespace fabricbench {

/// The plan, or with which exit code all end because there is none.
struct Beginning {
  static constexpr MessageType message_type = MessageType::beginning;
  std::int32_t exit_code = 0;
  std::string plan_text;

  std::string pack() const { return pack_numbered(exit_code, plan_text); }
  static Beginning unpack(std::string_view payload) {
    const auto [number, text] = unpack_numbered(payload);
    return {.exit_code = number, .plan_text = std::string(text)};
  }
};

/// Who a rank is and where it runs, for the record's header.
struct RankInfo {
  static constexpr MessageType message_type = MessageType::rank_info;
  nlohmann::json info;

  std::string pack() const { return pack_tree(info); }
  static RankInfo unpack(std::string_view payload) { return {unpack_tree(payload)}; }
};

/// On which host each rank runs, and on which machine: the first rank that is there.
struct HostsOfRanks {
  static constexpr MessageType message_type = MessageType::hosts_of_ranks;
  RankList first_rank;
  RankList first_on_machine;

  std::string pack() const {
    std::string payload;
    append_part(payload, first_rank.pack());
    append_part(payload, first_on_machine.pack());
    return payload;
  }
  static HostsOfRanks unpack(std::string_view payload) {
    HostsOfRanks hosts;
    hosts.first_rank = RankList::unpack(take_part(payload));
    hosts.first_on_machine = RankList::unpack(take_part(payload));
    refuse_rest(payload);
    return hosts;
  }
};

/// The position of a probe in the plan.
struct Measure {
  static constexpr MessageType message_type = MessageType::measure;
  std::int32_t probe = 0;
};
struct Congest {
  static constexpr MessageType message_type = MessageType::congest;
  std::int32_t probe = 0;
};
using CheckClocks = Signal<MessageType::check_clocks>;
using Finish = Signal<MessageType::finish>;
using Begun = Signal<MessageType::begun>;
using Stop = Signal<MessageType::stop>;
using SendParts = Signal<MessageType::send_parts>;

/// What the ranks know of one another before the first cell: on rank 0 what all say of themselves and cannot count, on
/// each rank which of them run on one host or machine.
struct Acquaintance {
  std::vector<nlohmann::json> ranks;
  nlohmann::json not_counted;
  HostsOfRanks hosts;
};
/// Collective.
Acquaintance make_acquainted(const Channel& channel, const RankInfo& own);

/// Takes a rank's part of a cell, as CellRunner::run does.
using RunCell = std::function<CellReport(const PlanProbe& probe, int ordinal, const std::function<bool()>& is_over)>;

/// Have the whole plan measured, and on rank 0 the record written. Collective.
void take_cells(const LaunchContext& context, const RunCell& run, const Acquaintance& all, RecordWriter* writer);

/// Measure a plan. `start_up_ns`: what MPI_Init took on this rank. Collective over MPI_COMM_WORLD; every rank returns
/// the same.
ExitCode launch(const std::string& plan_path, std::uint64_t start_up_ns);

}  // namespace fabricbench
