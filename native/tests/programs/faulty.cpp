// faulty KIND: does what a sanitizer is to report, so that tests can show that they would notice a report.
#include <cstdio>
#include <limits>
#include <memory>
#include <string_view>
#include <thread>
#include <vector>

namespace {

// Volatile, so that no compiler sees what comes.
volatile int three = 3;
volatile int largest = std::numeric_limits<int>::max();

int read_beyond_the_end() {
  const std::vector<int> numbers(3);
  return *(numbers.data() + three);
}

int overflow() { return largest + three; }

int leak() {
  auto numbers = std::make_unique<std::vector<int>>(1000, int{three});
  const int sum = numbers->front();
  [[maybe_unused]] const auto* const lost = numbers.release();
  return sum;
}

int race() {
  int sum = 0;
  std::jthread other([&] { sum += three; });
  sum += three;
  return sum;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string_view kind = argc == 2 ? argv[1] : "";
  if (kind == "beyond") return read_beyond_the_end() & 0;
  if (kind == "overflow") return overflow() & 0;
  if (kind == "leak") return leak() & 0;
  if (kind == "race") return race() & 0;
  std::fputs("usage: faulty beyond|overflow|leak|race\n", stderr);
  return 2;
}
