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

/// What is said of an end, if it is that of a rank of the launch. Throws ControlError.
template <Message M>
M of_a_rank(M message, int size) {
  if (message.ender >= 0 && message.ender < size) return message;
  throw ControlError("rank " + std::to_string(message.ender) + " is said to end a launch of " + std::to_string(size) +
                     " ranks");
}

/// What a rank and those below it said. Throws ControlError where it is not as many.
Gathered gathered_from(const Branch& branch, std::string_view message) {
  const std::string who = "what rank " + std::to_string(branch.root) + " gathered ";
  try {
    Gathered gathered = decode<Gathered>(open_envelope(message));
    if (gathered.all.size() == branch.size()) return gathered;
    throw ControlError("it needs " + std::to_string(branch.size()) + " ranks, found " +
                       std::to_string(gathered.all.size()));
  } catch (const ControlError& error) {
    throw ControlError(who + "cannot be read: " + error.what());
  }
}

}  // namespace

EndNotice EndNotice::unpack(std::string_view payload) {
  const auto [ender, rest] = unpack_numbered(payload);
  const auto [exit_code, cause] = unpack_numbered(rest);
  return {.ender = ender, .exit_code = exit_code, .cause = std::string(cause)};
}

std::string Gathered::pack() const {
  std::string payload;
  for (const std::string& one : all) append_part(payload, one);
  return payload;
}

Gathered Gathered::unpack(std::string_view payload) {
  Gathered gathered;
  while (!payload.empty()) gathered.all.emplace_back(fabricbench::take_part(payload));
  return gathered;
}

double Pause::next_seconds() {
  const double seconds = std::clamp(waited_seconds_ * share_of_waiting, shortest_sleep_seconds, longest_sleep_seconds);
  waited_seconds_ += seconds;
  return seconds;
}

void Pause::sleep() {
  const timespec duration{0, static_cast<long>(next_seconds() * 1e9)};
  nanosleep(&duration, nullptr);
}

Control::Control(std::unique_ptr<ControlTransport> transport, std::size_t part_bytes)
    : transport_(std::move(transport)),
      part_bytes_(part_bytes),
      rank_(transport_->rank()),
      size_(transport_->size()),
      lowest_ender_(size_) {}

double Control::seconds_since(std::uint64_t begin_ns) const { return ns_to_seconds(transport_->now_ns() - begin_ns); }

bool Control::is_finished(MPI_Request& request, std::optional<double> patience_seconds) const {
  Pause pause;
  std::uint64_t begin_ns = 0;
  for (;;) {
    if (transport_->is_complete(request)) return true;
    if (has_ended()) return false;
    if (begin_ns == 0) begin_ns = transport_->now_ns();
    if (patience_seconds && seconds_since(begin_ns) > *patience_seconds) return false;
    transport_->wait(pause, std::nullopt);
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
    finish_or_set_aside(transport_->post(to, tag, *text), text);
  }
}

std::optional<std::string> Control::take_part(int from, int tag) const {
  std::optional<Arrival> arrival = transport_->take(from, tag);
  if (!arrival) return std::nullopt;
  if (!is_finished(arrival->request, std::nullopt)) {
    set_aside(arrival->request, arrival->bytes);  // MPI still writes into it
    look_for_end();
  }
  return std::move(*arrival->bytes);
}

void Control::look_for_end() const {
  if (has_ended()) throw LaunchEnded(*ended_);
}

bool Control::has_ended() const {
  while (!ended_) {
    const std::optional<Told> told = take_told();
    if (!told) return false;
    if (const auto* end = std::get_if<EndNotice>(&told->message)) {
      pass_on(*end);
      ended_.emplace(end->ender, end->exit_code, end->cause);
    }
    if (std::holds_alternative<Asked>(told->message)) tell(told->from, Waits{});
    if (std::holds_alternative<Waits>(told->message)) answered_ = told->from;
  }
  return true;
}

