// A worker: takes inputs, has its runner run the jobs, so many at once, and tells rank 0 what became of each.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "base/socket.hpp"
#include "core/channel.hpp"
#include "farm/digest.hpp"
#include "farm/messages.hpp"
#include "farm/plan.hpp"
#include "farm/runner.hpp"
#include "farm/waiting.hpp"

namespace fabricbench::farm {

class Worker {
 public:
  /// `root` is the folder that the runner has opened.
  Worker(const Control& control, MPI_Comm pieces, const FarmPlan& plan, Runner& runner, std::string root);

  /// Work until rank 0 says that no job is left. Throws LaunchEnded and ControlError.
  void run();

 private:
  /// An input that comes; without a file it goes by.
  struct Staging {
    FarmJob job;
    std::string folder;
    Descriptor file;
    Digest digest;
  };
  /// A job whose input is there.
  struct Ready {
    FarmJob job;
    std::string folder;
    std::uint64_t digest = 0;
  };

  /// A piece on its way.
  struct Receiving {
    std::shared_ptr<std::vector<std::byte>> buffer;
    std::size_t bytes = 0;
    MPI_Request request = MPI_REQUEST_NULL;
  };

  void work();
  bool take_order();
  bool take_piece();
  bool receive_pieces();
  void take(const Piece& piece, std::span<const std::byte> bytes);
  bool take_end();
  void begin(const FarmJob& job);
  /// Make the input's file, closed again after its last piece; false where the attempt has been refused.
  bool open(Staging& staging);
  void write(Staging& staging, std::span<const std::byte> bytes);
  void refuse_unwritten(const Staging& staging, int error);
  void finish(Staging& staging, const Piece& piece);
  void start_next();
  void tell_of(const Ready& ready, const JobEnd& end);
  /// Fill in the output, or why there is none that can be had.
  void add_output(FarmResult& result, const Ready& ready);
  /// No job runs on this node any more: give back all that it has.
  void give_back_all(const std::string& why);
  void refuse(std::uint64_t id, std::string_view how, const std::string& why);
  void say(const FarmResult& result);
  void sign_of_life();
  void remove_folder(const std::string& folder);

  Channel channel_;
  MPI_Comm pieces_;
  const FarmPlan& plan_;
  Runner& runner_;
  std::string root_;
  bool has_output_file_;
  std::map<std::uint64_t, Staging> staging_;
  std::deque<Ready> ready_;
  std::map<std::uint64_t, Ready> running_;
  std::optional<std::string> broken_;  // why no job can run here any more
  std::deque<Receiving> receiving_;
  std::vector<std::shared_ptr<std::vector<std::byte>>> spare_;
  std::uint64_t said_ns_;
  std::uint64_t next_id_ = 0;  // attempts from here on are not ordered yet
  bool is_over_ = false;
};

}  // namespace fabricbench::farm
