#include "kernel/npb/lu_sweep.hpp"

namespace fabricbench::npb::ssor {

using namespace navier_stokes;

SweepCoefficients::SweepCoefficients(int points, double step) : dt(step) {
  const Spacing h(points);
  const double diffusion = dt * h.t1;
  euler = omega * dt * h.t2;
  for (std::size_t d = 0; d < 3; ++d) dissipation[d] = omega * diffusion * second[d];
  viscous = omega * diffusion * c3c4;
  viscous_energy = omega * diffusion * (c3c4 - heat);
  conduction = omega * diffusion * heat;
  // D sums over the directions; each momentum is along its own in one of three.
  diagonal = 1 + 2 * diffusion * (second[0] + second[1] + second[2]);
  diagonal_momentum = 2 * diffusion * c3c4 * (along + 2);
  diagonal_energy = 2 * diffusion * 3 * heat;
  diagonal_work = 2 * diffusion * (c3c4 * (along + 2) - 3 * heat);
}

}  // namespace fabricbench::npb::ssor
