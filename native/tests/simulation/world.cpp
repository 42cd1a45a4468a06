#include "simulation/world.hpp"

#include <cxxabi.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <deque>
#include <map>
#include <new>
#include <queue>

#include "core/control.hpp"

#if defined(CHECKS_ADDRESSES)
#include <sanitizer/common_interface_defs.h>
#endif

namespace fabricbench::simulation {
namespace {

using Bytes = std::shared_ptr<const std::string>;

constexpr std::size_t stack_bytes = std::size_t{256} << 10U;

World* the_world = nullptr;
int the_rank = -1;

std::uint64_t processor_ns() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<std::uint64_t>(time.tv_sec) * 1'000'000'000U + static_cast<std::uint64_t>(time.tv_nsec);
}

/// What asking for the time takes, which no rank has to answer for.
std::uint64_t asking_ns() {
  std::uint64_t least = ~std::uint64_t{0};
  for (int i = 0; i < 1000; ++i) {
    const std::uint64_t begin = processor_ns();
    least = std::min(least, processor_ns() - begin);
  }
  return least;
}

/// What is caught and not yet let go of: each rank has its own, as each thread would.
struct Caught {
  void* caught = nullptr;
  unsigned int uncaught = 0;
};

void exchange_caught(Caught& own) {
  Caught now;
  void* const place = abi::__cxa_get_globals();
  std::memcpy(&now, place, sizeof now);
  std::memcpy(place, &own, sizeof own);
  own = now;
}

}  // namespace

struct World::Rank {
  ucontext_t context{};
  Caught caught{};
  std::uint64_t now_ns = 0;
  std::uint64_t sent_until_ns = 0;  // its link, out and in
  std::uint64_t received_until_ns = 0;
  std::map<int, std::map<int, std::deque<Bytes>>> inbox;  // by tag and sender, in order of their coming
  Pause* pause = nullptr;                                 // while it sleeps between two looks
  std::uint64_t next_look_ns = 0;
  std::uint64_t sleep = 0;  // which of its sleeps: what was to end an earlier one is void
  bool is_woken = false;
  bool has_news = false;
  bool is_started = false;
  bool is_done = false;
  bool hangs = false;
};

struct World::Event {
  enum class Kind { start, delivery, wake };
  std::uint64_t time_ns;
  std::uint64_t order;
  Kind kind;
  int rank;
  std::uint64_t sleep = 0;
  int from = 0;
  int tag = 0;
  Bytes bytes{};

  bool operator>(const Event& other) const {
    return time_ns != other.time_ns ? time_ns > other.time_ns : order > other.order;
  }
};

struct World::Implementation {
  Network network;
  Body body;
  std::vector<Rank> ranks;
  std::priority_queue<Event, std::vector<Event>, std::greater<>> events;
  std::uint64_t order = 0;
  std::uint64_t asking = asking_ns();
  std::uint64_t slice_began_ns = 0;
  ucontext_t scheduler{};
  Caught caught{};
  char* stacks = nullptr;
  Bytes last_sent;  // long messages that are passed on are one
#if defined(CHECKS_ADDRESSES)
  void* fake_stack = nullptr;
  const void* bottom = nullptr;
  std::size_t bottom_bytes = 0;
#endif

  Bytes shared(const std::string& bytes) {
    constexpr std::size_t short_bytes = 4096;
    if (bytes.size() < short_bytes) return std::make_shared<const std::string>(bytes);
    if (!last_sent || *last_sent != bytes) last_sent = std::make_shared<const std::string>(bytes);
    return last_sent;
  }
};

/// One rank's.
class WorldTransport final : public ControlTransport {
 public:
  WorldTransport(World& world, int rank) : world_(world), rank_(rank) {}

  int rank() const override { return rank_; }
  int size() const override { return static_cast<int>(world_.all_->ranks.size()); }

  MPI_Request post(int to, int tag, const std::string& bytes) override {
    World::Rank& rank = world_.current();
    const Network& network = world_.all_->network;
    rank.now_ns += network.call_ns;
    const auto on_link_ns = static_cast<std::uint64_t>(static_cast<double>(bytes.size()) / network.bytes_per_ns);
    rank.sent_until_ns = std::max(rank.now_ns, rank.sent_until_ns) + on_link_ns;
    World::Rank& other = world_.all_->ranks[static_cast<std::size_t>(to)];
    const std::uint64_t arrival_ns =
        std::max(rank.sent_until_ns + network.latency_ns, other.received_until_ns + on_link_ns);
    other.received_until_ns = arrival_ns;
    world_.push({.time_ns = arrival_ns,
                 .order = 0,
                 .kind = World::Event::Kind::delivery,
                 .rank = to,
                 .from = rank_,
                 .tag = tag,
                 .bytes = world_.all_->shared(bytes)});
    return MPI_REQUEST_NULL;
  }

