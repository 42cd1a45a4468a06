#include "core/counters.hpp"

#include <fcntl.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <iterator>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>
#include <span>
#include <system_error>
#include <utility>

#include "base/clock.hpp"
#include "base/folder.hpp"
#include "base/json_text.hpp"

namespace fabricbench {
namespace {

namespace fs = std::filesystem;

std::uint64_t nanoseconds(const timeval& time) {
  return static_cast<std::uint64_t>(time.tv_sec) * 1'000'000'000U + static_cast<std::uint64_t>(time.tv_usec) * 1'000U;
}

/// What getrusage(2) tells of all threads of the process.
Counts usage_of_process() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto number = [](long count) { return static_cast<std::uint64_t>(count); };
  return {
      {Counter::user_ns, nanoseconds(usage.ru_utime)},       {Counter::system_ns, nanoseconds(usage.ru_stime)},
      {Counter::voluntary_switches, number(usage.ru_nvcsw)}, {Counter::involuntary_switches, number(usage.ru_nivcsw)},
      {Counter::minor_faults, number(usage.ru_minflt)},      {Counter::major_faults, number(usage.ru_majflt)}};
}

/// The counters that an event may give: with the kernel's part, and without.
struct CountersOfEvent {
  Counter whole;
  Counter user;
};

CountersOfEvent counters_of(HardwareEvent event) {
  switch (event) {
    case HardwareEvent::cycles:
      return {Counter::cycles, Counter::user_cycles};
    case HardwareEvent::instructions:
      return {Counter::instructions, Counter::user_instructions};
    case HardwareEvent::cache_misses:
      return {Counter::cache_misses, Counter::user_cache_misses};
    case HardwareEvent::migrations:
      return {Counter::migrations, Counter::migrations};
  }
  return {};
}

Uncounted reason_of(int error) { return error == EACCES || error == EPERM ? Uncounted::forbidden : Uncounted::absent; }

/// The numbers of /proc/net/snmp and netstat (proc_pid_net(5)): in which line, and under which name. What has the same
/// counter is added up.
struct NamedNumber {
  Counter counter;
  std::string_view line;
  std::string_view name;
};
constexpr std::array in_snmp{
    NamedNumber{Counter::tcp_sent, "Tcp:", "OutSegs"},
    NamedNumber{Counter::tcp_received, "Tcp:", "InSegs"},
    NamedNumber{Counter::tcp_retransmissions, "Tcp:", "RetransSegs"},
    NamedNumber{Counter::udp_receive_drops, "Udp:", "RcvbufErrors"},
    NamedNumber{Counter::udp_send_drops, "Udp:", "SndbufErrors"},
    NamedNumber{Counter::ip_drops, "Ip:", "InDiscards"},
    NamedNumber{Counter::ip_drops, "Ip:", "OutDiscards"},
    NamedNumber{Counter::ip_drops, "Ip:", "ReasmFails"},
};
constexpr std::array in_netstat{
    NamedNumber{Counter::tcp_timeouts, "TcpExt:", "TCPTimeouts"},
    NamedNumber{Counter::tcp_delayed_acks, "TcpExt:", "DelayedACKs"},
    NamedNumber{Counter::tcp_drops, "TcpExt:", "TCPBacklogDrop"},
    NamedNumber{Counter::tcp_drops, "TcpExt:", "TCPRcvQDrop"},
    NamedNumber{Counter::tcp_drops, "TcpExt:", "PruneCalled"},
};

/// Those of a network interface in sysfs (ABI/testing/sysfs-class-net-statistics).
struct PortNumber {
  Counter counter;
  std::string_view name;
};
constexpr std::array of_port{
    PortNumber{Counter::port_receive_drops, "rx_dropped"}, PortNumber{Counter::port_receive_drops, "rx_missed_errors"},
    PortNumber{Counter::port_send_drops, "tx_dropped"},    PortNumber{Counter::port_errors, "rx_errors"},
    PortNumber{Counter::port_errors, "tx_errors"},
};

/// What /proc/stat tells (proc_stat(5)).
constexpr std::array of_machine{
    Counter::busy_ns,       Counter::idle_ns,          Counter::interrupt_ns, Counter::softirq_ns,
    Counter::stolen_ns,     Counter::interrupts,       Counter::softirqs,     Counter::receive_softirqs,
    Counter::send_softirqs, Counter::context_switches,
};

/// Lines of a text, one after the other.
class Lines {
 public:
  explicit Lines(std::string_view text) : rest_(text) {}
  std::optional<std::string_view> next() {
    if (rest_.empty()) return std::nullopt;
    const std::size_t end = rest_.find('\n');
    const std::string_view line = rest_.substr(0, end);
    rest_.remove_prefix(end == std::string_view::npos ? rest_.size() : end + 1);
    return line;
  }

