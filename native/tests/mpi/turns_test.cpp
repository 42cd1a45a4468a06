// A turn over paths that are polled: where they wait, and for what.
#include "pattern/turns.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cerrno>

#include "task_of_two.hpp"

namespace fabricbench {
namespace {

/// A pipe, of which one path has the end that is written and another the end that is read, so that receiving and
/// sending are told by descriptors of their own. `full` attempts to send find the queue of the interface full.
class PipePath {
 public:
  static constexpr Traits traits{
      .is_reliable = true, .is_ordered = true, .framing = Framing::stream, .smallest_message = 1};

  PipePath(int in, int out, int full = 0) : in_(in), out_(out), full_(full) {}
  std::size_t largest_message() const { return std::size_t{1} << 30U; }
  std::string address() const { return {}; }
  void meet(std::string_view) {}
  void set_bound(double) {}
  void send(std::span<const std::byte>) {}
  bool receive(std::span<std::byte> message) {
    for (std::size_t done = 0; done < message.size();) done += try_receive(message.subspan(done));
    return true;
  }
  std::size_t try_send(std::span<const std::byte> message) {
    is_full_ = full_ > 0 && full_-- > 0;
    const ssize_t size = is_full_ ? -1 : ::write(out_, message.data(), message.size());
    return size > 0 ? static_cast<std::size_t>(size) : 0;
  }
  std::size_t try_receive(std::span<std::byte> message) {
    const ssize_t size = ::read(in_, message.data(), message.size());
    return size > 0 ? static_cast<std::size_t>(size) : 0;
  }
  int descriptor() const { return in_; }
  int sending_descriptor() const { return out_; }
  bool has_full_interface() const { return is_full_; }

 private:
  int in_;
  int out_;
  int full_;
  bool is_full_ = false;
};
static_assert(PolledTransport<PipePath>);

class TurnOverPipes : public testing::Test, protected TaskOfTwo {
 protected:
  void SetUp() override { ASSERT_EQ(pipe2(ends_, O_NONBLOCK | O_CLOEXEC), 0); }
  void TearDown() override {
    for (const int end : ends_) close(end);
  }

  /// Take a turn in which this rank sends itself a message; whether it came as it was sent.
  bool is_taken(std::size_t message_bytes, int full) {
    probe.message_bytes = message_bytes;
    PipePath out(-1, ends_[1], full);
    PipePath in(ends_[0], -1);
    const std::size_t own = team.member();
    std::array links{LinkOver<PipePath>{.link = {.peer = own, .flow = 0, .sends = true}, .path = &out},
                     LinkOver<PipePath>{.link = {.peer = own, .flow = 0, .receives = true}, .path = &in}};
    Turns<PipePath> turns(links, task);
    turns.buffers().fill(3);
    turns.take();
    return std::ranges::equal(turns.buffers().in(1), turns.buffers().out(0));
  }

  int ends_[2] = {-1, -1};
};

TEST_F(TurnOverPipes, WaitsForRoomWhereThePathSendsAndForMessagesWhereItReceives) {
  EXPECT_TRUE(is_taken(std::size_t{1} << 20U, 0)) << "far more than a pipe holds";
}

TEST_F(TurnOverPipes, LooksAgainWhereTheInterfaceIsFullWhichGivesNoNotice) { EXPECT_TRUE(is_taken(100, 5)); }

}  // namespace
}  // namespace fabricbench
