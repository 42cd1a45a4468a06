// fabricbench-shared-data: blocks of data that one node has and others read and write over a fabric, as the 50 MB
// inputs of NIST's speech recognition did. Two media (medium.hpp): the memory of rank 0 behind TCP connections on the
// fabric, or files of a network or cluster file system that all nodes mount.
//
// A pass has every client read or write all its blocks, one after the other; clients begin together. Reading and
// writing are passes of their own. Verified: every byte, of what was read by who read it, and of what was written by
// the server or, of files, by the next rank when the pass is over.
#include <algorithm>
#include <array>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/clock.hpp"
#include "kernel/frame/kernel.hpp"
#include "kernel/shared_data/files.hpp"
#include "kernel/shared_data/medium.hpp"
#include "kernel/shared_data/sockets.hpp"

namespace {

using namespace fabricbench;
using namespace fabricbench::kernel;
using shared_data::Direction;
using shared_data::Medium;

constexpr std::int64_t most_block = std::int64_t{1} << 40U;
constexpr std::int64_t usual_block = 50'000'000;
constexpr std::int64_t most_blocks = 1'000'000;
constexpr double bytes_of_mb = 1e6;
constexpr std::array<std::string_view, 3> modes{"read", "write", "both"};
constexpr std::array<std::string_view, 2> file_systems{"network", "any"};

/// Of a pass, or of several that follow each other: how long it took, all together and each rank.
struct Times {
  double seconds = 0;
  std::vector<double> of_rank;
  Times& operator+=(const Times& other) {
    seconds += other.seconds;
    std::ranges::transform(of_rank, other.of_rank, of_rank.begin(), std::plus{});
    return *this;
  }
};

Times timed_pass(Medium& medium, Direction direction, MPI_Comm communicator, int ranks) {
  medium.prepare(direction);
  TimedSection timed(communicator);
  const std::uint64_t begin_ns = Clock::now();
  medium.move(direction);
  const double own = ns_to_seconds(Clock::now() - begin_ns);
  Times times{.seconds = timed.end(), .of_rank = std::vector<double>(static_cast<std::size_t>(ranks))};
  MPI_Allgather(&own, 1, MPI_DOUBLE, times.of_rank.data(), 1, MPI_DOUBLE, communicator);
  return times;
}

double median(std::vector<double> values) {
  std::ranges::sort(values);
  const std::size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

class SharedData final : public Problem {
 public:
  explicit SharedData(const Arguments& arguments)
      : block_(arguments.number("--block", 1, most_block, usual_block)),
        blocks_(arguments.number("--blocks", 1, most_blocks, 1)),
        mode_(arguments.word("--mode", modes, "read")),
        path_(arguments.text("--path", "")),
        takes_any_(arguments.word("--file-system", file_systems, "network") == "any"),
        has_fabric_(arguments.has("--interface") || arguments.has("--subnet")),
        interface_(arguments.fabric_interface()) {
    if (!path_.empty() && path_.front() != '/') throw UsageError{"--path needs a whole path, found \"" + path_ + "\""};
  }

  std::vector<Parameter> parameters() const override {
    std::vector<Parameter> told{{"block", block_}, {"blocks", blocks_}, {"mode", std::string(mode_)}};
    if (!path_.empty()) told.push_back({"path", path_});
    return told;
  }

  std::optional<std::string> refusal(int ranks) const override {
    if (!path_.empty()) return std::nullopt;
    if (ranks < 2) return "1 rank has nobody to serve; take 2 or more";
    if (!has_fabric_)
      return "--interface or --subnet must say which fabric is read over; --interface lo on one machine";
    return std::nullopt;
  }

  Result run(MPI_Comm communicator) const override {
    int rank = 0;
    int ranks = 1;
    MPI_Comm_rank(communicator, &rank);
    MPI_Comm_size(communicator, &ranks);
    const std::unique_ptr<Medium> medium = open(communicator);
    Times all{.of_rank = std::vector<double>(static_cast<std::size_t>(ranks))};
    std::vector<std::pair<std::string, double>> values;
    const auto clients = static_cast<double>(ranks - medium->first_client());
    const double client_bytes = static_cast<double>(block_) * static_cast<double>(blocks_);
    std::int64_t wrong = 0;
    for (const auto& [direction, name] : passes()) {
      const Times times = timed_pass(*medium, direction, communicator, ranks);
      wrong += medium->take_wrong_blocks(direction);
      values.emplace_back(std::string(name) + "_mb_s", clients * client_bytes / times.seconds / bytes_of_mb);
      all += times;
    }
    MPI_Allreduce(MPI_IN_PLACE, &wrong, 1, MPI_INT64_T, MPI_SUM, communicator);
    const double own_bytes = client_bytes * static_cast<double>(passes().size());
    add_clients(values, {all.of_rank.begin() + medium->first_client(), all.of_rank.end()}, medium->first_client(),
                own_bytes);
    // What crosses the interface of rank 0's node: as a server all there is, as a client its own.
    values.emplace_back("leader_bytes", medium->first_client() == 0 ? own_bytes : own_bytes * clients);
    return {.seconds = all.seconds,
            .operations = own_bytes * clients,
            .operation_unit = "bytes moved",
            .size = std::to_string(static_cast<int>(clients)) + " x " + std::to_string(blocks_) + " x " +
                    std::to_string(block_) + " B",
            .iterations = static_cast<int>(blocks_),
            .checks = {{"wrong blocks", static_cast<double>(wrong), 0, 0}},
            .values = std::move(values),
            .facts = medium->facts()};
  }

 private:
  std::unique_ptr<Medium> open(MPI_Comm communicator) const {
    const auto block = static_cast<std::uint64_t>(block_);
    const auto blocks = static_cast<std::uint64_t>(blocks_);
    if (path_.empty()) return std::make_unique<shared_data::Sockets>(communicator, interface_, block, blocks);
    return std::make_unique<shared_data::Files>(communicator, path_, takes_any_, block, blocks);
  }

  std::span<const std::pair<Direction, std::string_view>> passes() const {
    static constexpr std::array<std::pair<Direction, std::string_view>, 2> both{
        {{Direction::read, "read"}, {Direction::write, "write"}}};
    const std::span all(both);
    return mode_ == "both" ? all : all.subspan(mode_ == "read" ? 0 : 1, 1);
  }

  static void add_clients(std::vector<std::pair<std::string, double>>& values, const std::vector<double>& seconds,
                          int first, double bytes) {
    values.emplace_back("median_client_seconds", median(seconds));
    values.emplace_back("slowest_client_seconds", std::ranges::max(seconds));
    values.emplace_back("slowest_client_mb_s", bytes / std::ranges::max(seconds) / bytes_of_mb);
    for (std::size_t i = 0; i < seconds.size(); ++i) {
      const std::string rank = std::to_string(static_cast<std::size_t>(first) + i);
      values.emplace_back("rank_" + rank + "_mb_s", bytes / seconds[i] / bytes_of_mb);
    }
  }

  std::int64_t block_;
  std::int64_t blocks_;
  std::string_view mode_;
  std::string path_;
  bool takes_any_;
  bool has_fabric_;
  std::optional<Interface> interface_;
};

}  // namespace

int main(int argc, char** argv) {
  const Program program{
      .name = "fabricbench-shared-data",
      .purpose =
          "Has all ranks but the first read and write blocks of data that rank 0 serves from its memory, over TCP\n"
          "on the fabric; or all ranks files of a network or cluster file system. Verifies every byte and tells how\n"
          "fast it was, together and for each client.",
      .kernels = {{"shared-data", "blocks from one server to all clients, and back", read_problem<SharedData>}},
      .options = {{"--block", "B", "bytes of a block, which a client asks for at once; default 50000000"},
                  {"--blocks", "N", "blocks of each client in a pass; default 1"},
                  {"--mode", "MODE", "read (default), write or both, one pass after the other"},
                  {"--path", "DIR",
                   "a folder of a file system that all nodes mount: files there in place of rank 0's memory"},
                  {"--file-system", "WHICH",
                   "network (default): refuse a folder of this machine alone; any: take it all the same"}},
      .example = "--subnet 10.98.1.0/24 --block 1000000 --blocks 100 --mode both"};
  return run_program(program, argc, argv);
}
