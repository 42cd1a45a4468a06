#include "farm/children.hpp"

#include <dirent.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <fstream>

#include "base/clock.hpp"

namespace fabricbench::farm {
namespace {

/// The parent of a process; 0 where there is no such process any more.
pid_t parent_of(pid_t process) {
  std::ifstream file("/proc/" + std::to_string(process) + "/stat");
  std::string text;
  std::getline(file, text);
  // pid (command) state parent ...: a command may hold spaces and brackets.
  const std::size_t end = text.rfind(") ");
  if (end == std::string::npos) return 0;
  int parent = 0;
  std::sscanf(text.c_str() + end + 2, "%*c %d", &parent);
  return parent;
}

/// Where the kernel lists them (CONFIG_PROC_CHILDREN) it is asked, else every process is looked at.
std::vector<pid_t> own_children() {
  std::vector<pid_t> found;
  if (std::ifstream listed("/proc/thread-self/children"); listed) {
    for (pid_t each = 0; listed >> each;) found.push_back(each);
    return found;
  }
  DIR* const folder = opendir("/proc");
  if (folder == nullptr) return found;
  while (const dirent* const entry = readdir(folder)) {
    const auto process = static_cast<pid_t>(std::atoi(entry->d_name));
    if (process > 0 && parent_of(process) == getpid()) found.push_back(process);
  }
  closedir(folder);
  return found;
}

}  // namespace

std::vector<pid_t> kill_children(const std::map<pid_t, std::uint64_t>& spared) {
  for (const std::uint64_t begin = Clock::now();;) {
    std::vector<pid_t> left;
    for (const pid_t each : own_children()) {
      if (spared.contains(each)) continue;
      kill(each, SIGKILL);
      if (waitpid(each, nullptr, WNOHANG) == 0) left.push_back(each);
    }
    // The list may miss one that comes just then; who has no child at all knows it.
    if (left.empty() && (!spared.empty() || (waitpid(-1, nullptr, WNOHANG) < 0 && errno == ECHILD))) return {};
    if (Clock::now() - begin > kill_limit_ns) return left;
    poll(nullptr, 0, 1);
  }
}

std::string text_of_stuck(const std::vector<pid_t>& stuck) {
  if (stuck.empty()) return {};
  std::string text = "after SIGKILL it stays, stuck in the kernel (a dead file server?): process";
  for (const pid_t each : stuck) text.append(1, ' ').append(std::to_string(each));
  return text;
}

}  // namespace fabricbench::farm
