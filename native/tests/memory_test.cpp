// What sweeps over memory compute, by any stores and on any number of processors, and what their threads leave behind.
#include "transport/memory.hpp"

#include <gtest/gtest.h>
#include <sched.h>

#include <atomic>
#include <vector>

#include "base/failure.hpp"

namespace fabricbench {
namespace {

/// Three arrays that begin where a vector may, and known contents.
class Arrays {
 public:
  explicit Arrays(std::size_t count) : memory_(3 * (count + 2) * sizeof(double)), count_(count) {
    const std::size_t apart = (count + 1) / 2 * 2;
    double* const begin = reinterpret_cast<double*>(memory_.data());
    arrays_ = {begin, begin + apart, begin + 2 * apart, count};
    for (std::size_t i = 0; i < count; ++i) {
      arrays_.a[i] = a(i);
      arrays_.b[i] = b(i);
      arrays_.c[i] = c(i);
    }
  }
  const SweptArrays& swept() const { return arrays_; }
  static double a(std::size_t i) { return static_cast<double>(i) + 0.5; }
  static double b(std::size_t i) { return 2.0 * static_cast<double>(i) - 7; }
  static double c(std::size_t i) { return 1000.0 - static_cast<double>(i); }

  /// Hold each place to what it should be.
  template <class A, class B, class C>
  void expect(A of_a, B of_b, C of_c) const {
    for (std::size_t i = 0; i < count_; ++i) {
      ASSERT_EQ(arrays_.a[i], of_a(i)) << i;
      ASSERT_EQ(arrays_.b[i], of_b(i)) << i;
      ASSERT_EQ(arrays_.c[i], of_c(i)) << i;
    }
  }

 private:
  MessageBuffer memory_;
  std::size_t count_;
  SweptArrays arrays_;
};

template <MemoryStores stores>
void check_kernels(std::size_t count) {
  const auto a = Arrays::a;
  const auto b = Arrays::b;
  const auto c = Arrays::c;
  {
    const Arrays arrays(count);
    sweep_once<MemoryKernel::copy, stores>(arrays.swept());
    arrays.expect(a, b, a);
  }
  {
    const Arrays arrays(count);
    sweep_once<MemoryKernel::scale, stores>(arrays.swept());
    arrays.expect(a, [&](std::size_t i) { return 3 * c(i); }, c);
  }
  {
    const Arrays arrays(count);
    sweep_once<MemoryKernel::add, stores>(arrays.swept());
    arrays.expect(a, b, [&](std::size_t i) { return a(i) + b(i); });
  }
  {
    const Arrays arrays(count);
    sweep_once<MemoryKernel::triad, stores>(arrays.swept());
    arrays.expect([&](std::size_t i) { return b(i) + 3 * c(i); }, b, c);
  }
}

TEST(Sweeps, ComputeWhatStreamDoesByEitherStores) {
  for (const std::size_t count : {0U, 1U, 2U, 3U, 64U, 1001U}) {
    check_kernels<MemoryStores::plain>(count);
    check_kernels<MemoryStores::streaming>(count);
  }
}

TEST(Sweeps, OfAllProcessorsTakeAsManyThreadsAndLeaveTheRankWhereItWasBound) {
  cpu_set_t before;
  sched_getaffinity(0, sizeof before, &before);
  Memory memory(std::size_t{1} << 20U, {.kernel = MemoryKernel::triad, .threads = 0});
  const std::size_t processors = allowed_processors().size();
  EXPECT_EQ(memory.threads(), processors);
  EXPECT_EQ(memory.bytes_of_sweep(), 3U << 20U);
  memory.with_sweep([](auto sweep) {
    sweep(1);
    sweep(5);
  });
  cpu_set_t after;
  sched_getaffinity(0, sizeof after, &after);
  EXPECT_TRUE(CPU_EQUAL(&before, &after));
}

TEST(Sweeps, AreRefusedOnMoreProcessorsThanThereAre) {
  const std::size_t more = allowed_processors().size() + 1;
  EXPECT_THROW(Memory(4096, {.threads = more}), Failure);
  EXPECT_THROW(Memory(4095, Sweeping{}), Failure);
}

TEST(Crews, DoEachWorkOnEveryMemberBeforeAnybodyBeginsTheNext) {
  const std::vector<int> processors(3, allowed_processors().front());
  std::vector<std::atomic<int>> done(processors.size());
  std::atomic<bool> is_ahead = false;
  {
    Crew crew(
        processors, [&](std::size_t member) { done[member] = 1; },
        [&](std::size_t member) {
          const int own = ++done[member];
          for (const std::atomic<int>& other : done) is_ahead = is_ahead || other < own - 1 || other > own;
        });
    crew.run(4);
    crew.run(6);
  }
  for (const std::atomic<int>& each : done) EXPECT_EQ(each, 11);
  EXPECT_FALSE(is_ahead);
}

}  // namespace
}  // namespace fabricbench