 private:
  std::string_view rest_;
};

/// Words of a line, separated by spaces.
class Words {
 public:
  explicit Words(std::string_view line) : rest_(line) {}
  std::optional<std::string_view> next() {
    rest_.remove_prefix(std::min(rest_.find_first_not_of(' '), rest_.size()));
    if (rest_.empty()) return std::nullopt;
    const std::size_t end = std::min(rest_.find(' '), rest_.size());
    const std::string_view word = rest_.substr(0, end);
    rest_.remove_prefix(end);
    return word;
  }
  std::optional<std::uint64_t> next_number() {
    const auto word = next();
    if (!word) return std::nullopt;
    std::uint64_t number = 0;
    const auto [end, error] = std::from_chars(word->data(), word->data() + word->size(), number);
    if (error != std::errc{}) return std::nullopt;
    return number;
  }

 private:
  std::string_view rest_;
};

/// Where the processors' time has gone, in clock ticks: the first line of /proc/stat.
void note_processors(Words words, Counts& counts) {
  enum Column : std::size_t { user, nice, system, idle, iowait, irq, softirq, steal, columns };
  std::array<std::uint64_t, columns> ticks{};
  for (std::uint64_t& one : ticks) {
    const auto number = words.next_number();
    if (!number) return;
    one = *number;
  }
  const auto tick_ns = 1'000'000'000U / static_cast<std::uint64_t>(sysconf(_SC_CLK_TCK));
  counts[Counter::busy_ns] = tick_ns * (ticks[user] + ticks[nice] + ticks[system] + ticks[irq] + ticks[softirq]);
  counts[Counter::idle_ns] = tick_ns * (ticks[idle] + ticks[iowait]);
  counts[Counter::interrupt_ns] = tick_ns * ticks[irq];
  counts[Counter::softirq_ns] = tick_ns * ticks[softirq];
  counts[Counter::stolen_ns] = tick_ns * ticks[steal];
}

/// The total and those of the vectors of the network; in the order of the kernel's list HI, TIMER, NET_TX, NET_RX.
void note_softirqs(Words words, Counts& counts) {
  const auto total = words.next_number();
  words.next();
  words.next();
  const auto send = words.next_number();
  const auto receive = words.next_number();
  if (!total || !send || !receive) return;
  counts[Counter::softirqs] = *total;
  counts[Counter::send_softirqs] = *send;
  counts[Counter::receive_softirqs] = *receive;
}

/// The total and those of the fabric's adapter, by their numbers in ascending order.
void note_interrupts(Words words, const std::vector<std::size_t>& of_device, Counts& counts) {
  const auto total = words.next_number();
  if (!total) return;
  counts[Counter::interrupts] = *total;
  if (of_device.empty()) return;
  std::uint64_t sum = 0;
  std::size_t at = 0;
  for (const std::size_t number : of_device) {
    for (; at < number; ++at) words.next();
    const auto count = words.next_number();
    if (!count) return;
    ++at;
    sum += *count;
  }
  counts[Counter::device_interrupts] = sum;
}

/// The numbers of the interrupts of an interface's adapter (ABI/testing/sysfs-bus-pci, msi_irqs): of its own function,
/// or of the one below a virtual device. None of an interface that no adapter is below.
std::vector<std::size_t> interrupts_of(const fs::path& interface) {
  std::error_code error;
  const fs::path device = fs::canonical(interface / "device", error);
  if (error) return {};
  std::set<std::size_t> found;
  for (const fs::path& place : {device, device.parent_path()}) {
    for (const std::string& name : names_in(place / "msi_irqs")) {
      if (const auto number = Words(name).next_number()) found.insert(*number);
    }
    if (!found.empty()) break;
  }
  return {found.begin(), found.end()};
}

/// Do something and note how long it took.
template <class Action>
void timed(Counts& counts, Action action) {
  const std::uint64_t begin = Clock::now();
  action();
  const std::uint64_t end = Clock::now();
  counts[Counter::elapsed_ns] = end;
  counts[Counter::reading_ns] = end - begin;
}

void note_missing(std::vector<NotCounted>& all, const Counts& found, std::vector<Counter> wanted, CounterFile& file) {
  std::erase_if(wanted, [&](Counter counter) { return found.contains(counter); });
  std::ranges::sort(wanted);
  wanted.erase(std::ranges::unique(wanted).begin(), wanted.end());
  if (wanted.empty()) return;
  const std::string what = file.error() == 0 ? "it does not tell" : std::strerror(file.error());
  all.push_back({.counters = std::move(wanted), .why = reason_of(file.error()), .detail = file.name() + ": " + what});
}

}  // namespace

