// Connections of layer rdma between two devices of one process, over a library that holds them to what adapters demand:
// what of a cell's parameters reaches a queue pair, that nothing is written or read where memory is gone, what is said
// where the peer is gone, and what becomes of paths that end.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/watchdog.hpp"
#include "transport/rdma_atomic.hpp"
#include "transport/rdma_read.hpp"
#include "transport/rdma_send.hpp"
#include "transport/rdma_write.hpp"
#include "transport/rdma_write_poll.hpp"
#include "verbs/fake_library.hpp"

namespace fabricbench {
namespace {

namespace fs = std::filesystem;
using verbs::fake::ledger;

constexpr std::size_t message_bytes = 1024;

class OverVerbs : public testing::Test {
 protected:
  void SetUp() override {
    root_ = fs::path(testing::TempDir()) / ("verbs." + std::to_string(getpid()));
    const std::string port = std::string("sys/class/infiniband/") + verbs::fake::device_name + "/ports/1/";
    write(std::string("sys/class/infiniband/") + verbs::fake::device_name + "/node_type", "1: CA");
    write(port + "link_layer", "Ethernet");
    write(port + "state", "4: ACTIVE");
    write(port + "gids/1", "0000:0000:0000:0000:0000:ffff:0a01:0001");
    write(port + "gid_attrs/types/1", "RoCE v2");
    write(port + "gid_attrs/ndevs/1", "h1");
    ledger() = {};
  }
  void TearDown() override {
    EXPECT_EQ(ledger().faults, std::vector<std::string>{});
    EXPECT_EQ(ledger().things, 0) << "not all is given back";
    fs::remove_all(root_);
  }
  /// The version of RoCE of adapters that are opened from now on.
  void speak(const std::string& version) const {
    write(std::string("sys/class/infiniband/") + verbs::fake::device_name + "/ports/1/gid_attrs/types/1", version);
  }
  std::shared_ptr<Adapter> adapter() const {
    return Adapter::open({.interface = {}, .rdma = {.device = verbs::fake::device_name}}, root_);
  }

 private:
  void write(const std::string& path, const std::string& text) const {
    fs::create_directories((root_ / path).parent_path());
    std::ofstream(root_ / path) << text << '\n';
  }

  fs::path root_;
};

/// Two paths that have met, each of a device of its own.
template <class Path, class Shared>
struct Ends {
  explicit Ends(const std::shared_ptr<Adapter>& one, const std::shared_ptr<Adapter>& other,
                const RdmaParameters& parameters = {})
      : near_device(std::make_shared<Shared>(one)),
        far_device(std::make_shared<Shared>(other)),
        near(near_device, {.token = 1, .peer_rank = 1, .is_first = true}, parameters),
        far(far_device, {.token = 1, .peer_rank = 0}, parameters) {
    near.meet(far.address());
    far.meet(near.address());
  }
  /// What each does while it waits for the other.
  void move_on() {
    near_device->move_on();
    far_device->move_on();
  }

