// A program of kernels, from its command line to its exit code.
#include "base/program.hpp"

#include <mpi.h>
#include <sys/prctl.h>
#include <time.h>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <new>
#include <nlohmann/json.hpp>
#include <string>

#include "base/failure.hpp"
#include "base/json_text.hpp"
#include "core/control.hpp"
#include "core/rank_info.hpp"
#include "kernel/frame/level.hpp"
#include "kernel/frame/options.hpp"
#include "kernel/frame/outcome.hpp"
#include "kernel/frame/profile.hpp"

namespace fabricbench::kernel {
namespace {

/// A kernel's run on the ranks of a launch: the same program with the same command line on all of them.
class Launch {
 public:
  Launch(const Program& program, const Options& options, const Control& control)
      : program_(program),
        options_(options),
        control_(control),
        ranks_(options.ranks.value_or(control.size())),
        subject_{program.name, options.kernel->name, *options.problem, {}} {}

  Exit run() {
    if (const std::string problem = refusal(); !problem.empty()) {
      complain(problem);
      return Exit::usage;
    }
    const auto opened = static_cast<Exit>(std::stoi(control_.broadcast(std::to_string(static_cast<int>(open())))));
    if (opened != Exit::verified) return opened;
    const bool takes_part = control_.rank() < ranks_;
    MPI_Comm communicator = MPI_COMM_NULL;
    MPI_Comm_split(MPI_COMM_WORLD, takes_part ? 0 : MPI_UNDEFINED, control_.rank(), &communicator);
    Exit exit = Exit::verified;
    if (takes_part) {
      exit = run_or_give_up(communicator);
      MPI_Comm_free(&communicator);
    }
    // Ranks that take no part wait here, asleep.
    return static_cast<Exit>(std::stoi(control_.broadcast(std::to_string(static_cast<int>(exit)))));
  }

 private:
  void complain(const std::string& problem) const {
    if (control_.rank() == 0) {
      std::fprintf(stderr, "%s: %s\n", std::string(program_.name).c_str(), problem.c_str());
    }
  }

  /// Why the command line cannot be followed with the ranks that there are; empty if it can.
  std::string refusal() const {
    if (ranks_ > control_.size()) {
      return "--ranks " + std::to_string(ranks_) + " needs as many ranks, found " + std::to_string(control_.size()) +
             ": start it with mpiexec -n " + std::to_string(ranks_) +
             (control_.size() == 1 ? std::string(why_alone) : "");
    }
    return options_.problem->refusal(ranks_).value_or("");
  }

  nlohmann::json own_rank_info() const {
    const Arguments& told = options_.arguments;
    if (!told.has("--interface") && !told.has("--subnet")) return rank_info(control_.rank());
    return rank_info(control_.rank(), told.fabric_interface());
  }

  /// Learn who takes part, and open on rank 0 what results go to; the other ranks have nothing of it. Collective.
  Exit open() {
    const auto takes_part = [this](const auto& texts) {
      return std::span(texts).first(static_cast<std::size_t>(ranks_));
    };
    const std::vector<std::string> places = control_.gather(json_text(own_rank_info()));
    const std::vector<std::string> levels = control_.gather(compiled_level);
    if (control_.rank() != 0) return Exit::verified;
    const auto own_levels = takes_part(levels);
    subject_.levels.assign(own_levels.begin(), own_levels.end());
    text_ = options_.output == "-" ? stderr : stdout;
    if (options_.output.empty()) return Exit::verified;
    std::vector<nlohmann::json> infos;
    for (const std::string& place : takes_part(places)) infos.push_back(parse_json(place));
    try {
      record_ = std::make_unique<Record>(options_.output);
      record_->write_header(subject_, infos, mpi_library());
    } catch (const OutputError& error) {
      complain(error.what());
      return Exit::environment;
    }
    return Exit::verified;
  }

  Exit run_or_give_up(MPI_Comm communicator) {
    try {
      return run_all(communicator);
    } catch (const std::bad_alloc&) {
      give_up("not enough memory for " + label_of(*options_.problem) + " of " + std::string(options_.kernel->name) +
              ": take a smaller problem, or more nodes");
    } catch (const std::exception& error) {
      give_up(error.what());
    }
  }

  Exit run_all(MPI_Comm communicator) {
    Exit exit = Exit::verified;
    for (int i = 0; i < options_.repetitions && exit != Exit::environment; ++i) exit = run_once(communicator, exit);
    try {
      if (record_ && exit != Exit::environment) record_->write_footer();
    } catch (const OutputError& error) {
      complain(error.what());
      exit = Exit::environment;
    }
    return exit;
  }

