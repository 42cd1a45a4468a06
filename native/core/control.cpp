#include "core/control.hpp"

#include <time.h>

#include <algorithm>
#include <cmath>

#include "base/clock.hpp"
#include "core/set_aside.hpp"

namespace fabricbench {
namespace {

// The first sleep is about what a message takes; the longest keeps a rank that waits for minutes at 50 looks a second.
constexpr double shortest_sleep_seconds = 20e-6;
constexpr double longest_sleep_seconds = 20e-3;
constexpr double share_of_waiting = 0.125;

// Who sleeps over the control plane hears of the end within 20 ms; who is in a call that has a bound of its own, later.
constexpr double hearing_seconds = 3;

double seconds_since(std::uint64_t begin_ns) { return static_cast<double>(KernelClock::now() - begin_ns) * 1e-9; }

}  // namespace

EndNotice EndNotice::unpack(std::string_view payload) {
  const auto [number, text] = unpack_numbered(payload);
  return {.exit_code = number, .cause = std::string(text)};
}

void Pause::sleep() {
  const double seconds = std::clamp(waited_seconds_ * share_of_waiting, shortest_sleep_seconds, longest_sleep_seconds);
  const timespec duration{0, static_cast<long>(seconds * 1e9)};
  nanosleep(&duration, nullptr);
  waited_seconds_ += seconds;
}

Control::Control(std::size_t part_bytes) : part_bytes_(part_bytes) {
  MPI_Comm_dup(MPI_COMM_WORLD, &communicator_);
  MPI_Comm_rank(communicator_, &rank_);
  MPI_Comm_size(communicator_, &size_);
}

Control::~Control() {
  // Once the launch has ended, messages are left that nobody takes, on which MPICH would abort with an exit code of its
  // own: they go with MPI.
  if (!ended_) MPI_Comm_free(&communicator_);
}

bool Control::is_finished(MPI_Request& request, std::optional<double> patience_seconds) const {
  Pause pause;
  std::uint64_t begin_ns = 0;
  for (int is_done = 0;;) {
    MPI_Test(&request, &is_done, MPI_STATUS_IGNORE);
    if (is_done != 0) return true;
    if (has_ended()) return false;
    if (begin_ns == 0) begin_ns = KernelClock::now();
    if (patience_seconds && seconds_since(begin_ns) > *patience_seconds) return false;
    pause.sleep();
  }
}

void Control::finish_or_set_aside(MPI_Request request, std::shared_ptr<std::string> text) const {
  if (!is_finished(request, std::nullopt)) set_aside(request, std::move(text));
}

void Control::finish(MPI_Request request, std::shared_ptr<const void> buffers, std::string_view awaited) const {
  if (is_finished(request, patience_seconds_)) return;
  set_aside(request, std::move(buffers));
  look_for_end();
  throw ControlError("rank " + std::to_string(rank_) + " waited " + std::to_string(std::lround(*patience_seconds_)) +
                     " s for " + std::string(awaited) + ", longer than a cell of this plan takes: that rank hangs");
}

void Control::send(int to, int tag, std::string_view message) const {
  for (bool is_last = false; !is_last && !ended_;) {
    const std::string_view part = message.substr(0, part_bytes_);
    message.remove_prefix(part.size());
    is_last = part.size() < part_bytes_;
    auto text = std::make_shared<std::string>(part);
    MPI_Request request = MPI_REQUEST_NULL;
    MPI_Isend(text->data(), static_cast<int>(text->size()), MPI_CHAR, to, tag, communicator_, &request);
    finish_or_set_aside(request, std::move(text));
  }
}

std::optional<std::string> Control::take_part(int from, int tag) const {
  int has_come = 0;
  MPI_Message handle = MPI_MESSAGE_NULL;
  MPI_Status status;
  MPI_Improbe(from, tag, communicator_, &has_come, &handle, &status);
  if (has_come == 0) return std::nullopt;
  int size = 0;
  MPI_Get_count(&status, MPI_CHAR, &size);
  auto part = std::make_shared<std::string>(static_cast<std::size_t>(size), '\0');
  MPI_Request request = MPI_REQUEST_NULL;
  MPI_Imrecv(part->data(), size, MPI_CHAR, &handle, &request);
  if (!is_finished(request, std::nullopt)) {
    set_aside(request, part);  // MPI still writes into it
    look_for_end();
  }
  return std::move(*part);
}

void Control::look_for_end() const {
  if (has_ended()) throw LaunchEnded(*ended_);
}

bool Control::has_ended() const {
  while (!ended_) {
    const std::optional<Told> told = take_told();
    if (!told) return false;
    if (const auto* end = std::get_if<EndNotice>(&told->message))
      ended_.emplace(told->from, end->exit_code, end->cause);
  }
  return true;
}

std::optional<Control::Told> Control::take_told() const {
  MPI_Status status;
  int has_come = 0;
  MPI_Iprobe(MPI_ANY_SOURCE, end_tag, communicator_, &has_come, &status);
  if (has_come == 0) return std::nullopt;
  int size = 0;
  MPI_Get_count(&status, MPI_CHAR, &size);
  std::string bytes(static_cast<std::size_t>(size), '\0');
  // Short, and there already.
  MPI_Recv(bytes.data(), size, MPI_CHAR, status.MPI_SOURCE, end_tag, communicator_, MPI_STATUS_IGNORE);
  Told told{.from = status.MPI_SOURCE, .message = EndOver{}};
  try {
    const Envelope envelope = open_envelope(bytes);
    if (envelope.type == MessageType::heard) {
      told.message = decode<EndHeard>(envelope);
    } else if (envelope.type != MessageType::over) {
      told.message = decode<EndNotice>(envelope);
    }
  } catch (const ControlError& error) {
    told.message = EndNotice{.exit_code = 1, .cause = error.what()};
  }
  return told;
}

std::optional<std::string> Control::try_receive(int from, int tag) const {
  auto message = take_part(from, tag);
  if (!message) {
    look_for_end();
    return message;
  }
  for (std::size_t last = message->size(); last == part_bytes_;) {
    Pause pause;
    auto part = take_part(from, tag);
    for (; !part; part = take_part(from, tag)) {
      look_for_end();
      pause.sleep();
    }
    last = part->size();
    *message += *part;
  }
  return message;
}

std::string Control::wait_for(int from, int tag, std::optional<double> patience_seconds) const {
  Pause pause;
  std::uint64_t begin_ns = 0;
  for (;;) {
    if (auto message = try_receive(from, tag)) return *std::move(message);
    pause.sleep();
    if (!patience_seconds) continue;
    if (begin_ns == 0) begin_ns = KernelClock::now();
    if (seconds_since(begin_ns) < *patience_seconds) continue;
    throw ControlError("rank " + std::to_string(rank_) + " heard nothing from rank " + std::to_string(from) + " for " +
                       std::to_string(std::lround(seconds_since(begin_ns))) +
                       " s, longer than a cell of this plan takes: that rank hangs");
  }
}

std::string Control::receive(int from, int tag) const { return wait_for(from, tag, patience_seconds_); }

std::string Control::receive_patiently(int from, int tag) const { return wait_for(from, tag, std::nullopt); }

void Control::end_all(int exit_code, std::string_view cause) {
  if (ended_) return confirm(*ended_);  // heard where nothing could be thrown
  const EndNotice end{.exit_code = exit_code, .cause = std::string(cause)};
  std::vector<int> silent;
  for (int other = 0; other < size_; ++other) {
    if (other == rank_) continue;
    silent.push_back(other);
    tell(other, end);  // who never takes it is ended below
  }
  ended_.emplace(rank_, exit_code, end.cause);
  bool is_clean = true;
  int first_to_end = rank_;
  const std::uint64_t begin_ns = KernelClock::now();
  for (Pause pause; !silent.empty() && seconds_since(begin_ns) < hearing_seconds; pause.sleep()) {
    while (const std::optional<Told> told = take_told()) {
      if (std::holds_alternative<EndOver>(told->message)) return;
      if (std::erase(silent, told->from) == 0) continue;
      if (const auto* heard = std::get_if<EndHeard>(&told->message)) {
        is_clean = is_clean && heard->is_clean;
      } else {  // it ends the launch itself
        first_to_end = std::min(first_to_end, told->from);
      }
    }
  }
  // Of several the lowest rank decides for all: each knows of the others, who answered by their own end.
  if (first_to_end != rank_) {
    if (!is_let_go(2 * hearing_seconds)) MPI_Abort(MPI_COMM_WORLD, exit_code);
    return;
  }
  if (!silent.empty() || !is_clean || has_set_aside()) MPI_Abort(MPI_COMM_WORLD, exit_code);
  for (int other = 0; other < size_; ++other) {
    if (other != rank_) tell(other, EndOver{});
  }
  for (Pause pause; has_set_aside() && seconds_since(begin_ns) < 2 * hearing_seconds;) pause.sleep();
}

void Control::confirm(const LaunchEnded& ended) const {
  tell_heard(ended.rank());
  is_let_go(hearing_seconds);  // if not, the rank that ended the launch has died
}

bool Control::is_let_go(double within_seconds) const {
  const std::uint64_t begin_ns = KernelClock::now();
  for (Pause pause; seconds_since(begin_ns) < within_seconds; pause.sleep()) {
    while (const std::optional<Told> told = take_told()) {
      if (std::holds_alternative<EndOver>(told->message)) return true;
      if (std::holds_alternative<EndNotice>(told->message)) tell_heard(told->from);
    }
  }
  return false;
}

void Control::tell_heard(int to) const { tell(to, EndHeard{.is_clean = !has_set_aside()}); }

template <Message M>
void Control::tell(int to, const M& message) const {
  auto bytes = std::make_shared<std::string>(encode(message));
  MPI_Request request = MPI_REQUEST_NULL;
  MPI_Isend(bytes->data(), static_cast<int>(bytes->size()), MPI_CHAR, to, end_tag, communicator_, &request);
  set_aside(request, std::move(bytes));
}

std::string Control::broadcast(std::string bytes, int tag) const {
  if (rank_ != 0) return receive(0, tag);
  for (int other = 1; other < size_; ++other) send(other, tag, bytes);
  return bytes;
}

std::vector<std::string> Control::gather(std::string_view bytes, int tag) const {
  std::vector<std::string> all;
  if (rank_ != 0) {
    send(0, tag, bytes);
    return all;
  }
  all.emplace_back(bytes);
  for (int other = 1; other < size_; ++other) all.push_back(receive(other, tag));
  return all;
}

}  // namespace fabricbench