  std::optional<int> probe(int from, int tag) override { return find(from, tag); }

  std::optional<Arrival> take(int from, int tag) override {
    const auto found = find(from, tag);
    if (!found) return std::nullopt;
    World::Rank& rank = world_.current();
    rank.now_ns += world_.all_->network.call_ns;
    auto of_tag = rank.inbox.find(tag);
    auto of_sender = of_tag->second.find(*found);
    Arrival arrival{.from = *found, .bytes = std::make_shared<std::string>(*of_sender->second.front())};
    of_sender->second.pop_front();
    if (of_sender->second.empty()) of_tag->second.erase(of_sender);
    if (of_tag->second.empty()) rank.inbox.erase(of_tag);
    return arrival;
  }

  bool is_complete(MPI_Request& /*request*/) override { return true; }
  std::uint64_t now_ns() const override { return world_.now_ns(); }

  void wait(Pause& pause, std::optional<std::uint64_t> alarm_ns) override {
    World::Rank& rank = world_.current();
    rank.next_look_ns = rank.now_ns + static_cast<std::uint64_t>(pause.next_seconds() * 1e9);
    rank.pause = &pause;
    rank.is_woken = false;
    ++rank.sleep;
    if (alarm_ns) world_.wake_at(rank_, std::max(*alarm_ns, rank.next_look_ns));
    if (std::exchange(rank.has_news, false)) world_.wake_at(rank_, rank.next_look_ns);
    world_.suspend();
  }

  [[noreturn]] void abort(int exit_code) override {
    world_.aborted_ = Aborted{.rank = rank_, .exit_code = exit_code, .at_ns = world_.now_ns()};
    world_.hang();
  }

 private:
  std::optional<int> find(int from, int tag) {
    if (tag != end_tag) world_.catch_up();
    const World::Rank& rank = world_.all_->ranks[static_cast<std::size_t>(rank_)];
    const auto of_tag = rank.inbox.find(tag);
    if (of_tag == rank.inbox.end()) return std::nullopt;
    const auto of_sender = from == MPI_ANY_SOURCE ? of_tag->second.begin() : of_tag->second.find(from);
    if (of_sender == of_tag->second.end()) return std::nullopt;
    return of_sender->first;
  }

  World& world_;
  int rank_;
};

