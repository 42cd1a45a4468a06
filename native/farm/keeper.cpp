// Who keeps whom:
//
//   worker rank ── socket ── helper ── keeper of a job ── the job, and whatever it starts
//
// A keeper adopts what its job orphans (PR_SET_CHILD_SUBREAPER), so that it can end all of it, also what made a session
// of its own. It ends its job when that takes too long, when the socket closes because the rank is gone, and when the
// helper dies, of which the kernel tells it by SIGTERM. The helper adopts what a killed keeper leaves.
#include "farm/keeper.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.hpp"
#include "base/failure.hpp"
#include "base/json_text.hpp"
#include "base/socket.hpp"
#include "core/message.hpp"
#include "core/rank_info.hpp"
#include "farm/children.hpp"
#include "farm/digest.hpp"

extern char** environ;  // NOLINT: POSIX has it in no header

namespace fabricbench::farm {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr std::string_view folder_stem = "fabricbench-farm-";

/// Tell a starter's ranks who they are: a job that is an MPI program of its own would take them for its own.
constexpr std::array<std::string_view, 10> of_starters{"PMI_",   "PMIX_",    "OMPI_",     "PRTE_", "HYDI_",
                                                       "HYDRA_", "MPIEXEC_", "MPI_LOCAL", "MV2_",  "PALS_"};
/// What lets ranks sleep while they wait is not for jobs.
constexpr std::string_view preload = "LD_PRELOAD=";
constexpr std::string_view own_library = "libfabricbench-";

std::string error_text(const std::string& what, int number) { return what + ": " + std::strerror(number); }

/// Those that a job gets: the rank's but for what is the starter's and ours.
std::vector<std::string> job_environment() {
  std::vector<std::string> kept;
  for (char** each = environ; *each != nullptr; ++each) {
    const std::string_view one = *each;
    if (std::ranges::any_of(of_starters, [one](std::string_view stem) { return one.starts_with(stem); })) continue;
    if (!one.starts_with(preload)) {
      kept.emplace_back(one);
      continue;
    }
    std::string libraries;
    std::string_view left = one.substr(preload.size());
    while (!left.empty()) {
      const std::size_t end = std::min(left.find_first_of(": "), left.size());
      const std::string_view library = left.substr(0, end);
      left.remove_prefix(std::min(end + 1, left.size()));
      if (library.find(own_library) != std::string_view::npos || library.empty()) continue;
      libraries.append(libraries.empty() ? "" : ":").append(library);
    }
    if (!libraries.empty()) kept.push_back(std::string(preload) + libraries);
  }
  return kept;
}

std::vector<char*> pointers_to(std::vector<std::string>& texts) {
  std::vector<char*> all;
  for (std::string& each : texts) all.push_back(each.data());
  all.push_back(nullptr);
  return all;
}

/// Signals that are read, not handled.
Descriptor signals_as_descriptor() {
  sigset_t wanted;
  sigemptyset(&wanted);
  for (const int one : {SIGCHLD, SIGTERM, SIGINT, SIGHUP}) sigaddset(&wanted, one);
  sigprocmask(SIG_BLOCK, &wanted, nullptr);
  return Descriptor(signalfd(-1, &wanted, SFD_CLOEXEC | SFD_NONBLOCK));
}

/// Take all that have come; whether one of them asks this process to end.
bool is_asked_to_end(const Descriptor& signals) {
  bool is_asked = false;
  signalfd_siginfo info{};
  while (read(signals.get(), &info, sizeof info) == static_cast<ssize_t>(sizeof info)) {
    is_asked = is_asked || info.ssi_signo != static_cast<std::uint32_t>(SIGCHLD);
  }
  return is_asked;
}

void become_reaper(const char* name) {
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  prctl(PR_SET_NAME, name);
}

/// One job: starts it, waits for its end, and ends what it has started.
class Keeper {
 public:
  Keeper(int socket, const json& order, std::vector<std::string>& environment)
      : socket_(socket), order_(order), environment_(environment) {}

