#include "farm/schedule.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

namespace fabricbench::farm {

Schedule::Schedule(int jobs, int retries, std::vector<std::string> hosts, int room)
    : states_(static_cast<std::size_t>(jobs)), room_(static_cast<std::size_t>(room)), retries_(retries) {
  for (std::string& host : hosts) workers_.push_back({.host = std::move(host)});
}

bool Schedule::has_workers() const {
  return std::ranges::any_of(workers_, [](const Worker& each) { return !each.is_left_out; });
}

bool Schedule::may_run(int job, const Worker& worker) const {
  const std::set<std::string>& failed = states_[static_cast<std::size_t>(job)].hosts;
  if (!failed.contains(worker.host)) return true;
  return std::ranges::all_of(workers_,
                             [&failed](const Worker& each) { return each.is_left_out || failed.contains(each.host); });
}

std::optional<Given> Schedule::next(std::size_t worker) {
  Worker& to = workers_[worker];
  if (to.is_left_out || to.jobs >= room_) return std::nullopt;
  const auto repeated = std::ranges::find_if(again_, [this, &to](int job) { return may_run(job, to); });
  int job = 0;
  if (repeated != again_.end()) {
    job = *repeated;
    again_.erase(repeated);
  } else if (fresh_ < states_.size()) {
    job = static_cast<int>(fresh_++);
  } else {
    return std::nullopt;
  }
  ++to.jobs;
  return Given{.job = job, .attempt = state(job).attempts++};
}

std::vector<std::size_t> Schedule::by_room() const {
  std::vector<std::size_t> order(workers_.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, {}, [this](std::size_t each) { return workers_[each].jobs; });
  return order;
}

void Schedule::done(std::size_t worker, int) {
  --workers_[worker].jobs;
  ++done_;
}

bool Schedule::failed(std::size_t worker, int job) {
  --workers_[worker].jobs;
  if (++state(job).failures > retries_) {
    ++lost_;
    return true;
  }
  again(worker, job);
  return false;
}

void Schedule::returned(std::size_t worker, int job) {
  --workers_[worker].jobs;
  again(worker, job);
}

void Schedule::again(std::size_t worker, int job) {
  state(job).hosts.insert(workers_[worker].host);
  again_.push_back(job);
}

void Schedule::leave_out(std::size_t worker) { workers_[worker].is_left_out = true; }

std::vector<Given> Schedule::give_up() {
  while (fresh_ < states_.size()) again_.push_back(static_cast<int>(fresh_++));
  std::vector<Given> left;
  for (const int job : again_) left.push_back({.job = job, .attempt = state(job).attempts});
  again_.clear();
  lost_ += left.size();
  return left;
}

std::size_t Schedule::retried_count() const {
  return static_cast<std::size_t>(std::ranges::count_if(states_, [](const State& each) { return each.attempts > 1; }));
}

}  // namespace fabricbench::farm
