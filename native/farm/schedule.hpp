// Which job goes to which node next, and what is left: of a farm's jobs, attempts and nodes alone. Nothing here
// waits or talks.
#pragma once

#include <cstddef>
#include <deque>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace fabricbench::farm {

/// One attempt of a job; both count from 0.
struct Given {
  int job = 0;
  int attempt = 0;

  bool operator==(const Given&) const = default;
};

class Schedule {
 public:
  /// `hosts` are those of the workers, each of which has room for so many jobs. A job may fail `retries` times more
  /// than once.
  Schedule(int jobs, int retries, std::vector<std::string> hosts, int room);

  /// Take what a worker is to be given next: what failed before comes first, on another host than where it failed as
  /// long as there is one. Nothing where there is no room or no job for it.
  std::optional<Given> next(std::size_t worker);
  /// The workers, those with most room first.
  std::vector<std::size_t> by_room() const;

  void done(std::size_t worker, int job);
  /// The job failed; whether for good.
  bool failed(std::size_t worker, int job);
  /// The node failed under the job, which may begin again as if it had not.
  void returned(std::size_t worker, int job);
  /// Give a worker nothing more. Those that it has are returned by whoever says so.
  void leave_out(std::size_t worker);
  /// No job can be given any more: take what would have been given of those that were left, which have failed for good.
  std::vector<Given> give_up();

  bool is_over() const { return done_ + lost_ == states_.size(); }
  bool has_workers() const;
  std::size_t under_way(std::size_t worker) const { return workers_[worker].jobs; }
  std::size_t done_count() const { return done_; }
  std::size_t lost_count() const { return lost_; }
  /// Jobs of which more than one attempt was begun.
  std::size_t retried_count() const;

 private:
  struct Worker {
    std::string host;
    std::size_t jobs = 0;
    bool is_left_out = false;
  };
  struct State {
    int attempts = 0;
    int failures = 0;
    std::set<std::string> hosts;  // on which it failed
  };

  bool may_run(int job, const Worker& worker) const;
  State& state(int job) { return states_[static_cast<std::size_t>(job)]; }
  void again(std::size_t worker, int job);

  std::vector<Worker> workers_;
  std::vector<State> states_;
  std::deque<int> again_;
  std::size_t fresh_ = 0;  // the first job that was never given
  std::size_t room_;
  int retries_;
  std::size_t done_ = 0;
  std::size_t lost_ = 0;
};

}  // namespace fabricbench::farm
