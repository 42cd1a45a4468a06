#include "core/control.hpp"

#include <time.h>

#include <algorithm>

namespace fabricbench {
namespace {

// The first sleep is about what a message takes; the longest keeps a rank that waits for minutes at 50 looks a second.
constexpr double shortest_sleep_seconds = 20e-6;
constexpr double longest_sleep_seconds = 20e-3;
constexpr double share_of_waiting = 0.125;

// Tag 0 carries rank 0's orders; cells take turns with the rest, two each. MPI guarantees tags up to 32767.
constexpr int cells_with_own_tags = 16000;

void wait_asleep(MPI_Request& request) {
  Pause pause;
  int is_done = 0;
  for (MPI_Test(&request, &is_done, MPI_STATUS_IGNORE); is_done == 0; MPI_Test(&request, &is_done, MPI_STATUS_IGNORE)) {
    pause.sleep();
  }
}

}  // namespace

void Pause::sleep() {
  const double seconds = std::clamp(waited_seconds_ * share_of_waiting, shortest_sleep_seconds, longest_sleep_seconds);
  const timespec duration{0, static_cast<long>(seconds * 1e9)};
  nanosleep(&duration, nullptr);
  waited_seconds_ += seconds;
}

Control::Control() {
  MPI_Comm_dup(MPI_COMM_WORLD, &communicator_);
  MPI_Comm_rank(communicator_, &rank_);
  MPI_Comm_size(communicator_, &size_);
}

Control::~Control() { MPI_Comm_free(&communicator_); }

void Control::send(int to, int tag, std::string_view message) const {
  MPI_Request request = MPI_REQUEST_NULL;
  MPI_Isend(message.data(), static_cast<int>(message.size()), MPI_CHAR, to, tag, communicator_, &request);
  wait_asleep(request);
}

std::optional<std::string> Control::try_receive(int from, int tag) const {
  int has_come = 0;
  MPI_Message handle = MPI_MESSAGE_NULL;
  MPI_Status status;
  MPI_Improbe(from, tag, communicator_, &has_come, &handle, &status);
  if (has_come == 0) return std::nullopt;
  int size = 0;
  MPI_Get_count(&status, MPI_CHAR, &size);
  std::string message(static_cast<std::size_t>(size), '\0');
  MPI_Request request = MPI_REQUEST_NULL;
  MPI_Imrecv(message.data(), size, MPI_CHAR, &handle, &request);
  wait_asleep(request);
  return message;
}

std::string Control::receive(int from, int tag) const {
  Pause pause;
  for (;;) {
    if (auto message = try_receive(from, tag)) return *std::move(message);
    pause.sleep();
  }
}

std::string Control::broadcast(std::string text) const {
  constexpr int tag = 0;
  if (rank_ != 0) return receive(0, tag);
  for (int other = 1; other < size_; ++other) send(other, tag, text);
  return text;
}

std::vector<std::string> Control::gather(std::string_view text) const {
  constexpr int tag = 0;
  std::vector<std::string> all;
  if (rank_ != 0) {
    send(0, tag, text);
    return all;
  }
  all.emplace_back(text);
  for (int other = 1; other < size_; ++other) all.push_back(receive(other, tag));
  return all;
}

CellTeam::CellTeam(const Control& control, std::vector<int> ranks, int cell_ordinal)
    : control_(control),
      ranks_(std::move(ranks)),
      pattern_tag_(1 + 2 * (cell_ordinal % cells_with_own_tags)),
      agreement_tag_(pattern_tag_ + 1) {
  member_ = static_cast<std::size_t>(std::ranges::find(ranks_, control.rank()) - ranks_.begin());
}

CellTeam CellTeam::some(const std::vector<std::size_t>& members) const {
  CellTeam team(*this);
  team.ranks_.clear();
  for (const std::size_t member : members) team.ranks_.push_back(ranks_[member]);
  team.member_ = static_cast<std::size_t>(std::ranges::find(team.ranks_, control_.rank()) - team.ranks_.begin());
  return team;
}

void CellTeam::discard_leftovers() const {
  for (std::size_t from = 0; from < ranks_.size(); ++from) {
    while (from != member_ && control_.try_receive(ranks_[from], pattern_tag_)) {
    }
  }
}

std::string CellTeam::converge(std::string own,
                               const std::function<std::string(std::string, std::string)>& join) const {
  for (const std::size_t child : {2 * member_ + 1, 2 * member_ + 2}) {
    if (child < ranks_.size()) own = join(std::move(own), control_.receive(ranks_[child], agreement_tag_));
  }
  if (member_ > 0) control_.send(ranks_[(member_ - 1) / 2], agreement_tag_, own);
  return broadcast(std::move(own));
}

std::string CellTeam::broadcast(std::string text) const {
  if (member_ > 0) text = control_.receive(ranks_[(member_ - 1) / 2], agreement_tag_);
  for (const std::size_t child : {2 * member_ + 1, 2 * member_ + 2}) {
    if (child < ranks_.size()) control_.send(ranks_[child], agreement_tag_, text);
  }
  return text;
}

}  // namespace fabricbench
