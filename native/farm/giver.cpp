#include "farm/giver.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

#include "base/clock.hpp"
#include "base/failure.hpp"
#include "core/set_aside.hpp"
#include "farm/waiting.hpp"

namespace fabricbench::farm {
namespace {

/// What bounds the memory of rank 0, however many workers there are.
constexpr std::size_t pieces_of_all = 16;

/// An input lies ready while others are computed on, one on each node.
constexpr int staged_ahead = 1;

/// So long the record waits for folders to be removed, before it is ended without knowing of them.
constexpr std::uint64_t patience_of_the_record_ns = 10'000'000'000;

std::vector<std::string> hosts_of(const std::vector<WorkerPlace>& workers) {
  std::vector<std::string> hosts;
  for (const WorkerPlace& each : workers) hosts.push_back(each.host);
  return hosts;
}

}  // namespace

Giver::Giver(const Control& control, MPI_Comm pieces, const FarmPlan& plan, const Source& source, FarmRecord& record,
             std::vector<WorkerPlace> workers)
    : channel_(control),
      pieces_(pieces),
      plan_(plan),
      source_(source),
      record_(record),
      workers_(std::move(workers)),
      schedule_(plan.jobs, plan.retries, hosts_of(workers_), plan.at_once + staged_ahead),
      heard_ns_(workers_.size(), Clock::now()) {}

double Giver::now_s() const { return ns_to_seconds(Clock::now() - begin_ns_); }

FarmTotals Giver::run() {
  const Traffic before = read_traffic_counters();
  begin_ns_ = Clock::now();
  Waiting waiting;
  try {
    while (!schedule_.is_over()) {
      const bool has_given = give();
      const bool has_sent = send_pieces();
      const bool has_finished = finish_pieces();
      const bool has_heard = take_results();
      refuse_silence();
      if (has_given || has_sent || has_finished || has_heard) {
        waiting.begin_again();
      } else {
        waiting.sleep();
      }
    }
    totals_.seconds = now_s();
    // What a worker that was left out still lets go by.
    while (!sending_.empty()) {
      finish_pieces();
      take_results();
      refuse_silence();
      waiting.sleep();
    }
  } catch (...) {
    for (PieceUnderWay& piece : sending_) set_aside(piece.request, std::move(piece.bytes));
    throw;
  }
  totals_.interfaces = traffic_between(before, read_traffic_counters());
  InterfacesAbove above;
  note_above(totals_.interfaces, above);
  totals_.done = schedule_.done_count();
  totals_.lost = schedule_.lost_count();
  totals_.retried = schedule_.retried_count();
  return totals_;
}

void Giver::close(FarmTotals& totals) {
  for (std::size_t worker = 0; worker < workers_.size(); ++worker) {
    channel_.send(workers_[worker].rank, FarmOver{});
    closing_.push_back(worker);
  }
  const std::uint64_t begin_ns = Clock::now();
  Waiting waiting;
  while (!closing_.empty() && Clock::now() - begin_ns < patience_of_the_record_ns) {
    const std::size_t before = closing_.size();
    std::erase_if(closing_, [this, &totals](std::size_t worker) {
      const WorkerPlace& place = workers_[worker];
      const auto said = channel_.try_receive<FarmClosed, FarmResult, FarmAlive>(place.rank);
      const auto* closed = said ? std::get_if<FarmClosed>(&*said) : nullptr;
      if (closed == nullptr) return false;
      if (!closed->text.empty()) totals.left_behind.push_back(place.host + ": " + closed->text);
      return true;
    });
    if (closing_.size() < before) waiting.begin_again();
    if (!closing_.empty()) waiting.sleep();
  }
  for (const std::size_t worker : closing_) {
    totals.left_behind.push_back(workers_[worker].host + ": its folder in " + plan_.scratch +
                                 " was still being removed when the record was written");
  }
}

void Giver::wait_for_the_last() {
  for (const std::size_t worker : closing_) {
    for (bool is_closed = false; !is_closed;) {
      const auto said = channel_.receive<FarmClosed, FarmResult, FarmAlive>(workers_[worker].rank);
      is_closed = std::holds_alternative<FarmClosed>(said);
    }
  }
}

bool Giver::give() {
  bool has_given = false;
  for (bool is_going_on = true; is_going_on;) {
    is_going_on = false;
    for (const std::size_t worker : schedule_.by_room()) {
      const std::optional<Given> given = schedule_.next(worker);
      if (!given) continue;
      begin(worker, *given);
      has_given = is_going_on = true;
    }
  }
  return has_given;
}

void Giver::begin(std::size_t worker, const Given& given) {
  const std::uint64_t id = next_id_++;
  UnderWay& one = under_way_[id];
  one.given = given;
  one.worker = worker;
  one.given_s = now_s();
  channel_.send(workers_[worker].rank,
                FarmJob{.id = id, .job = given.job, .attempt = given.attempt, .name = source_.name_of(given.job)});
  transfers_.push_back({.id = id, .worker = worker, .job = given.job, .input = std::nullopt, .sent = 0, .digest = {}});
}

std::size_t Giver::pieces_to(std::size_t worker) const {
  return static_cast<std::size_t>(
      std::ranges::count_if(sending_, [worker](const PieceUnderWay& each) { return each.worker == worker; }));
}

bool Giver::send_pieces() {
  bool has_sent = false;
  for (Transfer& transfer : transfers_) {
    // No worker has more pieces under way than are still free, so a few with slow disks leave some to all others.
    while (!transfer.is_sent && !transfer.is_cut &&
           pieces_to(transfer.worker) < std::min(pieces_of_worker, pieces_of_all - sending_.size())) {
      send_piece(transfer);
      has_sent = true;
    }
    if (sending_.size() >= pieces_of_all) break;
  }
  std::erase_if(transfers_, [](const Transfer& each) { return each.is_sent || each.is_cut; });
  return has_sent;
}

void Giver::open(Transfer& transfer) {
  UnderWay& one = under_way_.at(transfer.id);
  try {
    transfer.input = source_.open(transfer.job);
    one.input_bytes = transfer.input->bytes();
  } catch (const Failure& failure) {
    one.input_problem = failure.what();
  }
}

void Giver::send_piece(Transfer& transfer) {
  // Not before: inputs of thousands of nodes would be open while they wait for their turn.
  if (!transfer.input) open(transfer);
  UnderWay& one = under_way_.at(transfer.id);
  const std::uint64_t left = transfer.input ? transfer.input->bytes() - transfer.sent : 0;
  std::shared_ptr<std::vector<std::byte>> buffer;
  if (spare_.empty()) {
    buffer = std::make_shared<std::vector<std::byte>>(sizeof(Piece) + piece_bytes);
  } else {
    buffer = std::move(spare_.back());
    spare_.pop_back();
  }
  Piece piece{.id = transfer.id};
  auto size = static_cast<std::size_t>(std::min<std::uint64_t>(left, piece_bytes));
  const std::span<std::byte> bytes = std::span(*buffer).subspan(sizeof piece, size);
  if (transfer.input) {
    try {
      transfer.input->read(bytes);
      transfer.digest.add(bytes);
    } catch (const Failure& failure) {
      one.input_problem = failure.what();
    }
  }
  transfer.sent += size;
  if (!one.input_problem.empty()) {
    size = 0;
    piece.is_broken = 1;
  }
  transfer.is_sent = size == left || piece.is_broken != 0;
  if (transfer.is_sent) {
    piece.is_last = 1;
    piece.digest = transfer.digest.value();
    if (piece.is_broken == 0) one.input_digest = piece.digest;
  }
  std::memcpy(buffer->data(), &piece, sizeof piece);
  PieceUnderWay under_way{
      .id = transfer.id, .worker = transfer.worker, .is_last = transfer.is_sent, .bytes = std::move(buffer)};
  // Synchronous: complete only once the worker takes it, so that nothing piles up where its disk is slow.
  MPI_Issend(under_way.bytes->data(), static_cast<int>(sizeof piece + size), MPI_BYTE, workers_[transfer.worker].rank,
             piece_tag, pieces_, &under_way.request);
  sending_.push_back(std::move(under_way));
  totals_.staged_bytes += size;
}

bool Giver::finish_pieces() {
  const std::size_t before = sending_.size();
  std::erase_if(sending_, [this](PieceUnderWay& each) {
    int is_done = 0;
    MPI_Test(&each.request, &is_done, MPI_STATUS_IGNORE);
    if (is_done == 0) return false;
    const auto found = under_way_.find(each.id);
    if (each.is_last && found != under_way_.end()) found->second.staged_s = now_s();
    spare_.push_back(std::move(each.bytes));
    return true;
  });
  return sending_.size() < before;
}

std::size_t Giver::worker_of(int rank) const {
  return static_cast<std::size_t>(std::ranges::find(workers_, rank, &WorkerPlace::rank) - workers_.begin());
}

bool Giver::take_results() {
  bool has_heard = false;
  while (const std::optional<int> from = channel_.control().who_has_sent(launch_tag)) {
    const auto said = channel_.receive<FarmResult, FarmAlive>(*from);
    heard_ns_[worker_of(*from)] = Clock::now();
    if (const auto* result = std::get_if<FarmResult>(&said)) {
      conclude(*result);
      has_heard = true;
    }
  }
  return has_heard;
}

void Giver::conclude(const FarmResult& told) {
  const auto found = under_way_.find(told.id);
  if (found == under_way_.end())
    throw ControlError("a worker tells of attempt " + std::to_string(told.id) + ", which it does not have");
  UnderWay one = found->second;
  // The result may be here before it is seen that the last piece has been taken.
  if (!one.staged_s && told.run_seconds > 0) one.staged_s = std::max(one.given_s, now_s() - told.run_seconds);
  under_way_.erase(found);
  for (Transfer& transfer : transfers_) transfer.is_cut = transfer.is_cut || transfer.id == told.id;
  const int job = one.given.job;
  const bool is_of_node = told.ended == ended::node;
  bool is_last = true;
  if (told.ended == ended::done) {
    schedule_.done(one.worker, job);
  } else if (is_of_node) {
    schedule_.returned(one.worker, job);
    is_last = false;
  } else {
    is_last = schedule_.failed(one.worker, job);
  }
  FarmResult result = told;
  if (!one.input_problem.empty()) result.reason = one.input_problem;
  record_.write_attempt({.job = job,
                         .attempt = one.given.attempt,
                         .node = workers_[one.worker].host,
                         .rank = workers_[one.worker].rank,
                         .given_s = one.given_s,
                         .staged_s = one.staged_s,
                         .ended_s = now_s(),
                         .input_bytes = one.input_bytes,
                         .input_digest = one.input_digest ? digest_text(*one.input_digest) : "",
                         .is_last = is_last,
                         .counts = !is_of_node},
                        result);
  if (is_of_node) {
    totals_.left_out.try_emplace(workers_[one.worker].host, result.reason);
    schedule_.leave_out(one.worker);
  }
  give_up_where_nobody_is_left();
}

void Giver::give_up_where_nobody_is_left() {
  if (schedule_.has_workers() || !under_way_.empty()) return;
  const auto& [node, why] = *totals_.left_out.begin();
  for (const Given& given : schedule_.give_up()) {
    record_.write_lost(given, "no node is left that could run it: " + node + ": " + why, now_s());
  }
}

void Giver::refuse_silence() const {
  const std::uint64_t now = Clock::now();
  for (std::size_t worker = 0; worker < workers_.size(); ++worker) {
    const double silent = ns_to_seconds(now - std::min(now, heard_ns_[worker]));
    if (silent <= plan_.patience_seconds) continue;
    throw ControlError("rank " + std::to_string(workers_[worker].rank) + " on " + workers_[worker].host +
                       " has told nothing for " + std::to_string(std::lround(silent)) +
                       " s: that rank hangs, or its node or its scratch folder does");
  }
}

}  // namespace fabricbench::farm