  [[noreturn]] void keep() {
    become_reaper("farm-keeper");
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    signals_ = signals_as_descriptor();
    json told{{"id", order_.at("run")}};
    const std::uint64_t begin = Clock::now();
    if (const std::string problem = start(); problem.empty()) {
      wait(begin);
      told["seconds"] = ns_to_seconds(Clock::now() - begin);
    } else {
      told["problem"] = problem;
      told["is_of_node"] = is_of_node_;
    }
    const std::string stuck = text_of_stuck(kill_children());
    if (is_left_) _exit(1);
    if (!stuck.empty()) {
      told["problem"] = stuck;
      told["is_of_node"] = true;
    }
    if (status_) told["status"] = *status_;
    told["is_late"] = is_late_;
    const std::string text = json_text(told);
    _exit(send(socket_, text.data(), text.size(), MSG_NOSIGNAL) < 0 ? 1 : 0);
  }

 private:
  /// Why the job cannot be started; empty if it has been.
  std::string start() {
    const std::string folder = fs::path(order_.at("input").get<std::string>()).parent_path().string();
    if (chdir(folder.c_str()) != 0) {
      is_of_node_ = true;
      return error_text(folder, errno);
    }
    auto command = order_.at("command").get<std::vector<std::string>>();
    return command.empty() ? start_check() : start_command(command);
  }

  std::string start_command(std::vector<std::string>& command) {
    const std::string out = printed("stdout");
    const std::string errors = printed("stderr");
    posix_spawn_file_actions_t files;
    posix_spawn_file_actions_init(&files);
    constexpr int written = O_WRONLY | O_CREAT | O_TRUNC;
    posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_addopen(&files, STDOUT_FILENO, out.c_str(), written, 0600);
    posix_spawn_file_actions_addopen(&files, STDERR_FILENO, errors.c_str(), written, 0600);
    posix_spawnattr_t how;
    posix_spawnattr_init(&how);
    sigset_t none;
    sigset_t all;
    sigemptyset(&none);
    sigfillset(&all);
    posix_spawnattr_setsigmask(&how, &none);
    posix_spawnattr_setsigdefault(&how, &all);
    posix_spawnattr_setpgroup(&how, 0);
    posix_spawnattr_setflags(&how, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP);
    std::vector<char*> words = pointers_to(command);
    std::vector<char*> variables = pointers_to(environment_);
    const int error = posix_spawnp(&job_, words[0], &files, &how, words.data(), variables.data());
    posix_spawnattr_destroy(&how);
    posix_spawn_file_actions_destroy(&files);
    if (error == 0) return {};
    job_ = -1;
    is_of_node_ = error == EAGAIN || error == ENOMEM || error == ENOSPC || error == EDQUOT || error == EROFS;
    return error_text(command[0], error);
  }

  std::string printed(const char* name) const { return order_.at("folder").get<std::string>() + "/" + name; }

  std::string start_check() {
    job_ = fork();
    if (job_ == 0) check();
    if (job_ > 0) return {};
    is_of_node_ = true;
    return error_text("fork", errno);
  }

  /// The job that farms have where they are given none: read the input and see that it is what rank 0 had.
  [[noreturn]] void check() const {
    setpgid(0, 0);
    std::ofstream out(printed("stdout"));
    try {
      const FileDigest found = digest_of_file(order_.at("input"));
      out << digest_text(found.digest) << " " << found.bytes << " bytes\n";
      if (found.digest == order_.at("digest").get<std::uint64_t>() && out.flush()) _exit(0);
      std::ofstream(printed("stderr")) << "the input is not what rank 0 sent: " << digest_text(found.digest)
                                       << std::endl;
    } catch (const std::exception& error) {
      std::ofstream(printed("stderr")) << error.what() << std::endl;
    }
    _exit(1);
  }

