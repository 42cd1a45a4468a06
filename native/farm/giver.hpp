// Rank 0 of a farm: gives jobs to workers, sends each its input in pieces over the fabric under test, and writes down
// what became of each.
#pragma once

#include <mpi.h>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/channel.hpp"
#include "farm/digest.hpp"
#include "farm/messages.hpp"
#include "farm/plan.hpp"
#include "farm/record.hpp"
#include "farm/schedule.hpp"
#include "farm/source.hpp"

namespace fabricbench::farm {

/// A rank that runs jobs.
struct WorkerPlace {
  int rank = 0;
  std::string host;
};

class Giver {
 public:
  Giver(const Control& control, MPI_Comm pieces, const FarmPlan& plan, const Source& source, FarmRecord& record,
        std::vector<WorkerPlace> workers);

  /// Give out all jobs, and wait for what becomes of them. Throws LaunchEnded, ControlError where a worker is silent
  /// for the patience, and OutputError.
  FarmTotals run();
  /// Send the workers home; adds what they could not remove, and who has not told so soon.
  void close(FarmTotals& totals);
  /// Wait for those that have not told of it yet.
  void wait_for_the_last();

 private:
  /// An attempt that a worker has.
  struct UnderWay {
    Given given;
    std::size_t worker = 0;
    double given_s = 0;
    std::optional<double> staged_s;
    std::uint64_t input_bytes = 0;
    std::optional<std::uint64_t> input_digest;  // once all of it is under way
    std::string input_problem;
  };
  /// An input on its way; the earlier ones come first.
  struct Transfer {
    std::uint64_t id = 0;
    std::size_t worker = 0;
    int job = 0;
    std::optional<Input> input;  // open from its first piece to its last
    std::uint64_t sent = 0;
    Digest digest;
    bool is_cut = false;   // the worker does not want it any more
    bool is_sent = false;  // its last piece is under way
  };
  struct PieceUnderWay {
    std::uint64_t id = 0;
    std::size_t worker = 0;
    bool is_last = false;
    std::shared_ptr<std::vector<std::byte>> bytes;
    MPI_Request request = MPI_REQUEST_NULL;
  };

  double now_s() const;
  bool give();
  void begin(std::size_t worker, const Given& given);
  bool send_pieces();
  void send_piece(Transfer& transfer);
  void open(Transfer& transfer);
  bool finish_pieces();
  bool take_results();
  void conclude(const FarmResult& result);
  void give_up_where_nobody_is_left();
  void refuse_silence() const;
  std::size_t pieces_to(std::size_t worker) const;
  std::size_t worker_of(int rank) const;

  Channel channel_;
  MPI_Comm pieces_;
  const FarmPlan& plan_;
  const Source& source_;
  FarmRecord& record_;
  std::vector<WorkerPlace> workers_;
  Schedule schedule_;
  FarmTotals totals_;
  std::map<std::uint64_t, UnderWay> under_way_;
  std::deque<Transfer> transfers_;
  std::vector<PieceUnderWay> sending_;
  std::vector<std::shared_ptr<std::vector<std::byte>>> spare_;  // buffers of pieces that have been sent
  std::vector<std::uint64_t> heard_ns_;                         // by worker
  std::vector<std::size_t> closing_;  // workers that have been sent home, and have told nothing
  std::uint64_t next_id_ = 0;
  std::uint64_t begin_ns_ = 0;
};

}  // namespace fabricbench::farm
