// fabricbench-probe PLAN.json: measures what a plan asks for, over MPI's ranks, and writes the record.
#include <mpi.h>

#include <cstdio>
#include <string>
#include <string_view>

#include "core/version.hpp"
#include "core/vocabulary.hpp"
#include "probe/launch.hpp"

namespace {

constexpr std::string_view usage =
    "Usage: mpiexec -n RANKS fabricbench-probe PLAN.json\n"
    "\n"
    "Measures the probes of a plan and writes the record to the plan's output, one JSON object a line.\n"
    "The plan and the record are described by schema/plan.json and schema/record.json.\n"
    "\n"
    "  --list     the layers and the patterns that a plan may name\n"
    "  --version  the version\n"
    "  --help     this text\n"
    "\n"
    "Exit codes: 0 measured (cells that failed say so in the record), 2 the plan cannot be followed,\n"
    "3 the environment lacks something, the output cannot be written for example.\n";

void print(std::string_view text) { std::fwrite(text.data(), 1, text.size(), stdout); }

template <class Enum>
void print_words(std::string_view title) {
  print(title);
  for (const std::string_view word : fabricbench::names_of<Enum>) {
    print(" ");
    print(word);
  }
  print("\n");
}

int refuse(const char* problem) {
  std::fprintf(stderr, "fabricbench-probe: %s; see fabricbench-probe --help\n", problem);
  return static_cast<int>(fabricbench::Exit::bad_plan);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return refuse("one plan is needed");
  const std::string_view argument = argv[1];
  if (argument == "--help" || argument == "-h") {
    print(usage);
  } else if (argument == "--version") {
    print("fabricbench-probe ");
    print(fabricbench::version);
    print("\n");
  } else if (argument == "--list") {
    print_words<fabricbench::Layer>("layers:");
    print_words<fabricbench::Pattern>("patterns:");
  } else if (argument.starts_with("--")) {
    return refuse("unknown option");
  } else {
    MPI_Init(&argc, &argv);
    const fabricbench::Exit exit = fabricbench::launch(argv[1]);
    MPI_Finalize();
    return static_cast<int>(exit);
  }
  return 0;
}
