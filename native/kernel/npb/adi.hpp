// BT and SP step the same way: r = dt (R(U) - R(U*)), then systems along the lines of x, y and z, one after the other,
// then U += r (Beam and Warming's approximate factorisation; alternating-direction implicit). They differ in the
// systems, which a method brings (line_sweep.hpp).
#pragma once

#include <mpi.h>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kernel/npb/line_sweep.hpp"
#include "kernel/npb/multipartition.hpp"
#include "kernel/npb/navier_stokes.hpp"
#include "kernel/npb/npb.hpp"
#include "kernel/npb/right_hand_side.hpp"

namespace fabricbench::npb::navier_stokes {

/// One class of BT or SP and the norms that its last step should leave.
struct AdiProblem {
  int points;
  double dt;
  int steps;
  State residual;
  State error;
};

template <class Method>
class AdiSolver {
 public:
  AdiSolver(MPI_Comm communicator, const AdiProblem& problem)
      : problem_(problem),
        exact_(problem.points),
        partition_(communicator, problem.points),
        faces_(partition_),
        method_(problem.points, problem.dt),
        sweep_(partition_, method_) {
    for (const auto& box : partition_.cells()) {
      u_.emplace_back(box);
      r_.emplace_back(box);
      forcing_.emplace_back(box);
      explicit_part_.emplace_back(box);
      set_forcing(box, exact_, forcing_.back());
    }
    reset();
  }

  void reset() {
    for (std::size_t cell = 0; cell < u_.size(); ++cell) set_initial(partition_.cells()[cell], exact_, u_[cell]);
  }

  /// One time step. Collective.
  void step() {
    if (partition_.slabs() == 1) {
      step_planes();
    } else {
      evaluate(problem_.dt);
      sweep_.template run<0>(u_, r_);
      sweep_.template run<1>(u_, r_);
    }
    sweep_.template run<2>(u_, r_);
  }

  /// Norms of R(U) - R(U*) and of U - U*. Collective; overwrites r.
  State residual() {
    evaluate(1);
    return norm([&](std::size_t cell, const Box& box) { return sum_of_squares(box, r_[cell]); });
  }
  State error() {
    return norm([&](std::size_t cell, const Box& box) { return sum_of_squared_errors(box, exact_, u_[cell]); });
  }

 private:
  void evaluate(double scale) {
    faces_.run(u_);
    for (std::size_t cell = 0; cell < u_.size(); ++cell) {
      explicit_part_[cell].evaluate(u_[cell], forcing_[cell], scale, r_[cell]);
    }
  }

  // On one rank nothing keeps lines along x and y from following while their plane is in the cache.
  void step_planes() {
    const auto& box = partition_.cells()[0];
    explicit_part_[0].start(u_[0], problem_.dt);
    for (int k = 0; k < box.extent[2]; ++k) {
      explicit_part_[0].evaluate_plane(u_[0], forcing_[0], k, r_[0]);
      if (k < box.inner_begin(2) || k >= box.inner_end(2)) continue;
      sweep_.template run_plane<0>(u_[0], r_[0], k);
      sweep_.template run_plane<1>(u_[0], r_[0], k);
    }
  }

  template <class Function>
  State norm(Function&& sum) {
    State total{};
    for (std::size_t cell = 0; cell < u_.size(); ++cell) {
      const State part = sum(cell, partition_.cells()[cell]);
      for (std::size_t m = 0; m < components; ++m) total[m] += part[m];
    }
    return root_mean_square(partition_.communicator(), total, problem_.points);
  }

  AdiProblem problem_;
  ExactSolution exact_;
  Multipartition partition_;
  FaceExchange faces_;
  Method method_;
  LineSweep<Method> sweep_;
  std::vector<Field> u_, r_, forcing_;
  std::vector<RightHandSide> explicit_part_;
};

/// Run one class as the specification times it: one untimed step, a fresh start, then the steps. Collective.
template <class Benchmark>
Result run_adi(MPI_Comm communicator, const AdiProblem& problem) {
  AdiSolver<typename Benchmark::Method> solver(communicator, problem);
  solver.step();
  solver.reset();

  Result result;
  TimedSection timed(communicator);
  for (int step = 0; step < problem.steps; ++step) solver.step();
  result.seconds = timed.end();

  const auto residual = solver.residual();
  const auto error = solver.error();
  const auto n = std::to_string(problem.points);
  result.operations = Benchmark::operations(problem);
  result.size = n + " x " + n + " x " + n;
  result.iterations = problem.steps;
  add_checks(result.checks, "residual", residual, problem.residual);
  add_checks(result.checks, "error", error, problem.error);
  result.fingerprint = fingerprint(error.data(), sizeof error, fingerprint(residual.data(), sizeof residual));
  return result;
}

/// BT or SP as a kernel. A benchmark has a Method, its `problem(class)` and its official count of
/// `operations(problem)`.
template <class Benchmark>
constexpr Kernel adi_kernel(std::string_view name, std::string_view summary) {
  return {
      name, summary,
      [](Class letter, int ranks) { return multipartition_refusal(Benchmark::problem(letter).points, ranks); },
      [](MPI_Comm communicator, Class letter) { return run_adi<Benchmark>(communicator, Benchmark::problem(letter)); }};
}

}  // namespace fabricbench::npb::navier_stokes
