#include "farm/runner.hpp"

#include <poll.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include <array>
#include <cerrno>
#include <nlohmann/json.hpp>

#include "base/failure.hpp"
#include "base/json_text.hpp"
#include "core/message.hpp"
#include "farm/keeper.hpp"

namespace fabricbench::farm {
namespace {

using nlohmann::json;

/// A scratch folder may be of a file system that is slow, and what killed farms left may be much.
constexpr int answer_ms = 60'000;
/// Ending jobs that hold memory takes the kernel some time.
constexpr int patience_at_end_ms = 20'000;

constexpr int look_ms = 500;

constexpr std::size_t largest_answer = std::size_t{64} << 10U;

[[noreturn]] void is_gone() {
  throw Failure(FailureCode::error, "the process that runs the jobs on this node has ended: who killed it?");
}

json read_answer(const Descriptor& socket, int flags) {
  std::string text(largest_answer, '\0');
  const ssize_t size = recv(socket.get(), text.data(), text.size(), flags);
  if (size < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR)) return nullptr;
  if (size <= 0) is_gone();
  text.resize(static_cast<std::size_t>(size));
  return parse_json(text);
}

}  // namespace

Runner::Runner() {
  std::array<int, 2> ends{};
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()) != 0) fail_with_errno("socketpair");
  Descriptor mine(ends[0]);
  const Descriptor theirs(ends[1]);
  helper_ = fork();
  if (helper_ < 0) fail_with_errno("fork", "raise the limit on processes (ulimit -u)");
  if (helper_ == 0) serve(theirs.get());
  socket_ = std::move(mine);
}

Runner::~Runner() {
  {
    const Descriptor closing = std::move(socket_);
  }
  for (int waited = 0; waited < patience_at_end_ms && waitpid(helper_, nullptr, WNOHANG) == 0; waited += 5) {
    poll(nullptr, 0, 5);
  }
}

std::string Runner::ask(const std::string& order) {
  if (send(socket_.get(), order.data(), order.size(), MSG_NOSIGNAL) < 0) is_gone();
  pollfd answer{.fd = socket_.get(), .events = POLLIN, .revents = 0};
  if (poll(&answer, 1, answer_ms) == 0) {
    throw Failure(FailureCode::timeout,
                  "the folder of the farm's inputs did not answer within 60 s: does `scratch` hang?");
  }
  const json told = read_answer(socket_, 0);
  return json_text(told);
}

std::string Runner::open(const std::string& scratch) {
  const json told = parse_json(ask(pack_tree({{"open", scratch}})));
  if (told.contains("problem")) throw Failure(FailureCode::error, told["problem"].get<std::string>());
  return told.at("folder").get<std::string>();
}

void Runner::run(const JobToRun& job) {
  const std::string order = pack_tree({{"run", job.id},
                                       {"folder", job.folder},
                                       {"command", job.command},
                                       {"input", job.input},
                                       {"digest", job.digest},
                                       {"seconds", job.seconds}});
  const bool is_short = order.size() <= largest_order;
  if (is_short && send(socket_.get(), order.data(), order.size(), MSG_NOSIGNAL) >= 0) return;
  if (!is_short || errno == EMSGSIZE) throw Failure(FailureCode::unsupported, "the command is too long");
  is_gone();
}

std::optional<JobEnd> Runner::take() {
  const json told = read_answer(socket_, MSG_DONTWAIT);
  if (told.is_null()) return std::nullopt;
  JobEnd end{.id = told.at("id"),
             .problem = told.value("problem", ""),
             .is_of_node = told.value("is_of_node", false),
             .is_late = told.value("is_late", false),
             .exit_code = std::nullopt,
             .signal = std::nullopt,
             .seconds = told.value("seconds", 0.0)};
  if (told.contains("status")) {
    const int status = told["status"];
    if (WIFEXITED(status)) end.exit_code = WEXITSTATUS(status);
    if (WIFSIGNALED(status)) end.signal = WTERMSIG(status);
  }
  return end;
}

std::string Runner::close(const std::function<void()>& meanwhile) {
  const std::string order = pack_tree({{"close", true}});
  if (send(socket_.get(), order.data(), order.size(), MSG_NOSIGNAL) < 0) is_gone();
  for (;;) {
    meanwhile();
    pollfd answer{.fd = socket_.get(), .events = POLLIN, .revents = 0};
    if (poll(&answer, 1, look_ms) <= 0) continue;
    // Jobs that end meanwhile say so first.
    const json told = read_answer(socket_, 0);
    if (told.is_object() && told.contains("closed")) return told["closed"].get<std::string>();
  }
}

}  // namespace fabricbench::farm