Counts counts_between(const Counts& before, const Counts& after) {
  Counts counts;
  for (const auto& [counter, count] : after) {
    const auto start = before.find(counter);
    if (counter == Counter::reading_ns) {  // is itself a time
      counts[counter] = count + (start == before.end() ? 0 : start->second);
    } else if (counter == Counter::elapsed_ns && start != before.end()) {
      const auto reading = after.find(Counter::reading_ns);
      counts[counter] = count - start->second - (reading == after.end() ? 0 : reading->second);
    } else if (start != before.end() && count >= start->second) {
      counts[counter] = count - start->second;
    }
  }
  return counts;
}

void add_counts(Counts& total, const Counts& more) {
  for (const auto& [counter, count] : more) total[counter] += count;
}

RankCounters::Reading RankCounters::read() const {
  Reading reading;
  timed(reading.counts, [&] {
    reading.counts = usage_of_process();
    if (events_) reading.events = events_->read();
  });
  return reading;
}

Counts RankCounters::between(const Reading& before, const Reading& after) const {
  Counts counts = counts_between(before.counts, after.counts);
  for (const auto& [event, reading] : after.events) {
    const auto start = before.events.find(event);
    if (start == before.events.end()) continue;
    const auto [whole, user] = counters_of(event);
    if (const auto count = counted_between(start->second, reading)) {
      counts[events_ && events_->excludes_kernel(event) ? user : whole] = *count;
    }
  }
  return counts;
}

std::vector<NotCounted> RankCounters::not_counted() const {
  if (!events_) {
    return {{.counters = {Counter::migrations, Counter::cycles, Counter::instructions, Counter::cache_misses},
             .why = Uncounted::unasked,
             .detail = "perf_event_open: not called"}};
  }
  std::map<int, std::vector<Counter>> by_error;
  for (const auto& [event, error] : events_->refused()) by_error[error].push_back(counters_of(event).whole);
  for (const auto event : {HardwareEvent::cycles, HardwareEvent::instructions, HardwareEvent::cache_misses}) {
    if (events_->excludes_kernel(event)) by_error[EACCES].push_back(counters_of(event).whole);
  }
  std::vector<NotCounted> all;
  for (auto& [error, counters] : by_error) {
    std::string detail = std::string("perf_event_open: ") + std::strerror(error);
    if (const auto level = perf_event_paranoid(); level && reason_of(error) == Uncounted::forbidden) {
      detail += "; kernel.perf_event_paranoid is " + std::to_string(*level);
    }
    all.push_back({.counters = std::move(counters), .why = reason_of(error), .detail = std::move(detail)});
  }
  return all;
}

CounterFile::CounterFile(const fs::path& path)
    : name_(path.string()), descriptor_(open(path.c_str(), O_RDONLY | O_CLOEXEC)) {
  if (descriptor_.get() < 0) error_ = errno;
}

std::string_view CounterFile::text() {
  constexpr std::size_t some = 16 * 1024;
  if (descriptor_.get() < 0) return {};
  if (text_.empty()) text_.resize(some);
  // These files are made anew for each reading from their begin on, and given as far as there is room for them.
  for (;;) {
    const ssize_t size = pread(descriptor_.get(), text_.data(), text_.size(), 0);
    if (size < 0 && error_ == 0) error_ = errno;
    if (size < std::ssize(text_))
      return std::string_view(text_).substr(0, static_cast<std::size_t>(std::max(size, ssize_t{0})));
    text_.resize(2 * text_.size());
  }
}