  void wait(std::uint64_t begin) {
    const std::uint64_t limit_ns = seconds_to_ns(order_.at("seconds").get<double>());
    std::array<pollfd, 2> awaited{pollfd{.fd = signals_.get(), .events = POLLIN, .revents = 0},
                                  pollfd{.fd = socket_, .events = 0, .revents = 0}};
    while (!status_ && !is_late_ && !is_left_) {
      const std::uint64_t gone = Clock::now() - begin;
      const std::uint64_t left = gone < limit_ns ? limit_ns - gone : 0;
      const timespec at_most{static_cast<time_t>(left / 1'000'000'000U), static_cast<long>(left % 1'000'000'000U)};
      const int ready = ppoll(awaited.data(), awaited.size(), &at_most, nullptr);
      is_left_ = is_asked_to_end(signals_) || (awaited[1].revents & (POLLHUP | POLLERR)) != 0;
      reap();
      is_late_ = ready == 0 && left == 0 && !status_;
    }
    if (!status_) kill(-job_, SIGKILL);
  }

  void reap() {
    int status = 0;
    for (pid_t ended = waitpid(-1, &status, WNOHANG); ended > 0; ended = waitpid(-1, &status, WNOHANG)) {
      if (ended == job_) status_ = status;
    }
  }

  int socket_;
  const json& order_;
  std::vector<std::string>& environment_;
  Descriptor signals_;
  pid_t job_ = -1;
  std::optional<int> status_;
  bool is_late_ = false;
  bool is_left_ = false;  // nobody waits for it any more
  bool is_of_node_ = false;
};

/// How the names of farms' folders begin that this user made here since the node was started: on a file system that
/// nodes share, locks of another node may not be seen, and its folders are not ours to judge.
std::string own_stem() {
  std::string boot;
  std::getline(std::ifstream("/proc/sys/kernel/random/boot_id"), boot);
  return std::string(folder_stem) + std::to_string(getuid()) + "-" + host_name() + "-" + boot + "-";
}

/// A folder of the farm's own, locked as long as any process of it lives.
class Folder {
 public:
  /// Throws Failure.
  explicit Folder(const std::string& scratch) {
    const std::string stem = own_stem();
    sweep(scratch, stem);
    for (int tries = 0; tries < 5; ++tries) {
      std::string path = (fs::path(scratch) / (stem + "XXXXXX")).string();
      if (mkdtemp(path.data()) == nullptr) {
        fail_with_errno("mkdtemp(" + path + ")", "`scratch` must be a folder on every node that can be written");
      }
      if (take(path)) {
        path_ = path;
        return;
      }
    }
    throw Failure(FailureCode::error, "no folder in " + scratch + " stays: who removes them?");
  }

  const std::string& path() const { return path_; }

  /// What could not be removed; empty where all is gone.
  std::string remove() const {
    std::error_code error;
    fs::remove_all(path_, error);
    return error ? path_ + " cannot be removed: " + error.message() : "";
  }

