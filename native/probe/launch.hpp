// One launch, and what rank 0 and the others say to each other on its channel. First all learn the plan and tell who
// they are; then rank 0 directs cell by cell and writes the record, and the others wait asleep for orders:
//
//   rank 0                          another rank
//   Beginning, to all           ->
//                              <-   RankInfo
//   HostsOfRanks, to all        ->
//                              <-   ClockModel where a probe needs clocks that agree
//   Measure, to a cell's ranks  ->  takes part in it
//                              <-   CellReport
//   SendParts, one by one       ->
//                              <-   CellParts
//   Congest, to the congestor's ->  begins
//                              <-   Begun; and when the cell is over
//   Stop                        ->
//                              <-   CellReport
//   CheckClocks, to all         ->  all synchronise their clocks
//                              <-   ClockCheck
//   Finish, to all              ->  returns
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "base/program.hpp"
#include "core/message.hpp"

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

/// On which host each rank runs: the first rank that is there.
struct HostsOfRanks {
  static constexpr MessageType message_type = MessageType::hosts_of_ranks;
  std::vector<std::int32_t> first_rank;

  std::string pack() const { return pack_values(first_rank); }
  static HostsOfRanks unpack(std::string_view payload) { return {unpack_values<std::int32_t>(payload)}; }
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

/// What a rank knows of its start: the clocks before MPI_Init, and how long that took here.
struct StartUp {
  ClockPair clocks = read_clock_pair();
  std::uint64_t init_ns = 0;
};

/// Measure a plan. Collective over MPI_COMM_WORLD; every rank returns the same.
ExitCode launch(const std::string& plan_path, const StartUp& start_up);

}  // namespace fabricbench