  /// Run once and write what came of it; the exit code so far, the same on every rank. Each run has a communicator of
  /// its own: MPICH takes another algorithm after a few collectives on a communicator, which adds in another order, and
  /// a second run would differ from the first in its last bits.
  Exit run_once(MPI_Comm ranks, Exit so_far) {
    reset_counts();
    MPI_Comm communicator = MPI_COMM_NULL;
    MPI_Comm_dup(ranks, &communicator);
    const Result result = options_.problem->run(communicator);
    const Profile profile = gather_profile(communicator);
    auto exit = static_cast<int>(after(so_far, result));
    if (control_.rank() == 0) {
      print_result(text_, subject_, result, profile);
      try {
        if (record_) record_->write_run(result, profile);
      } catch (const OutputError& error) {
        complain(error.what());
        exit = static_cast<int>(Exit::environment);
      }
    }
    MPI_Bcast(&exit, 1, MPI_INT, 0, communicator);
    MPI_Comm_free(&communicator);
    return static_cast<Exit>(exit);
  }

  /// End all ranks, because this one cannot go on and the others wait for it inside the kernel. Often all fail alike:
  /// rank 0 speaks first, and has ended the others before they would. MPI's starter drops what it has not yet passed on
  /// of our words when it hears of the abort, on another socket; hence the moment between the two.
  [[noreturn]] void give_up(const std::string& problem) const {
    const auto wait = [](timespec time) { nanosleep(&time, nullptr); };
    if (control_.rank() > 0) wait({2, 0});
    std::fprintf(stderr, "%s: rank %d on %s: %s\n", std::string(program_.name).c_str(), control_.rank(),
                 host_name().c_str(), problem.c_str());
    wait({0, 300'000'000});
    MPI_Abort(MPI_COMM_WORLD, static_cast<int>(Exit::environment));
    std::_Exit(static_cast<int>(Exit::environment));  // MPI_Abort may return where it could not reach the starter
  }

  const Program& program_;
  const Options& options_;
  const Control& control_;
  int ranks_;  // that take part
  Subject subject_;
  std::FILE* text_ = nullptr;
  std::unique_ptr<Record> record_;
};

void print_about(const Program& program, const Options& options) {
  switch (options.action) {
    case Action::list:
      std::fputs(list_text(program, options.arguments).c_str(), stdout);
      break;
    case Action::mpi:
      std::printf("%s\n", mpi_library().c_str());  // may be asked before MPI_Init
      break;
    case Action::version:
      std::printf("%s %s\n", std::string(program.name).c_str(), std::string(version).c_str());
      break;
    default:
      std::fputs(usage_text(program).c_str(), stdout);
  }
}

/// What keeps a rank from beginning: the command line, the same on all, or the level, perhaps on some nodes only.
struct Obstacle {
  Exit exit = Exit::verified;  // none
  std::string words;
};

/// The exit code where some rank has an obstacle, which is said once. Collective.
Exit agree(const Program& program, const Control& control, const Obstacle& own) {
  const bool is_local = own.exit == Exit::environment;
  const std::string where = "rank " + std::to_string(control.rank()) + " on " + host_name() + ": ";
  const nlohmann::json told{{"exit", static_cast<int>(own.exit)}, {"words", (is_local ? where : "") + own.words}};
  Exit exit = Exit::verified;
  for (const std::string& text : control.gather(json_text(told))) {
    const nlohmann::json one = parse_json(text);
    exit = static_cast<Exit>(one.at("exit").get<int>());
    if (exit == Exit::verified) continue;
    std::fprintf(stderr, "%s: %s\n", std::string(program.name).c_str(), one.at("words").get<std::string>().c_str());
    break;
  }
  return static_cast<Exit>(std::stoi(control.broadcast(std::to_string(static_cast<int>(exit)))));
}

}  // namespace

int run_program(const Program& program, int argc, char** argv) {
  Options options;
  Obstacle obstacle;
  try {
    options = parse_options(program, {argv + 1, static_cast<std::size_t>(argc - 1)});
    if (options.action != Action::run) {
      print_about(program, options);
      return static_cast<int>(Exit::verified);
    }
    if (const auto problem = take_level(argv)) obstacle = {Exit::environment, *problem};
  } catch (const UsageError& error) {
    obstacle = {Exit::usage, error.message + "; see " + std::string(program.name) + " --help"};
  }
  prctl(PR_SET_TIMERSLACK, 1000);  // the control plane's short sleeps are to be short
  MPI_Init(&argc, &argv);
  Exit exit = Exit::verified;
  {
    const Control control;
    exit = agree(program, control, obstacle);
    if (exit == Exit::verified) exit = Launch(program, options, control).run();
  }
  MPI_Finalize();
  return static_cast<int>(exit);
}

}  // namespace fabricbench::kernel