std::optional<Control::Told> Control::take_told() const {
  std::optional<Arrival> arrival = transport_->take(MPI_ANY_SOURCE, end_tag);
  if (!arrival) return std::nullopt;
  while (!transport_->is_complete(arrival->request)) {  // short, and there already
  }
  Told told{.from = arrival->from, .message = EndOver{}};
  try {
    const Envelope envelope = open_envelope(*arrival->bytes);
    if (envelope.type == MessageType::heard) {
      told.message = of_a_rank(decode<EndHeard>(envelope), size_);
    } else if (envelope.type == MessageType::asked) {
      told.message = Asked{};
    } else if (envelope.type == MessageType::waits) {
      told.message = Waits{};
    } else if (envelope.type == MessageType::over) {
      told.message = of_a_rank(decode<EndOver>(envelope), size_);
    } else {
      told.message = of_a_rank(decode<EndNotice>(envelope), size_);
    }
  } catch (const ControlError& error) {
    told.message = EndNotice{.ender = told.from, .exit_code = 1, .cause = error.what()};
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
      transport_->wait(pause, std::nullopt);
    }
    last = part->size();
    *message += *part;
  }
  return message;
}

std::optional<int> Control::who_has_sent(int tag) const {
  look_for_end();
  return transport_->probe(MPI_ANY_SOURCE, tag);
}

/// That of one rank while another waits for it.
class Control::PeerTimeout {
 public:
  PeerTimeout(const Control& control, int of, double patience_seconds)
      : control_(control),
        of_(of),
        answer_seconds_(std::min(longest_answer_seconds, patience_seconds * share_for_answer)),
        // Going up a tree of ranks, where lower ones wait for higher ones, comes before going down.
        first_seconds_(patience_seconds + (of < control.rank_ ? answer_seconds_ : 0)),
        last_seconds_(patience_seconds * share_where_it_waits),
        begin_ns_(control.transport_->now_ns()) {}