HostCounters::HostCounters(const std::string& interface, const fs::path& root)
    : processors_(root / "proc/stat"),
      device_interrupts_(interface.empty() ? std::vector<std::size_t>{}
                                           : interrupts_of(root / "sys/class/net" / interface)) {
  const auto open = [&](const char* path, std::span<const NamedNumber> wanted) {
    NamedValues& values = network_.emplace_back(CounterFile(root / path), std::vector<Place>{});
    Lines lines(values.file.text());
    std::size_t number = 0;
    for (auto line = lines.next(); line; line = lines.next(), ++number) {
      if (number % 2 == 1) continue;
      Words words(*line);
      const auto head = words.next();
      std::size_t field = 0;
      for (auto word = words.next(); word; word = words.next(), ++field) {
        for (const NamedNumber& one : wanted) {
          if (one.line == head && one.name == *word) values.places.push_back({one.counter, number + 1, field});
        }
      }
    }
  };
  open("proc/thread-self/net/snmp", in_snmp);
  open("proc/thread-self/net/netstat", in_netstat);
  if (interface.empty()) return;
  for (const PortNumber& one : of_port) {
    port_.emplace_back(one.counter, CounterFile(root / "sys/class/net" / interface / "statistics" / one.name));
  }
}

void HostCounters::read_named(NamedValues& from, Counts& counts) {
  Lines lines(from.file.text());
  std::size_t number = 0;
  auto place = from.places.begin();
  for (auto line = lines.next(); line && place != from.places.end(); line = lines.next(), ++number) {
    if (number != place->line) continue;
    Words words(*line);
    words.next();
    for (std::size_t field = 0; place != from.places.end() && place->line == number; ++place) {
      for (; field < place->field; ++field) words.next();
      if (const auto count = words.next_number()) counts[place->counter] += *count;
      ++field;
    }
  }
}

Counts HostCounters::read_host() {
  Counts counts;
  timed(counts, [&] {
    for (NamedValues& values : network_) read_named(values, counts);
    for (auto& [counter, file] : port_) {
      if (const auto count = Words(file.text()).next_number()) counts[counter] += *count;
    }
  });
  return counts;
}

Counts HostCounters::read_machine() {
  Counts counts;
  timed(counts, [&] {
    Lines lines(processors_.text());
    for (auto line = lines.next(); line; line = lines.next()) {
      Words words(*line);
      const auto head = words.next();
      if (head == "cpu") note_processors(words, counts);
      if (head == "intr") note_interrupts(words, device_interrupts_, counts);
      if (head == "softirq") note_softirqs(words, counts);
      if (head != "ctxt") continue;
      if (const auto count = words.next_number()) counts[Counter::context_switches] = *count;
    }
  });
  return counts;
}

std::vector<NotCounted> HostCounters::not_counted() {
  std::vector<NotCounted> all;
  const Counts host = read_host();
  const auto of = [](const auto& table) {
    std::vector<Counter> counters;
    for (const auto& one : table) counters.push_back(one.counter);
    return counters;
  };
  note_missing(all, host, of(in_snmp), network_[0].file);
  note_missing(all, host, of(in_netstat), network_[1].file);
  for (auto& [counter, file] : port_) note_missing(all, host, {counter}, file);
  const Counts machine = read_machine();
  note_missing(all, machine, {of_machine.begin(), of_machine.end()}, processors_);
  return all;
}

std::vector<NotCounted> LaunchCounters::not_counted() {
  std::vector<NotCounted> all = rank.not_counted();
  std::ranges::move(host.not_counted(), std::back_inserter(all));
  return all;
}

nlohmann::json to_record(const std::vector<NotCounted>& not_counted) {
  nlohmann::json all = nlohmann::json::array();
  for (const NotCounted& one : not_counted) {
    nlohmann::json counters = nlohmann::json::array();
    for (const Counter counter : one.counters) counters.push_back(name_of(counter));
    all.push_back({{"counters", counters}, {"why", name_of(one.why)}, {"detail", one.detail}});
  }
  return all;
}

void UncountedOfRanks::add(int rank, const nlohmann::json& not_counted) {
  for (const nlohmann::json& one : not_counted) {
    Ranks& ranks = by_text_.try_emplace(json_text(one), Ranks{.first = rank}).first->second;
    ++ranks.count;
  }
}

nlohmann::json UncountedOfRanks::to_record() const {
  nlohmann::json all = nlohmann::json::array();
  for (const auto& [text, ranks] : by_text_) {
    nlohmann::json one = parse_json(text);
    one["first_rank"] = ranks.first;
    one["ranks"] = ranks.count;
    all.push_back(std::move(one));
  }
  return all;
}

}  // namespace fabricbench
