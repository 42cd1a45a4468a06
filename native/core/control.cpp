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
// Where the patience is short, less, so that a launch which waits in vain has ended before its HangAlarms.
constexpr double longest_hearing_seconds = 3;
constexpr double shortest_hearing_seconds = 1;
constexpr double share_for_hearing = 0.25;

// Who is silent is asked when the patience is over, and answers within 20 ms where it waits, too; on a busy machine a
// little later. One that does has so much of the patience, in all, to say for whom: more than it takes to ask in its
// turn and to wait for the answer, less than a HangAlarm leaves it.
constexpr double longest_answer_seconds = 0.5;
constexpr double share_for_answer = 0.125;
constexpr double share_where_it_waits = 1.35;

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

// The communicator goes with MPI: a question whether a rank waits, or the end of the launch, may still be on its way
// when all else is done, and MPICH ends a program that frees a communicator with such a message.
Control::Control(std::size_t part_bytes) : part_bytes_(part_bytes) {
  MPI_Comm_dup(MPI_COMM_WORLD, &communicator_);
  MPI_Comm_rank(communicator_, &rank_);
  MPI_Comm_size(communicator_, &size_);
}

bool Control::is_finished(MPI_Request& request, std::optional<double> patience_seconds) const {
  Pause pause;
  std::uint64_t begin_ns = 0;
  for (int is_done = 0;;) {
    if (const int error = MPI_Test(&request, &is_done, MPI_STATUS_IGNORE); error != MPI_SUCCESS) {
      throw ControlError("rank " + std::to_string(rank_) + ": MPI_Test failed with error " + std::to_string(error));
    }
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
                     " s for " + std::string(awaited) +
                     ", longer than a cell of this plan takes: that rank hangs, or waits for one that does");
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
    if (std::holds_alternative<Asked>(told->message)) tell(told->from, Waits{});
    if (std::holds_alternative<Waits>(told->message)) answered_ = told->from;
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
    } else if (envelope.type == MessageType::asked) {
      told.message = Asked{};
    } else if (envelope.type == MessageType::waits) {
      told.message = Waits{};
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

std::optional<int> Control::who_has_sent(int tag) const {
  look_for_end();
  MPI_Status status;
  int has_come = 0;
  MPI_Iprobe(MPI_ANY_SOURCE, tag, communicator_, &has_come, &status);
  if (has_come == 0) return std::nullopt;
  return status.MPI_SOURCE;
}

/// That of one rank while another waits for it.
class Control::Silence {
 public:
  Silence(const Control& control, int of, double patience_seconds)
      : control_(control),
        of_(of),
        answer_seconds_(std::min(longest_answer_seconds, patience_seconds * share_for_answer)),
        // Going up a tree of ranks, where lower ones wait for higher ones, comes before going down.
        first_seconds_(patience_seconds + (of < control.rank_ ? answer_seconds_ : 0)),
        last_seconds_(patience_seconds * share_where_it_waits) {}

  /// Throws ControlError where it has lasted too long.
  void look() {
    const double waited = seconds_since(begin_ns_);
    if (waited < first_seconds_) return;
    if (!asked_at_) {
      asked_at_ = waited;
      control_.answered_.reset();
      control_.tell(of_, Asked{});
      return;
    }
    if (control_.answered_ == of_) {
      if (waited > last_seconds_) blame(waited, "though it answers: it waits for a rank that hangs");
    } else if (waited - *asked_at_ > answer_seconds_) {
      blame(waited, "and it does not answer: that rank hangs, or is held in a call by one that does");
    }
  }

 private:
  [[noreturn]] void blame(double waited, const std::string& why) const {
    throw ControlError("rank " + std::to_string(control_.rank_) + " heard nothing from rank " + std::to_string(of_) +
                       " for " + std::to_string(std::lround(waited)) + " s, longer than a cell of this plan takes, " +
                       why);
  }

  const Control& control_;
  int of_;
  double answer_seconds_;
  double first_seconds_;
  double last_seconds_;
  std::uint64_t begin_ns_ = KernelClock::now();
  std::optional<double> asked_at_;
};

std::string Control::wait_for(int from, int tag, std::optional<double> patience_seconds) const {
  Pause pause;
  std::optional<Silence> silence;
  for (;;) {
    if (auto message = try_receive(from, tag)) return *std::move(message);
    pause.sleep();
    if (!patience_seconds) continue;
    if (!silence) silence.emplace(*this, from, *patience_seconds);
    silence->look();
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
  const double hearing = hearing_seconds();
  const std::uint64_t begin_ns = KernelClock::now();
  for (Pause pause; !silent.empty() && seconds_since(begin_ns) < hearing; pause.sleep()) {
    while (const std::optional<Told> told = take_told()) {
      if (std::holds_alternative<EndOver>(told->message)) return;
      const bool is_of_waiting =
          std::holds_alternative<Asked>(told->message) || std::holds_alternative<Waits>(told->message);
      if (is_of_waiting || std::erase(silent, told->from) == 0) continue;
      if (const auto* heard = std::get_if<EndHeard>(&told->message)) {
        is_clean = is_clean && heard->is_clean;
      } else {  // it ends the launch itself
        first_to_end = std::min(first_to_end, told->from);
      }
    }
  }
  // Of several the lowest rank decides for all: each knows of the others, who answered by their own end.
  if (first_to_end != rank_) {
    if (!is_released(2 * hearing)) MPI_Abort(MPI_COMM_WORLD, exit_code);
    return;
  }
  if (!silent.empty() || !is_clean || has_set_aside()) MPI_Abort(MPI_COMM_WORLD, exit_code);
  for (int other = 0; other < size_; ++other) {
    if (other != rank_) tell(other, EndOver{});
  }
  for (Pause pause; has_set_aside() && seconds_since(begin_ns) < 2 * hearing;) pause.sleep();
}

void Control::confirm(const LaunchEnded& ended) const {
  tell_heard(ended.rank());
  is_released(hearing_seconds());  // if not, the rank that ended the launch has died
}

double Control::hearing_seconds() const {
  if (!patience_seconds_) return longest_hearing_seconds;
  return std::clamp(*patience_seconds_ * share_for_hearing, shortest_hearing_seconds, longest_hearing_seconds);
}

bool Control::is_released(double within_seconds) const {
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