  /// Throws ControlError where it has lasted too long.
  void look() {
    const double waited = control_.seconds_since(begin_ns_);
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

  /// When to look again though nothing comes.
  std::uint64_t next_ns() const {
    double seconds = first_seconds_;
    if (asked_at_) seconds = control_.answered_ == of_ ? last_seconds_ : *asked_at_ + answer_seconds_;
    return begin_ns_ + seconds_to_ns(seconds) + 1;
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
  std::uint64_t begin_ns_;
  std::optional<double> asked_at_;
};

std::string Control::wait_for(int from, int tag, std::optional<double> patience_seconds) const {
  Pause pause;
  std::optional<PeerTimeout> timeout;
  for (;;) {
    if (auto message = try_receive(from, tag)) return *std::move(message);
    if (patience_seconds && !timeout) timeout.emplace(*this, from, *patience_seconds);
    transport_->wait(pause, timeout ? std::optional(timeout->next_ns()) : std::nullopt);
    if (timeout) timeout->look();
  }
}

std::string Control::receive(int from, int tag) const { return wait_for(from, tag, patience_seconds_); }

std::string Control::receive_patiently(int from, int tag) const { return wait_for(from, tag, std::nullopt); }

std::pair<int, std::string> Control::receive_of_any(int tag) const {
  for (Pause pause;;) {
    if (const std::optional<int> from = who_has_sent(tag)) {
      if (auto message = try_receive(*from, tag)) return {*from, *std::move(message)};
    }
    transport_->wait(pause, std::nullopt);
  }
}

TreePlace Control::place_below(int root) const {
  return {static_cast<std::size_t>(size_), static_cast<std::size_t>((rank_ - root + size_) % size_)};
}

int Control::rank_below(int root, std::size_t member) const {
  return static_cast<int>((member + static_cast<std::size_t>(root)) % static_cast<std::size_t>(size_));
}

void Control::pass_on(const EndNotice& end) const {
  const auto [ending, is_new] = endings_.try_emplace(end.ender);
  if (!is_new) return;
  for (const Branch& branch : place_below(end.ender).branches()) {
    const int below = rank_below(end.ender, branch.root);
    ending->second.silent.push_back(below);
    tell(below, end);  // who never takes it is ended by who ends the launch
  }
}

void Control::pass_on(const EndOver& over) const {
  for (const Branch& branch : place_below(over.ender).branches()) tell(rank_below(over.ender, branch.root), over);
}

int Control::lowest_ender() const {
  return endings_.empty() ? lowest_ender_ : std::min(lowest_ender_, endings_.begin()->first);
}

void Control::tell_heard() const {
  for (auto& [ender, ending] : endings_) {
    if (ending.is_told || ender == rank_ || !ending.silent.empty()) continue;
    ending.is_told = true;
    const int above = rank_below(ender, place_below(ender).parent().value());
    tell(above,
         EndHeard{.ender = ender, .lowest_ender = lowest_ender(), .is_clean = ending.is_clean && !has_set_aside()});
  }
}

bool Control::is_over() const {
  while (const std::optional<Told> told = take_told()) {
    if (const auto* end = std::get_if<EndNotice>(&told->message)) pass_on(*end);
    // Who asks has not heard yet, where the news was to come by way of one that hangs, and is not to blame this rank.
    if (std::holds_alternative<Asked>(told->message)) tell(told->from, Waits{});
    if (const auto* heard = std::get_if<EndHeard>(&told->message)) {
      Ending& ending = endings_[heard->ender];
      std::erase(ending.silent, told->from);
      ending.is_clean = ending.is_clean && heard->is_clean;
      lowest_ender_ = std::min(lowest_ender_, int{heard->lowest_ender});
    }
    if (const auto* over = std::get_if<EndOver>(&told->message)) {
      pass_on(*over);
      return true;
    }
  }
  tell_heard();
  return false;
}

void Control::end_all(int exit_code, std::string_view cause) {
  if (ended_) return confirm(*ended_);  // heard where nothing could be thrown
  const EndNotice end{.ender = rank_, .exit_code = exit_code, .cause = std::string(cause)};
  pass_on(end);
  ended_.emplace(rank_, exit_code, end.cause);
  const Ending& own = endings_[rank_];
  const double hearing = hearing_seconds();
  const std::uint64_t begin_ns = transport_->now_ns();
  for (Pause pause; seconds_since(begin_ns) < hearing;) {
    if (is_over()) return;
    if (own.silent.empty()) break;
    transport_->wait(pause, begin_ns + seconds_to_ns(hearing) + 1);
  }
  // Of several the lowest rank decides for all: each knows of the others, by their own end or from who passed it on.
  if (lowest_ender() != rank_) {
    if (!is_released(2 * hearing)) transport_->abort(exit_code);
    return;
  }
  if (!own.silent.empty() || !own.is_clean || has_set_aside()) transport_->abort(exit_code);
  pass_on(EndOver{.ender = rank_});
  for (Pause pause; has_set_aside() && seconds_since(begin_ns) < 2 * hearing;) transport_->wait(pause, std::nullopt);
}

void Control::confirm(const LaunchEnded& /*ended*/) const {
  is_released(hearing_seconds());  // if not, the rank that ended the launch has died
}

double Control::hearing_seconds() const {
  if (!patience_seconds_) return longest_hearing_seconds;
  return std::clamp(*patience_seconds_ * share_for_hearing, shortest_hearing_seconds, longest_hearing_seconds);
}

bool Control::is_released(double within_seconds) const {
  const std::uint64_t begin_ns = transport_->now_ns();
  const std::uint64_t end_ns = begin_ns + seconds_to_ns(within_seconds) + 1;
  for (Pause pause; seconds_since(begin_ns) < within_seconds; transport_->wait(pause, end_ns)) {
    if (is_over()) return true;
  }
  return false;
}

template <Message M>
void Control::tell(int to, const M& message) const {
  auto bytes = std::make_shared<std::string>(encode(message));
  const MPI_Request request = transport_->post(to, end_tag, *bytes);
  set_aside(request, std::move(bytes));
}

std::string Control::broadcast(std::string bytes, int tag) const {
  const TreePlace place = place_below(0);
  if (place.parent()) bytes = receive(static_cast<int>(*place.parent()), tag);
  for (const Branch& branch : place.branches()) send(static_cast<int>(branch.root), tag, bytes);
  return bytes;
}

std::vector<std::string> Control::gather(std::string_view bytes, int tag) const {
  const TreePlace place = place_below(0);
  Gathered gathered;
  gathered.all.emplace_back(bytes);
  for (const Branch& branch : place.branches()) {
    std::string message = receive(static_cast<int>(branch.root), tag);
    if (branch.size() == 1) {  // as it was said
      gathered.all.push_back(std::move(message));
      continue;
    }
    for (std::string& one : gathered_from(branch, message).all) gathered.all.push_back(std::move(one));
  }
  if (!place.parent()) return std::move(gathered.all);
  send(static_cast<int>(*place.parent()), tag, place.branches().empty() ? bytes : encode(gathered));
  return {};
}

}  // namespace fabricbench