World::World(int ranks, Network network, Body body) : all_(std::make_unique<Implementation>()) {
  all_->network = network;
  all_->body = std::move(body);
  all_->ranks.resize(static_cast<std::size_t>(ranks));
  void* const stacks = mmap(nullptr, all_->ranks.size() * stack_bytes, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (stacks == MAP_FAILED) throw std::bad_alloc();
  all_->stacks = static_cast<char*>(stacks);
}

// Ranks that hang leave what is on their stacks.
World::~World() { munmap(all_->stacks, all_->ranks.size() * stack_bytes); }

void World::run() {
  the_world = this;
  for (int rank = 0; rank < static_cast<int>(all_->ranks.size()); ++rank) {
    push({.time_ns = 0, .order = 0, .kind = Event::Kind::start, .rank = rank});
  }
  while (!all_->events.empty() && !aborted_) {
    const Event event = all_->events.top();
    all_->events.pop();
    Rank& rank = all_->ranks[static_cast<std::size_t>(event.rank)];
    if (event.kind == Event::Kind::start) {
      start(event.rank);
    } else if (event.kind == Event::Kind::delivery) {
      rank.inbox[event.tag][event.from].push_back(event.bytes);
      deliver(event.rank, event.time_ns);
    } else if (event.sleep == rank.sleep && !rank.is_done && !rank.hangs) {
      rank.now_ns = std::max(rank.now_ns, event.time_ns);
      resume(event.rank);
    }
  }
  the_world = nullptr;
}

void World::push(Event event) {
  event.order = all_->order++;
  all_->events.push(std::move(event));
}

void World::wake_at(int rank, std::uint64_t time_ns) {
  push({.time_ns = time_ns + all_->network.waking_ns,
        .order = 0,
        .kind = Event::Kind::wake,
        .rank = rank,
        .sleep = all_->ranks[static_cast<std::size_t>(rank)].sleep});
}

void World::deliver(int rank, std::uint64_t time_ns) {
  Rank& other = all_->ranks[static_cast<std::size_t>(rank)];
  other.has_news = true;
  if (other.pause == nullptr || other.is_woken) return;
  while (other.next_look_ns < time_ns) {
    other.next_look_ns += static_cast<std::uint64_t>(other.pause->next_seconds() * 1e9) + all_->network.waking_ns;
  }
  other.is_woken = true;
  other.has_news = false;
  wake_at(rank, other.next_look_ns);
}

void World::start(int rank) {
  Rank& own = all_->ranks[static_cast<std::size_t>(rank)];
  getcontext(&own.context);
  own.context.uc_stack.ss_sp = all_->stacks + static_cast<std::size_t>(rank) * stack_bytes;
  own.context.uc_stack.ss_size = stack_bytes;
  own.context.uc_link = nullptr;
  makecontext(&own.context, &World::enter, 0);
  own.is_started = true;
  resume(rank);
}

void World::enter() {
#if defined(CHECKS_ADDRESSES)
  __sanitizer_finish_switch_fiber(nullptr, &the_world->all_->bottom, &the_world->all_->bottom_bytes);
#endif
  World& world = *the_world;
  world.all_->body(std::make_unique<WorldTransport>(world, the_rank));
  world.all_->ranks[static_cast<std::size_t>(the_rank)].is_done = true;
  world.leave();
}

void World::resume(int rank) {
  Rank& own = all_->ranks[static_cast<std::size_t>(rank)];
  own.pause = nullptr;
  the_rank = rank;
  exchange_caught(own.caught);
#if defined(CHECKS_ADDRESSES)
  __sanitizer_start_switch_fiber(&all_->fake_stack, own.context.uc_stack.ss_sp, stack_bytes);
#endif
  all_->slice_began_ns = processor_ns();
  swapcontext(&all_->scheduler, &own.context);
#if defined(CHECKS_ADDRESSES)
  __sanitizer_finish_switch_fiber(all_->fake_stack, nullptr, nullptr);
#endif
  exchange_caught(own.caught);
  the_rank = -1;
}

void World::suspend() {
  Rank& own = all_->ranks[static_cast<std::size_t>(the_rank)];
#if defined(CHECKS_ADDRESSES)
  void* fake_stack = nullptr;
  __sanitizer_start_switch_fiber(&fake_stack, all_->bottom, all_->bottom_bytes);
#endif
  swapcontext(&own.context, &all_->scheduler);
#if defined(CHECKS_ADDRESSES)
  __sanitizer_finish_switch_fiber(fake_stack, &all_->bottom, &all_->bottom_bytes);
#endif
}

void World::leave() {
  for (;;) suspend();  // and nobody resumes it
}

World::Rank& World::current() {
  Rank& own = all_->ranks[static_cast<std::size_t>(the_rank)];
  const std::uint64_t now = processor_ns();
  const std::uint64_t spent = now - all_->slice_began_ns;
  own.now_ns += spent > all_->asking ? spent - all_->asking : 0;
  all_->slice_began_ns = now;
  return own;
}

void World::catch_up() {
  Rank& own = current();
  if (all_->events.empty() || all_->events.top().time_ns >= own.now_ns) return;
  ++own.sleep;
  push({.time_ns = own.now_ns, .order = 0, .kind = Event::Kind::wake, .rank = the_rank, .sleep = own.sleep});
  suspend();
}

std::uint64_t World::now_ns() { return current().now_ns; }

void World::spend(std::uint64_t duration_ns) {
  Rank& own = current();
  ++own.sleep;
  wake_at(the_rank, own.now_ns + duration_ns);
  suspend();
}

void World::charge(std::uint64_t duration_ns) { current().now_ns += duration_ns; }

void World::hang() {
  all_->ranks[static_cast<std::size_t>(the_rank)].hangs = true;
  leave();
}

std::vector<int> World::left() const {
  std::vector<int> ranks;
  for (std::size_t rank = 0; rank < all_->ranks.size(); ++rank) {
    if (!all_->ranks[rank].is_done) ranks.push_back(static_cast<int>(rank));
  }
  return ranks;
}

std::optional<int> running_rank() {
  if (the_rank < 0) return std::nullopt;
  return the_rank;
}

}  // namespace fabricbench::simulation

// Ranks sleep in their own time.
extern "C" int nanosleep(const timespec* duration, timespec* left) {
  using namespace fabricbench::simulation;
  if (!running_rank()) return static_cast<int>(syscall(SYS_nanosleep, duration, left));
  the_world->spend(static_cast<std::uint64_t>(duration->tv_sec) * 1'000'000'000U +
                   static_cast<std::uint64_t>(duration->tv_nsec));
  return 0;
}