 private:
  /// Lock it; false where somebody who sweeps was faster.
  bool take(const std::string& path) {
    Descriptor folder(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    if (folder.get() < 0 || flock(folder.get(), LOCK_EX | LOCK_NB) != 0) return false;
    struct stat locked{};
    struct stat named{};
    const bool is_there = fstat(folder.get(), &locked) == 0 && lstat(path.c_str(), &named) == 0;
    if (!is_there || locked.st_ino != named.st_ino) return false;
    lock_ = std::move(folder);
    return true;
  }

  /// Remove folders of this user and node whose farm is gone: nobody holds their lock.
  static void sweep(const std::string& scratch, const std::string& stem) {
    std::error_code error;
    for (fs::directory_iterator each(scratch, error), end; !error && each != end; each.increment(error)) {
      if (!each->path().filename().string().starts_with(stem)) continue;
      const Descriptor folder(::open(each->path().c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
      struct stat about{};
      if (folder.get() < 0 || fstat(folder.get(), &about) != 0 || about.st_uid != getuid()) continue;
      if (flock(folder.get(), LOCK_EX | LOCK_NB) != 0) continue;
      std::error_code ignored;
      fs::remove_all(each->path(), ignored);
    }
  }

  std::string path_;
  Descriptor lock_;
};

class Helper {
 public:
  explicit Helper(int socket) : socket_(socket), environment_(job_environment()) {}

  void serve() {
    become_reaper("farm-helper");
    const Descriptor signals = signals_as_descriptor();
    std::array<pollfd, 2> awaited{pollfd{.fd = signals.get(), .events = POLLIN, .revents = 0},
                                  pollfd{.fd = socket_, .events = POLLIN, .revents = 0}};
    std::string text(largest_order, '\0');
    for (;;) {
      if (poll(awaited.data(), awaited.size(), -1) < 0 && errno != EINTR) break;
      if (is_asked_to_end(signals)) break;
      reap();
      if (awaited[1].revents == 0) continue;
      const ssize_t size = recv(socket_, text.data(), text.size(), MSG_DONTWAIT);
      if (size == 0 || (size < 0 && errno != EAGAIN && errno != EINTR)) break;
      if (size > 0) obey(unpack_tree(std::string_view(text).substr(0, static_cast<std::size_t>(size))));
    }
    end();
  }

 private:
  void obey(const json& order) {
    if (order.contains("open")) {
      try {
        folder_.emplace(order["open"].get<std::string>());
        say({{"folder", folder_->path()}});
      } catch (const Failure& failure) {
        say({{"problem", failure.what()}});
      }
    } else if (order.contains("run")) {
      run(order);
    } else {
      say({{"closed", end()}});
    }
  }

  void run(const json& order) {
    const pid_t keeper = fork();
    if (keeper == 0) {
      if (folder_) Keeper(socket_, order, environment_).keep();
      _exit(1);
    }
    if (keeper > 0) {
      keepers_[keeper] = order["run"];
    } else {
      say({{"id", order["run"]}, {"problem", error_text("fork", errno)}, {"is_of_node", true}});
    }
  }

  /// Wait for keepers that have ended: one that was killed has told nothing of its job, and has left it.
  void reap() {
    bool is_left = false;
    int status = 0;
    for (pid_t ended = waitpid(-1, &status, WNOHANG); ended > 0; ended = waitpid(-1, &status, WNOHANG)) {
      const auto keeper = keepers_.find(ended);
      if (keeper == keepers_.end()) continue;
      if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
        is_left = true;
        say({{"id", keeper->second}, {"problem", "what kept the job was killed, and the job with it"}});
      }
      keepers_.erase(keeper);
    }
    if (is_left) kill_children(keepers_);
  }

  /// End all jobs and remove the folder; what could not be removed.
  std::string end() {
    for (const auto& [keeper, id] : keepers_) kill(keeper, SIGTERM);
    // Each kills what it keeps, within its limit; then whoever is left is killed here.
    const std::uint64_t begin = Clock::now();
    while (!keepers_.empty() && Clock::now() - begin < 2 * kill_limit_ns) {
      std::erase_if(keepers_, [](const auto& one) { return waitpid(one.first, nullptr, WNOHANG) != 0; });
      if (!keepers_.empty()) poll(nullptr, 0, 1);
    }
    keepers_.clear();
    std::string problem = text_of_stuck(kill_children());
    if (folder_) problem += (problem.empty() ? "" : "; ") + folder_->remove();
    folder_.reset();
    return problem;
  }

  void say(const json& told) const {
    const std::string text = json_text(told);
    send(socket_, text.data(), text.size(), MSG_NOSIGNAL);
  }

  int socket_;
  std::vector<std::string> environment_;
  std::map<pid_t, std::uint64_t> keepers_;  // -> the attempt
  std::optional<Folder> folder_;
};

/// Let go of everything that is the rank's: a starter learns from its ends of pipes closing that a rank has died.
int alone_with(int socket) {
  setsid();
  constexpr int kept = 3;
  if (socket != kept) dup2(socket, kept);
  fcntl(kept, F_SETFD, FD_CLOEXEC);
  const int null = open("/dev/null", O_RDWR | O_CLOEXEC);
  for (const int standard : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) dup2(null, standard);
  constexpr int first = kept + 1;
  if (syscall(SYS_close_range, first, ~0U, 0) != 0) {
    const long most = sysconf(_SC_OPEN_MAX);
    for (int each = first; each < most; ++each) close(each);
  }
  return kept;
}

}  // namespace

void serve(int socket) {
  try {
    Helper(alone_with(socket)).serve();
  } catch (...) {  // the rank sees the socket close
    _exit(1);
  }
  _exit(0);
}

}  // namespace fabricbench::farm
