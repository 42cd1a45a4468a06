// What rank 0 of a farm and its workers say to each other.
//
//   rank 0                                   worker
//   FarmJob        an order: a job's input follows in pieces ─►
//   pieces         on a communicator of their own ───────────►  written into the job's folder; then the job runs
//                  ◄─ FarmResult             what became of it, and its output
//                  ◄─ FarmAlive              now and then, so that silence means something
//   FarmOver       ─────────────────────────────────────────►  no job is left: the folder goes
//                  ◄─ FarmClosed
//
// A worker that cannot take an input says so by its result, and lets what still comes of it go by.
#pragma once

#include <mpi.h>

#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "core/message.hpp"

namespace fabricbench::farm {

/// `id` is the attempt's, one for each job that is given.
struct FarmJob {
  static constexpr MessageType message_type = MessageType::farm_job;
  std::uint64_t id = 0;
  int job = 0;
  int attempt = 0;
  std::string name;  // of its input's file

  std::string pack() const { return pack_tree({id, job, attempt, name}); }
  static FarmJob unpack(std::string_view payload) {
    const nlohmann::json value = unpack_tree(payload);
    return {.id = value.at(0), .job = value.at(1), .attempt = value.at(2), .name = value.at(3)};
  }
};

/// How an attempt ended: as its record says it (`FarmAttempt.ended`). `node` is the node's fault and no failure of the
/// job: a full disk, say.
struct FarmResult {
  static constexpr MessageType message_type = MessageType::farm_result;
  std::uint64_t id = 0;
  std::string ended;
  nlohmann::json exit_code;  // null where there is none
  nlohmann::json signal;
  std::string reason;  // in words, of what is not done
  double run_seconds = 0;
  std::uint64_t output_bytes = 0;
  std::string output_digest;
  std::string output;  // where it is brought back

  std::string pack() const {
    std::string payload;
    append_part(payload, pack_tree({id, ended, exit_code, signal, reason, run_seconds, output_bytes, output_digest}));
    append_part(payload, output);
    return payload;
  }
  static FarmResult unpack(std::string_view payload) {
    const nlohmann::json value = unpack_tree(take_part(payload));
    const std::string_view output = take_part(payload);
    refuse_rest(payload);
    return {.id = value.at(0),
            .ended = value.at(1),
            .exit_code = value.at(2),
            .signal = value.at(3),
            .reason = value.at(4),
            .run_seconds = value.at(5),
            .output_bytes = value.at(6),
            .output_digest = value.at(7),
            .output = std::string(output)};
  }
};

using FarmAlive = Signal<MessageType::farm_alive>;
using FarmOver = Signal<MessageType::farm_over>;

/// `problem`: what of the worker's folder could not be removed; empty where all is gone.
using FarmClosed = TextMessage<MessageType::farm_closed>;

/// The head of a piece, whose bytes follow it in the same message. The last of an input has its digest; one that is
/// `broken` could not be read, so that the job does not run.
struct Piece {
  std::uint64_t id = 0;
  std::uint64_t digest = 0;
  std::uint32_t is_last = 0;
  std::uint32_t is_broken = 0;
};

inline constexpr int piece_tag = 0;

/// Large enough that a message's own cost does not count at 100 Gbit/s, small enough that rank 0 needs little memory
/// for many workers.
inline constexpr std::size_t piece_bytes = std::size_t{256} << 10U;

/// So many on their way to a worker that neither it, which looks every few hundred microseconds, nor rank 0 lets the
/// link rest: 1 MiB are 0.8 ms at 10 Gbit/s.
inline constexpr std::size_t pieces_of_worker = 4;

/// Words of `ended`.
namespace ended {
inline constexpr std::string_view done = "done";
inline constexpr std::string_view exit_code = "exit_code";
inline constexpr std::string_view signal = "signal";
inline constexpr std::string_view limit = "limit";
inline constexpr std::string_view not_started = "not_started";
inline constexpr std::string_view output = "output";
inline constexpr std::string_view input = "input";
inline constexpr std::string_view node = "node";
}  // namespace ended

}  // namespace fabricbench::farm