  std::shared_ptr<Shared> near_device;
  std::shared_ptr<Shared> far_device;
  Path near;
  Path far;
};
template <class Transfer, Receive way = Receive::polling>
using Connected = Ends<ConnectedPath<way, Transfer>, Connections<Transfer>>;
template <class Access, Receive way = Receive::polling>
using OneSided = Ends<OneSidedPath<way, Access>, OneSidedConnections>;

void fill(std::span<std::byte> message, std::size_t number) {
  for (std::size_t i = 0; i < message.size(); ++i) message[i] = static_cast<std::byte>(number + i);
}
bool is_filled(std::span<const std::byte> message, std::size_t number) {
  for (std::size_t i = 0; i < message.size(); ++i) {
    if (message[i] != static_cast<std::byte>(number + i)) return false;
  }
  return true;
}

template <class Transfer, Receive way>
void pass_messages(const std::shared_ptr<Adapter>& one, const std::shared_ptr<Adapter>& other, std::size_t bytes) {
  constexpr std::size_t slots = 64;
  std::vector<MessageBuffer> out;
  std::vector<MessageBuffer> in;  // outlives the path that has receives posted there
  Connected<Transfer, way> ends(one, other);
  for (std::size_t i = 0; i < slots; ++i) {
    out.push_back(one->allocate(bytes, MemoryKind::plain));
    in.push_back(other->allocate(bytes, MemoryKind::plain));
    ends.far.post_receive(i, in[i].span());
  }
  for (std::size_t number = 0; number < 10 * slots; ++number) {  // each counter goes round several times
    const std::size_t slot = number % slots;
    ends.near.wait(slot);
    fill(out[slot].span(), number);
    ends.near.post_send(slot, out[slot].span());
    ends.far.wait(slot);
    ASSERT_TRUE(is_filled(in[slot].span(), number)) << number;
    ends.far.post_receive(slot, in[slot].span());
    ends.move_on();
  }
  for (std::size_t slot = 0; slot < slots; ++slot) ends.near.wait(slot);
}

template <class Transfer, Receive way>
void pass_round_trips(const std::shared_ptr<Adapter>& one, const std::shared_ptr<Adapter>& other, std::size_t bytes) {
  MessageBuffer question = one->allocate(bytes, MemoryKind::plain);
  MessageBuffer asked = other->allocate(bytes, MemoryKind::plain);
  MessageBuffer answer = one->allocate(bytes, MemoryKind::plain);
  Connected<Transfer, way> ends(one, other);
  for (std::size_t number = 0; number < 1000; ++number) {
    fill(question.span(), number);
    ends.far.prepost(asked.span());
    ends.near.prepost(answer.span());
    ends.move_on();
    ends.near.send(question.span());
    ASSERT_TRUE(ends.far.receive_preposted());
    ends.far.send(asked.span());
    ASSERT_TRUE(ends.near.receive_preposted());
    ASSERT_TRUE(is_filled(answer.span(), number)) << number;
  }
}

template <class Action>
std::string failure_of(Action action) {
  try {
    action();
  } catch (const Failure& failure) {
    return failure.what();
  }
  return "it did not fail";
}

TEST_F(OverVerbs, MessagesArriveAsTheyWereSentThroughEveryTwoSidedDoor) {
  for (const std::size_t bytes : {std::size_t{1}, std::size_t{64}, std::size_t{65}, message_bytes}) {
    const std::shared_ptr<Adapter> one = adapter();
    const std::shared_ptr<Adapter> other = adapter();
    pass_messages<SendTransfer, Receive::polling>(one, other, bytes);
    pass_messages<SendTransfer, Receive::blocking>(one, other, bytes);
    pass_messages<WriteTransfer, Receive::polling>(one, other, bytes);
    pass_messages<WriteTransfer, Receive::blocking>(one, other, bytes);
    pass_messages<WritePollTransfer, Receive::polling>(one, other, bytes);
    pass_round_trips<SendTransfer, Receive::blocking>(one, other, bytes);
    pass_round_trips<WriteTransfer, Receive::polling>(one, other, bytes);
    pass_round_trips<WritePollTransfer, Receive::polling>(one, other, bytes);
  }
  EXPECT_EQ(ledger().not_ready, 0) << "a message came before its receive";
}

TEST_F(OverVerbs, ReadsAndAdditionsReachTheMemoryThatIsExposed) {
  const std::shared_ptr<Adapter> one = adapter();
  const std::shared_ptr<Adapter> other = adapter();
  MessageBuffer far = other->allocate(message_bytes, MemoryKind::plain);
  MessageBuffer near = one->allocate(message_bytes, MemoryKind::plain);
  fill(far.span(), 3);
  {
    OneSided<ReadAccess> ends(one, other);
    ends.near.aim_at(ends.far.expose(far.span()));
    ends.near.wait_for(ends.near.operate(near.span()));
    EXPECT_TRUE(is_filled(near.span(), 3));
  }
  OneSided<AtomicAccess> ends(one, other);
  std::uint64_t word = 0;
  std::memcpy(far.data(), &word, sizeof word);
  ends.near.aim_at(ends.far.expose(far.span()));
  for (std::uint64_t before = 0; before < 300; ++before) {
    ends.near.wait_for(ends.near.operate(near.span().first(sizeof word)));
    std::memcpy(&word, near.data(), sizeof word);
    ASSERT_EQ(word, before);
  }
}

TEST_F(OverVerbs, WhoWaitsForTheLastOfManyFindsThemAllBeforeItSleeps) {
  const std::shared_ptr<Adapter> one = adapter();
  const std::shared_ptr<Adapter> other = adapter();
  MessageBuffer far = other->allocate(message_bytes, MemoryKind::plain);
  MessageBuffer near = one->allocate(message_bytes, MemoryKind::plain);
  for (const int at_once : {16, 17, 33, 64}) {
    OneSided<ReadAccess, Receive::blocking> ends(one, other);  // no event is left of a wait before
    ends.near.aim_at(ends.far.expose(far.span()));
    std::uint64_t last = 0;
    for (int i = 0; i < at_once; ++i) last = ends.near.operate(near.span());
    ends.near.wait_for(last);
    EXPECT_EQ(ledger().faults, std::vector<std::string>{}) << at_once;
  }
}

TEST_F(OverVerbs, ParametersReachTheQueuePair) {
  const RdmaParameters asked{.depth = 8,
                             .moderation = 4,
                             .inline_bytes = 200,
                             .mtu = 1024,
                             .traffic_class = 0x68,
                             .service_level = 5,
                             .timeout = 17,
                             .retry_count = 3};
  const Connected<SendTransfer> ends(adapter(), adapter(), asked);
  ASSERT_EQ(ledger().told.size(), 2U);
  for (const auto& [number, told] : ledger().told) {
    EXPECT_EQ(told.setup.capacity.inline_bytes, 200U);
    EXPECT_EQ(told.to_receive.path_mtu, 3);  // 1024 bytes
    EXPECT_EQ(told.to_receive.address.route.traffic_class, 0x68);
    EXPECT_EQ(told.to_receive.address.service_level, 5);
    EXPECT_EQ(told.to_receive.address.route.gid_index, 1);
    EXPECT_EQ(told.to_send.timeout, 17);
    EXPECT_EQ(told.to_send.retries, 3);
    EXPECT_EQ(told.to_send.reads_out, 16);
  }
  EXPECT_EQ(ends.near.depth(), 8U);
}

TEST_F(OverVerbs, AnAdapterThatCanLessInlineHasNoAtomicsAndDoesNotResizeCarriesMessagesAllTheSame) {
  ledger().abilities = {.inline_bytes = 48, .has_atomics = false, .resizes = false};
  for (const std::size_t bytes : {std::size_t{1}, std::size_t{48}, std::size_t{64}, message_bytes}) {
    const std::shared_ptr<Adapter> one = adapter();
    const std::shared_ptr<Adapter> other = adapter();
    pass_messages<SendTransfer, Receive::polling>(one, other, bytes);
    pass_messages<WriteTransfer, Receive::blocking>(one, other, bytes);
    pass_messages<WritePollTransfer, Receive::polling>(one, other, bytes);
  }
  for (const auto& [number, told] : ledger().told) {
    EXPECT_LE(told.setup.capacity.inline_bytes, 48U);
    EXPECT_GE(told.setup.capacity.inline_bytes, 36U) << "far less than it can";
  }
  ledger().abilities.inline_bytes = 0;
  const Connected<WritePollTransfer> ends(adapter(), adapter());
  EXPECT_EQ(ledger().told.rbegin()->second.setup.capacity.inline_bytes, 0U);
  const auto shared = std::make_shared<Connections<SendTransfer>>(adapter());
  std::vector<std::unique_ptr<ConnectedPath<Receive::polling, SendTransfer>>> paths;
  const std::string said = failure_of([&] {
    for (int i = 0; i < 5000; ++i) {
      paths.push_back(std::make_unique<ConnectedPath<Receive::polling, SendTransfer>>(
          shared, Site{.token = 1, .peer_rank = 1}, RdmaParameters{}));
    }
  });
  EXPECT_GE(paths.size(), 256U);
  EXPECT_NE(said.find("not every adapter resizes it: use fewer flows"), std::string::npos) << said;
}

TEST_F(OverVerbs, PeersOfOtherVersionsOfRoceAreToldSo) {
  const std::shared_ptr<Adapter> one = adapter();
  speak("IB/RoCE v1");
  const std::shared_ptr<Adapter> other = adapter();
  const std::string said = failure_of([&] { const Connected<SendTransfer> ends(one, other); });
  EXPECT_NE(said.find("device fake0 speaks RoCE v2 by its address (GID) 1, and the peer RoCE v1"), std::string::npos)
      << said;
  const Connected<SendTransfer> ends(other, adapter());  // both of version 1
  EXPECT_EQ(other->port().roce_version, 1);
}

TEST_F(OverVerbs, EverySoManySendsAskForACompletionAndShortOnesAreInline) {
  const std::shared_ptr<Adapter> one = adapter();
  const std::shared_ptr<Adapter> other = adapter();
  Connected<SendTransfer> ends(one, other, {.moderation = 4, .inline_bytes = 100});
  MessageBuffer out = one->allocate(message_bytes, MemoryKind::plain);
  MessageBuffer in = other->allocate(message_bytes, MemoryKind::plain);
  for (const std::size_t bytes : {std::size_t{100}, std::size_t{101}}) {
    for (int i = 0; i < 20; ++i) {
      ends.near.send(out.span().first(bytes));
      ASSERT_TRUE(ends.far.receive(in.span()));
    }
  }
  const std::vector<unsigned>& flags = ledger().told.begin()->second.flags;
  ASSERT_EQ(flags.size(), 40U);
  EXPECT_EQ(std::ranges::count_if(flags, [](unsigned one_flag) { return (one_flag & verbs::send_signaled) != 0; }), 10);
  for (std::size_t i = 0; i < flags.size(); ++i) EXPECT_EQ((flags[i] & verbs::send_inline) != 0, i < 20) << i;
}

TEST_F(OverVerbs, WhatFailedFirstIsSaidAndNotWhatThatFlushed) {
  const std::shared_ptr<Adapter> one = adapter();
  Connected<SendTransfer, Receive::blocking> ends(one, adapter());
  MessageBuffer memory = one->allocate(message_bytes, MemoryKind::plain);
  MessageBuffer in = one->allocate(message_bytes, MemoryKind::plain);
  ledger().is_dead = true;
  ends.near.prepost(in.span());  // it is flushed, and told first
  ends.near.send(memory.span());
  const Watchdog interrupting(0.02);
  const std::string said = failure_of([&] { ends.near.receive_preposted(); });
  EXPECT_NE(said.find("to rank 1 failed (IBV_WC_RETRY_EXC_ERR, 12)"), std::string::npos) << said;
}

TEST_F(OverVerbs, AReceiverThatHearsNothingAsksWhetherItsPeerIsThere) {
  for (const bool is_polling : {false, true}) {
    ledger().is_dead = false;
    const std::shared_ptr<Adapter> one = adapter();
    MessageBuffer in = one->allocate(message_bytes, MemoryKind::plain);
    const Watchdog interrupting(0.02);
    const auto receive = [&](auto ends) {
      ledger().is_dead = true;
      return failure_of([&] { ends->near.receive(in.span()); });
    };
    const std::uint64_t begin = KernelClock::now();
    const std::string said =
        is_polling ? receive(std::make_unique<Connected<WriteTransfer, Receive::polling>>(one, adapter()))
                   : receive(std::make_unique<Connected<WriteTransfer, Receive::blocking>>(one, adapter()));
    EXPECT_NE(said.find("IBV_WC_RETRY_EXC_ERR"), std::string::npos) << said;
    EXPECT_LT(KernelClock::now() - begin, 1'000'000'000U);
  }
}

TEST_F(OverVerbs, WhatIsToldOfAPathThatHasEndedIsNobodys) {
  const std::shared_ptr<Adapter> one = adapter();
  const std::shared_ptr<Adapter> other = adapter();
  auto first = std::make_unique<Connected<SendTransfer>>(one, other);
  MessageBuffer out = one->allocate(message_bytes, MemoryKind::plain);
  MessageBuffer in = other->allocate(message_bytes, MemoryKind::plain);
  const auto near_device = first->near_device;
  {
    ConnectionPool<SendTransfer> pool(near_device, 4);
    ConnectionPool<SendTransfer> far_pool(first->far_device, 4);
    far_pool.post_receive(1, first->far, in.span());
    ledger().is_held = true;
    pool.post_send(1, first->near, out.span());
  }
  first.reset();  // its completion has not come
  ledger().is_held = false;
  verbs::fake::release();
  ConnectionPool<SendTransfer> pool(near_device, 4);
  EXPECT_TRUE(pool.test().empty());
}

TEST_F(OverVerbs, ADeviceHasRoomForAnyNumberOfPathsOneAfterTheOther) {
  const auto shared = std::make_shared<Connections<SendTransfer>>(adapter());
  for (int i = 0; i < 5000; ++i) {  // all at once would be more than its completion queue has room for
    const ConnectedPath<Receive::polling, SendTransfer> path(shared, {.token = 1, .peer_rank = 1}, {});
  }
  std::vector<std::unique_ptr<ConnectedPath<Receive::polling, SendTransfer>>> paths;
  const std::string said = failure_of([&] {
    for (int i = 0; i < 5000; ++i) {
      paths.push_back(std::make_unique<ConnectedPath<Receive::polling, SendTransfer>>(
          shared, Site{.token = 1, .peer_rank = 1}, RdmaParameters{}));
    }
  });
  EXPECT_NE(said.find("fake0 has at most 32767: use fewer flows"), std::string::npos) << said;
}

}  // namespace
}  // namespace fabricbench
