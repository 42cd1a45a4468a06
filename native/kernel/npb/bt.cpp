// BT: the compressible Navier-Stokes equations (navier_stokes.hpp) stepped to a steady state by Beam and Warming's
// approximate factorisation of the implicit operator into one factor for each direction,
//   (I + dt D_x)(I + dt D_y)(I + dt D_z) dU = dt (R(U) - R(U*)),   U += dU,
// each factor a set of block-tridiagonal systems with 5 x 5 blocks, one for each grid line (bt_lines.cpp). Right-hand
// side by second- and fourth-order central differences (right_hand_side.cpp). Decomposition: multi-partition on q x q
// ranks (multipartition.hpp), so that each of a sweep's q stages occupies all ranks. A step sends six messages with the
// faces of U, then in each direction q - 1 with 30 doubles a line forwards and q - 1 with 5 doubles a line backwards.
// NAS-95-020 tells the implementation that the published operation count and norms stem from.
#include "kernel/npb/adi.hpp"
#include "kernel/npb/bt_lines.hpp"
#include "kernel/npb/npb.hpp"

namespace fabricbench::npb {
namespace {

using navier_stokes::AdiProblem;

constexpr std::array<AdiProblem, 6> problems{{
    {12,
     0.010,
     60,
     {1.7034283709541311e-01, 1.2975252070034097e-02, 3.2527926989486055e-02, 2.6436421275166801e-02,
      1.9211784131744430e-01},
     {4.9976913345811579e-04, 4.5195666782961927e-05, 7.3973765172921357e-05, 7.3821238632439731e-05,
      8.9269630987491446e-04}},
    {24,
     0.0008,
     200,
     {1.125590409344e+02, 1.180007595731e+01, 2.710329767846e+01, 2.469174937669e+01, 2.638427874317e+02},
     {4.419655736008e+00, 4.638531260002e-01, 1.011551749967e+00, 9.235878729944e-01, 1.018045837718e+01}},
    {64,
     0.0008,
     200,
     {1.0806346714637264e+02, 1.1319730901220813e+01, 2.5974354511582465e+01, 2.3665622544678910e+01,
      2.5278963211748344e+02},
     {4.2348416040525025e+00, 4.4390282496995698e-01, 9.6692480136345650e-01, 8.8302063039765474e-01,
      9.7379901770829278e+00}},
    {102,
     0.0003,
     200,
     {1.4233597229287254e+03, 9.9330522590150238e+01, 3.5646025644535285e+02, 3.2485447959084092e+02,
      3.2707541254659363e+03},
     {5.2969847140936856e+01, 4.4632896115670668e+00, 1.3122573342210174e+01, 1.2006925323559144e+01,
      1.2459576151035986e+02}},
    {162,
     0.0001,
     200,
     {6.2398116551764615e+03, 5.0793239190423964e+02, 1.5423530093013596e+03, 1.3302387929291190e+03,
      1.1604087428436455e+04},
     {1.6462008369091265e+02, 1.1497107903824313e+01, 4.1207446207461508e+01, 3.7087651059694167e+01,
      3.6211053051841265e+02}},
    {408,
     0.00002,
     250,
     {2.533188551738e+04, 2.346393716980e+03, 6.294554366904e+03, 5.352565376030e+03, 3.905864038618e+04},
     {3.100009377557e+02, 2.424086324913e+01, 7.782212022645e+01, 6.835623860116e+01, 6.065737200368e+02}},
}};

struct Bt {
  static const AdiProblem& problem(Class letter) { return of_class(problems, letter); }
  static double operations(const AdiProblem& problem) {
    const double n = problem.points;
    return problem.steps * n * (28023.7 + n * (-17655.7 + n * 3478.8));
  }
  using Method = navier_stokes::BlockTridiagonal;
};

}  // namespace

const Kernel bt =
    navier_stokes::adi_kernel<Bt>("bt", "Navier-Stokes, block-tridiagonal lines: large messages to six neighbours");

}  // namespace fabricbench::npb
