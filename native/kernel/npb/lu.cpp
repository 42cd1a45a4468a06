// LU: the compressible Navier-Stokes equations, implicit in time, by symmetric successive over-relaxation.
//
// A time step solves K dU = dt (R(U) - R(U*)), K = I - dt dR/dU without the fourth differences, approximately: with the
// neighbours' blocks below (A), above (B) and the diagonal block D of K, one sweep each way of SSOR,
//   (D + omega A) D^-1 (D + omega B) dU = omega (2 - omega) dt (R(U) - R(U*)).
// Lower sweep: v = D^-1 (dt r - omega A v), points in ascending order; upper sweep: v -= D^-1 omega B v, descending.
// A point needs its neighbours at i-1, j-1 and k-1 first, so work moves through the grid as a wavefront of hyperplanes
// i + j + k = const. Ranks hold columns along z (a 2-D grid of tiles over x and y) and pass the wavefront on plane by
// plane: per step about 2n messages of 5n/px or 5n/py doubles to each neighbour, which makes LU the benchmark that
// feels latency most. SIMD lanes pass it on in the same way (lu_tile.hpp). Nothing of K is stored: its blocks act
// as products formed from one point's state (lu_sweep.hpp), the right-hand side is formed row by row where the lower
// sweep uses it (lu_operator.hpp), and the upper sweep updates U; a step reads U twice and v once, and writes each
// once.
#include <array>

#include "kernel/npb/lu_solver.hpp"
#include "kernel/npb/npb.hpp"

namespace fabricbench::npb {
namespace {

using navier_stokes::State;

struct Problem {
  int points;
  double dt;
  int steps;
  State residual;
  State error;
  double surface_integral;
};

constexpr std::array<Problem, 6> problems{{
    {12,
     0.5,
     50,
     {1.6196343210976702e-02, 2.1976745164821318e-03, 1.5179927653399185e-03, 1.5029584435994323e-03,
      3.4264073155896461e-02},
     {6.4223319957960924e-04, 8.4144342047347926e-05, 5.8588269616485186e-05, 5.8474222595157350e-05,
      1.3103347914111294e-03},
     7.8418928865937083e+00},
    {33,
     0.0015,
     300,
     {1.236511638192e+01, 1.317228477799e+00, 2.550120713095e+00, 2.326187750252e+00, 2.826799444189e+01},
     {4.867877144216e-01, 5.064652880982e-02, 9.281818101960e-02, 8.570126542733e-02, 1.084277417792e+00},
     1.161399311023e+01},
    {64,
     2.0,
     250,
     {7.7902107606689367e+02, 6.3402765259692870e+01, 1.9499249727292479e+02, 1.7845301160418537e+02,
      1.8384760349464247e+03},
     {2.9964085685471943e+01, 2.8194576365003349e+00, 7.3473412698774742e+00, 6.7139225687777051e+00,
      7.0715315688392578e+01},
     2.6030925604886277e+01},
    {102,
     2.0,
     250,
     {3.5532672969982736e+03, 2.6214750795310692e+02, 8.8333721850952190e+02, 7.7812774739425265e+02,
      7.3087969592545314e+03},
     {1.1401176380212709e+02, 8.1098963655421574e+00, 2.8480597317698308e+01, 2.5905394567832939e+01,
      2.6054907504857413e+02},
     4.7887162703308227e+01},
    {162,
     2.0,
     250,
     {1.03766980323537846e+04, 8.92212458801008552e+02, 2.56238814582660871e+03, 2.19194343857831427e+03,
      1.78078057261061185e+04},
     {2.15986399716949279e+02, 1.55789559239863600e+01, 5.41318863077207766e+01, 4.82262643154045421e+01,
      4.55902910043250358e+02},
     6.66404553572181300e+01},
    {408,
     1.0,
     300,
     {4.868417937025e+04, 4.696371050071e+03, 1.218114549776e+04, 1.033801493461e+04, 7.142398413817e+04},
     {3.752393004482e+02, 3.084128893659e+01, 9.434276905469e+01, 8.230686681928e+01, 7.002620636210e+02},
     8.334101392503e+01},
}};

constexpr double tolerance = 1e-8;
constexpr int largest_listed = 64;

std::optional<std::string> refusal(Class name, int ranks) {
  const auto& problem = of_class(problems, name);
  if (ssor::process_grid(problem.points, ranks)) return std::nullopt;
  std::string counts;
  for (int count = 1; count <= largest_listed; ++count) {
    if (ssor::process_grid(problem.points, count)) counts += (count > 1 ? ", " : "") + std::to_string(count);
  }
  return "lu deals " + std::to_string(problem.points - 2) + " x " + std::to_string(problem.points - 2) +
         " columns in px x py tiles of at least 2 x 2, which " + std::to_string(ranks) + " ranks do not allow; up to " +
         std::to_string(largest_listed) + " ranks, these do: " + counts;
}

double operations(const Problem& problem) {
  const double n = problem.points;
  return problem.steps * (((1984.77 * n - 10923.3) * n + 27770.9) * n - 144010);
}

Result run(MPI_Comm communicator, Class name) {
  const auto& problem = of_class(problems, name);
  int ranks = 0;
  MPI_Comm_size(communicator, &ranks);
  const ssor::Tile tile(communicator, problem.points, ssor::process_grid(problem.points, ranks).value());
  ssor::Solver solver(tile, problem.dt);

  solver.set_initial();
  solver.step();  // warms up memory, caches and connections
  solver.set_initial();
  TimedSection timed(communicator);
  for (int step = 0; step < problem.steps; ++step) solver.step();
  const State residual = solver.residual();
  const double seconds = timed.end();

  const State error = solver.error();
  const double integral = solver.surface_integral();
  Result result;
  result.seconds = seconds;
  result.operations = operations(problem);
  const auto edge = std::to_string(problem.points);
  result.size = edge + " x " + edge + " x " + edge;
  result.iterations = problem.steps;
  navier_stokes::add_checks(result.checks, "residual", residual, problem.residual);
  navier_stokes::add_checks(result.checks, "error", error, problem.error);
  result.checks.push_back({"surface integral", integral, problem.surface_integral, tolerance});
  result.fingerprint = fingerprint(residual.data(), sizeof residual);
  result.fingerprint = fingerprint(error.data(), sizeof error, result.fingerprint);
  result.fingerprint = fingerprint(&integral, sizeof integral, result.fingerprint);
  return result;
}

}  // namespace

const Kernel lu{"lu", "SSOR on the Navier-Stokes equations: trains of small messages to the nearest neighbours",
                refusal, run};

}  // namespace fabricbench::npb
