// Every message that ranks can say: that it comes as it was sent, and that one which is cut, too long, damaged or
// another than the one awaited is refused by name.
#include "core/message.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

#include "core/clock_sync.hpp"
#include "core/control.hpp"
#include "core/report.hpp"
#include "farm/messages.hpp"
#include "mpi_operation/timed_calls.hpp"
#include "pattern/channels.hpp"
#include "pattern/flood_round.hpp"
#include "pattern/lockstep.hpp"
#include "pattern/one_sided.hpp"
#include "pattern/oneway.hpp"
#include "pattern/stream.hpp"
#include "probe/agreement.hpp"
#include "probe/launch.hpp"

namespace fabricbench {
namespace {

/// One with something in it. Messages that say nothing but their type have none.
template <Message M>
M sample() {
  return M{};
}
template <>
EndNotice sample() {
  return {.ender = 1, .exit_code = 3, .cause = "the disk is full"};
}
template <>
EndHeard sample() {
  return {.ender = 1, .is_clean = true};
}
template <>
Gathered sample() {
  return {{"one", "", "another \xff"}};
}
template <>
Beginning sample() {
  return {.exit_code = 2, .plan_text = R"({"probes": []})"};
}
template <>
RankInfo sample() {
  return {{{"rank", 1}, {"host", "n1"}, {"cpus", {0, 1}}}};
}
template <>
HostsOfRanks sample() {
  HostsOfRanks hosts;
  for (const int rank : {0, 1, 0}) hosts.first_rank.push_back(rank);
  for (const int rank : {0, 0, 0}) hosts.first_on_machine.push_back(rank);
  return hosts;
}
template <>
ClockIdentity sample() {
  return {"boot time:[4026531834]"};
}
template <>
ClockModel sample() {
  return {.offset_ns = -3.5, .drift = 1e-6, .at_ns = 12345, .is_shared = false, .exchanges = 7};
}
template <>
ClockCheck sample() {
  return {.model = sample<ClockModel>(), .shift_ns = 4, .noise_ns = 5, .error_ns = 6};
}
template <>
Measure sample() {
  return {.probe = 17};
}
template <>
Congest sample() {
  return {.probe = 18};
}
template <>
Whether sample() {
  return {.holds = true};
}
template <>
Verdict sample() {
  return {CellFailure{FailureCode::timeout, "rank 1 on n1: nothing came"}};
}
template <>
PathCache::State sample() {
  return {.is_open = true, .generation = 4, .sequence = 99};
}
template <>
Address sample() {
  return {std::string("127.0.0.1:40000\0\xff", 17)};
}
template <>
CommonStart sample() {
  return {.global_ns = std::int64_t{1} << 60};
}
template <>
Turn sample() {
  return {.number = 5};
}
template <>
RoundOrder sample() {
  return {.first = 8, .count = 9};
}
template <>
TurnOrder sample() {
  return {.turns = 6, .is_measured = true};
}
template <>
FloodTally sample() {
  return {.has_failed = false, .bytes = 1 << 20, .messages = 16, .measured_first = 2, .measured_end = 14};
}
template <>
ClockBound sample() {
  return {.error_ns = 250.5};
}
template <>
Stamps sample() {
  return {{{.number = 1, .first_ns = 10, .second_ns = 20}, {.number = 2, .first_ns = 30, .second_ns = 40}}};
}
template <>
CallOrder sample() {
  return {.phase = CallPhase::measured, .calls = 100, .start_ns = 5, .window_ns = 6, .waiting = Waiting::sleep};
}
template <>
Exposures sample() {
  return {{{.address = 0x7f0012345678, .key = 0x1234}, {.address = 0x7f0012346000, .key = 0x1234}}};
}
template <>
CellParts sample() {
  ChannelReport channel;
  channel.destination = 1;
  channel.quantity = Quantity::one_way;
  channel.time_ns = {-1, 2, std::numeric_limits<std::int64_t>::min(), std::numeric_limits<std::int64_t>::max()};
  channel.bytes = {64, std::numeric_limits<std::uint64_t>::max(), 0};
  return {.warmup = {.time_ns = {1}, .bytes = {}},
          .measured = {.time_ns = {2, 3}, .bytes = {64, 32}},
          .channels = {channel},
          .failed_pairs = {{.source = 0, .destination = 2, .code = FailureCode::unreachable, .reason = "no cable"}}};
}
template <>
CellMerge sample() {
  CellReport report;
  report.failure = CellFailure{FailureCode::corrupted, "wrong \xff bytes"};
  report.outcome = {.stop = StopReason::width, .seconds = 0.25, .bytes_per_sample = 128, .channels = 2};
  report.counters = {.sent = 1, .lost = 2, .reordered = 3, .duplicated = 4, .corrupted = 5, .verified = 6};
  report.receive = Receive::polling;
  report.measured = {.time_ns = {5, 6}, .bytes = {7, 8}, .batches = {{1, -7}}};
  report.interfaces = {{"eth0", {.sent = 10, .received = 20}}};
  report.other_hosts = {
      {"n1", {{"eth0", {.sent = 20, .received = 10, .above = {"bond0", "vlan7"}, .is_counted = false}}}}};
  report.span = TimeSpan{.begin_unix_ns = 100, .end_unix_ns = 200};
  report.findings.missed = {1};
  report.findings.values = {{"overlap", 0.5}};
  report.has_parts = true;
  CellMerge merge(Family::lockstep, report);
  CellParts parts{.warmup = {}, .measured = {}, .channels = {ChannelReport{}}};
  merge.push_parts(0, parts, 1'000'000);
  merge.push_parts(1, parts, 0);
  return merge;
}

template <>
farm::FarmJob sample() {
  return {.id = 7, .job = 3, .attempt = 1, .name = "input \xff"};
}
template <>
farm::FarmResult sample() {
  return {.id = 7,
          .ended = std::string(farm::ended::signal),
          .exit_code = nullptr,
          .signal = 9,
          .reason = "it was killed",
          .run_seconds = 0.5,
          .output_bytes = 2,
          .output_digest = "00",
          .output = "ab"};
}
template <>
farm::FarmClosed sample() {
  return {"the folder is still there"};
}

template <class... Each>
struct MessageList {
  using Types = testing::Types<Each...>;
  static std::vector<MessageType> types() { return {Each::message_type...}; }
};

// All of the list.
using Messages =
    MessageList<EndNotice, EndHeard, EndOver, Asked, Waits, Gathered, Beginning, RankInfo, HostsOfRanks, ClockIdentity,
                ClockModel, ClockCheck, Measure, Congest, CheckClocks, Finish, Begun, Stop, CellMerge, SendParts,
                CellParts, Whether, Verdict, PathCache::State, Address, CommonStart, Turn, TurnDone, TurnsOver,
                RoundOrder, TurnOrder, StreamEnd, FloodTally, ClockBound, Stamps, CallOrder, Exposures, farm::FarmJob,
                farm::FarmResult, farm::FarmAlive, farm::FarmOver, farm::FarmClosed>;

/// Those that are whole at more than one length: a text is shorter, a list has fewer of its values.
template <class M>
constexpr bool has_one_length =
    !(std::same_as<M, EndNotice> || std::same_as<M, Beginning> || std::same_as<M, Verdict> ||
      std::same_as<M, ClockIdentity> || std::same_as<M, Address> || std::same_as<M, Stamps> ||
      std::same_as<M, Exposures> || std::same_as<M, HostsOfRanks> || std::same_as<M, Gathered> ||
      std::same_as<M, farm::FarmClosed>);

/// What is wrong with these bytes as such a message; nothing where they can be one.
template <Message M>
std::string problem_with(std::string_view bytes) {
  try {
    decode<M>(open_envelope(bytes));
  } catch (const ControlError& error) {
    return error.what();
  }
  return {};
}

bool has(std::string_view text, std::string_view part) { return text.find(part) != std::string_view::npos; }

template <class M>
class EachMessage : public testing::Test {
 protected:
  const std::string sent = encode(sample<M>());
  const std::string payload = std::string(open_envelope(sent).payload);
  const std::string name = std::string(name_of(M::message_type));
  static constexpr std::size_t header_bytes = 16;
};
TYPED_TEST_SUITE(EachMessage, Messages::Types);

TYPED_TEST(EachMessage, ComesAsItWasSent) {
  EXPECT_EQ(encode(decode<TypeParam>(open_envelope(this->sent))), this->sent);
}

TYPED_TEST(EachMessage, IsRefusedByNameWhereItIsCutOrTooLong) {
  for (std::size_t length = 0; length < this->sent.size(); ++length) {
    const std::string problem = problem_with<TypeParam>(this->sent.substr(0, length));
    EXPECT_TRUE(has(problem, length < this->header_bytes ? "too short" : this->name)) << length << ": " << problem;
  }
  for (std::size_t more = 1; more <= 9; ++more) {
    EXPECT_TRUE(has(problem_with<TypeParam>(this->sent + std::string(more, '\0')), this->name)) << more;
  }
}

TYPED_TEST(EachMessage, IsRefusedByNameWhereItWasSentWithAnotherLength) {
  const std::string longer = this->payload + std::string(9, '\0');
  for (std::size_t length = 0; length <= longer.size(); ++length) {
    if (length == this->payload.size()) continue;
    const std::string problem = problem_with<TypeParam>(seal(TypeParam::message_type, longer.substr(0, length)));
    if (has_one_length<TypeParam> || !problem.empty()) {
      EXPECT_TRUE(has(problem, this->name)) << length << ": " << problem;
    }
  }
}

TYPED_TEST(EachMessage, IsRefusedAsAnyOther) {
  for (std::uint32_t other = 0; other < names_of<MessageType>.size(); ++other) {
    const auto type = static_cast<MessageType>(other);
    if (type == TypeParam::message_type) continue;
    const std::string problem = problem_with<TypeParam>(seal(type, this->payload));
    EXPECT_TRUE(has(problem, this->name) && has(problem, name_of(type))) << problem;
  }
}

TYPED_TEST(EachMessage, IsRefusedOrReadButNothingElseWhereOneByteIsWrong) {
  if constexpr (PackedMessage<TypeParam>) {
    for (std::size_t place = 0; place < this->payload.size(); ++place) {
      for (const unsigned mask : {0x01U, 0x20U, 0x80U, 0xffU}) {
        std::string damaged = this->payload;
        damaged[place] = static_cast<char>(static_cast<unsigned char>(damaged[place]) ^ mask);
        const std::string problem = problem_with<TypeParam>(seal(TypeParam::message_type, damaged));
        EXPECT_TRUE(problem.empty() || has(problem, this->name)) << problem;
      }
    }
  }
}

TEST(Message, EachOfTheListIsOneType) {
  const std::vector<MessageType> types = Messages::types();
  EXPECT_EQ(types.size(), names_of<MessageType>.size());
  for (std::uint32_t i = 0; i < names_of<MessageType>.size(); ++i) {
    const auto type = static_cast<MessageType>(i);
    EXPECT_EQ(std::ranges::count(types, type), 1) << name_of(type);
    EXPECT_EQ(value_of<MessageType>(name_of(type)), type) << "two have the name " << name_of(type);
  }
}

TEST(Message, ATypeThatIsNoneIsRefused) {
  std::string bytes = encode(Whether{.holds = true});
  bytes[0] = 100;
  EXPECT_TRUE(has(problem_with<Whether>(bytes), "unknown type, 100"));
}

TEST(Message, ATreeMayHaveTextsOfAnyBytes) {
  EXPECT_EQ(decode<CellMerge>(open_envelope(encode(sample<CellMerge>()))).finish().failure->reason, "wrong \xff bytes");
}

/// One that has no memory for what came.
struct TooLarge {
  static constexpr MessageType message_type = MessageType::parts;
  std::string pack() const { return "large"; }
  static TooLarge unpack(std::string_view) { throw std::bad_alloc(); }
};

TEST(Decode, AMessageThatThereIsNoMemoryForIsNotTakenForADamagedOne) {
  EXPECT_THROW(decode<TooLarge>(open_envelope(encode(TooLarge{}))), std::bad_alloc);
}

}  // namespace
}  // namespace fabricbench
