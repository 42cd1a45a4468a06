// SP: the problem and the factorisation of BT (bt.cpp), with each factor brought to diagonal form: along a direction
// the equations are turned into the eigenvectors of the Euler flux's Jacobian, where the five components are
// independent and the fourth-difference dissipation can be treated implicitly,
//   T (I + dt L_x) N (I + dt L_y) P (I + dt L_z) Z^-1 dU = dt (R(U) - R(U*)),   U += dU,
// each L_d five scalar pentadiagonal systems for each grid line (sp_lines.cpp). Right-hand side as BT. Decomposition:
// multi-partition on q x q ranks (multipartition.hpp). A step sends six messages with the faces of U, then in each
// direction q - 1 with 22 doubles a line forwards and q - 1 with 10 doubles a line backwards: about BT's traffic for a
// quarter of its arithmetic, so the network shows more.
#include "kernel/npb/adi.hpp"
#include "kernel/npb/npb.hpp"
#include "kernel/npb/sp_lines.hpp"

namespace fabricbench::npb {
namespace {

using navier_stokes::AdiProblem;

constexpr std::array<AdiProblem, 6> problems{{
    {12,
     0.015,
     100,
     {2.7470315451339479e-02, 1.0360746705285417e-02, 1.6235745065095532e-02, 1.5840557224455615e-02,
      3.4849040609362460e-02},
     {2.7289258557377227e-05, 1.0364446640837285e-05, 1.6154798287166471e-05, 1.5750704994480102e-05,
      3.4177666183390531e-05}},
    {36,
     0.0015,
     400,
     {1.893253733584e-03, 1.717075447775e-04, 2.778153350936e-04, 2.887475409984e-04, 3.143611161242e-03},
     {7.542088599534e-05, 6.512852253086e-06, 1.049092285688e-05, 1.128838671535e-05, 1.212845639773e-04}},
    {64,
     0.0015,
     400,
     {2.4799822399300195e+00, 1.1276337964368832e+00, 1.5028977888770491e+00, 1.4217816211695179e+00,
      2.1292113035138280e+00},
     {1.0900140297820550e-04, 3.7343951769282091e-05, 5.0092785406541633e-05, 4.7671093939528255e-05,
      1.3621613399213001e-04}},
    {102,
     0.001,
     400,
     {6.903293579998e+01, 3.095134488084e+01, 4.103336647017e+01, 3.864769009604e+01, 5.643482272596e+01},
     {9.810006190188e-03, 1.022827905670e-03, 1.720597911692e-03, 1.694479428231e-03, 1.847456263981e-02}},
    {162,
     0.00067,
     400,
     {5.881691581829e+02, 2.454417603569e+02, 3.293829191851e+02, 3.081924971891e+02, 4.597223799176e+02},
     {2.598120500183e-01, 2.590888922315e-02, 5.132886416320e-02, 4.806073419454e-02, 5.483377491301e-01}},
    {408,
     0.0003,
     500,
     {1.044696216887e+04, 3.204427762578e+03, 4.648680733032e+03, 4.238923283697e+03, 7.588412036136e+03},
     {5.089471423669e+00, 5.323514855894e-01, 1.187051008971e+00, 1.083734951938e+00, 1.164108338568e+01}},
}};

struct Sp {
  static const AdiProblem& problem(Class letter) { return of_class(problems, letter); }
  static double operations(const AdiProblem& problem) {
    const double n = problem.points;
    return problem.steps * (-19272.4 + n * (11484.5 + n * (-4683.91 + n * 881.174)));
  }
  using Method = navier_stokes::Pentadiagonals;
};

}  // namespace

const Kernel sp =
    navier_stokes::adi_kernel<Sp>("sp", "Navier-Stokes, scalar pentadiagonal lines: many messages to six neighbours");

}  // namespace fabricbench::npb
