// Runs jobs on a node, as its worker rank sees it. The jobs are no children of the rank: a process that is forked
// before MPI begins runs them (keeper.cpp), because a process with MPI in it had better not fork, and because jobs and
// files have to go also where the rank is killed.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/socket.hpp"

namespace fabricbench::farm {

/// What is to be run. Without a command the input is read and its digest compared; it is printed.
struct JobToRun {
  std::uint64_t id = 0;
  std::string folder;  // gets files `stdout` and `stderr` of what it prints
  std::vector<std::string> command;
  std::string input;  // it starts where this lies
  std::uint64_t digest = 0;
  double seconds = 0;  // it may take
};

/// How it ended. `problem`: why it could not be started; then there is neither of the others.
struct JobEnd {
  std::uint64_t id = 0;
  std::string problem;
  bool is_of_node = false;  // the problem is not the command's
  bool is_late = false;
  std::optional<int> exit_code;
  std::optional<int> signal;
  double seconds = 0;
};

class Runner {
 public:
  /// Fork what runs the jobs. To be called before MPI_Init.
  Runner();
  /// End all jobs and what they have started, and remove the folder.
  ~Runner();
  Runner(const Runner&) = delete;
  Runner& operator=(const Runner&) = delete;

  /// Make a folder for the farm in this one; its path. What farms of this user left there that were killed is removed.
  /// Throws Failure.
  std::string open(const std::string& scratch);
  /// Throws Failure where who runs the jobs is gone, as take() does; `unsupported` where it is this job's command
  /// that is too long.
  void run(const JobToRun& job);
  /// The next job that has ended, with everything that it started; nothing where none has.
  std::optional<JobEnd> take();
  /// End all jobs and remove the folder; what could not be removed, empty where all is gone.
  /// However long that takes: `meanwhile` is called at least once a second.
  std::string close(const std::function<void()>& meanwhile = [] {});
  /// Readable when a job has ended.
  int descriptor() const { return socket_.get(); }

 private:
  std::string ask(const std::string& order);

  Descriptor socket_;
  pid_t helper_ = -1;
};

}  // namespace fabricbench::farm
