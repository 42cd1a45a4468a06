// Written for the vectoriser: no branch, no call, and no dependence between lanes in the loop over lanes.
//
// The generator. Let r be the residue of u modulo 1 that is nearest to 0, so that r = u or r = u - 1. Then
// a r - round(a r) is such a residue of the next u, and a fused multiply-add yields it exactly: it is a multiple of
// 2^-46 of magnitude just over 1/2. The product a r itself is rounded, which can only move round(a r) to the
// neighbouring integer when a r is close to the middle of both. With a^(2 lanes) for a, each lane goes on to its own
// next pair. EP needs x = 2u - 1 up to its sign only, and |x| = |1 - 2|r||.
//
// The deviates. f = sqrt(-2 ln t / t) for t = x^2 + y^2 <= 1. With t = 2^k m, sqrt(1/2) <= m < sqrt(2), and
// s = (m - 1) / (m + 1): ln t = k ln 2 + 2 artanh s. One division serves both quotients: q = 1 / (t (m + 1)) gives
// 1/t = (m + 1) q and 1/(m + 1) = t q. A pair that is not accepted is given t = 1, whose f is 0: it adds nothing to the
// sums, and is taken out of ring 0 at the end.
//
// The rings. A lane counts in ten fields of five bits: a pair in ring l adds 2^(5l) to a double, which is exact as long
// as it stays below 2^53. Before a field can overflow, the fields go into ones of twice the width, which last for a
// batch.
#include "kernel/npb/ep_batch.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <numbers>

#include "kernel/npb/random.hpp"

namespace fabricbench::npb {

namespace {

// Few enough for the state to stay in the nearest cache, and as many as make a batch end when the wide fields are full.
constexpr std::size_t lanes = 128;
constexpr std::size_t batch_steps = (std::size_t{1} << ep_log2_batch_pairs) / lanes;

constexpr unsigned field_bits = 5;
constexpr unsigned wide_field_bits = 2 * field_bits;
constexpr std::size_t steps_per_widening = 16;
constexpr std::uint64_t wide_field_mask = (1U << wide_field_bits) - 1;
constexpr std::uint64_t even_fields = 0x1fU * 0x10040100401U;  // fields 0, 2, 4, 6, 8
static_assert(steps_per_widening < (1U << field_bits) && batch_steps % steps_per_widening == 0);
static_assert(batch_steps <= wide_field_mask);

constexpr double integer_in_mantissa = 0x1p52;  // plus an integer below it: a double whose low bits are the integer
constexpr unsigned mantissa_bits = 52;
constexpr unsigned exponent_bias = 1023;

template <typename T>
using Lanes = std::array<T, lanes>;

struct alignas(64) State {
  Lanes<double> x, y;              // residues of u_{2j+1} and u_{2j+2}
  Lanes<double> sum_x{}, sum_y{};  // of |X| and |Y|
  Lanes<double> fields{};          // pairs in each ring since the last widening
  Lanes<std::uint64_t> wide_even{}, wide_odd{};
  Lanes<std::uint64_t> rejections{};
};

State start_of(std::uint64_t batch) {
  State state;
  Random random(ep_seed);
  random.skip(batch << (ep_log2_batch_pairs + 1));
  const auto residue = [&random] {
    const double u = random.next();
    return u > 0.5 ? u - 1 : u;
  };
  for (std::size_t l = 0; l < lanes; ++l) {
    state.x[l] = residue();
    state.y[l] = residue();
  }
  return state;
}

#ifdef __FP_FAST_FMA
inline double multiply_add(double a, double b, double c) { return std::fma(a, b, c); }
inline double floor_of(double value) { return std::floor(value); }
inline double next_residue(double multiplier, double r) { return std::fma(multiplier, r, -std::rint(multiplier * r)); }
#else
// Processors before x86-64-v3 neither fuse nor round to an integer, and a call for each number would take the time of
// thirty. To add 1.5 x 2^(52 + k) and to take it away again rounds a smaller number to a multiple of 2^k.
inline double rounded_by(double magic, double value) { return value + magic - magic; }
constexpr double to_integers = 0x1.8p52;
inline double multiply_add(double a, double b, double c) { return a * b + c; }
inline double floor_of(double value) {
  const double nearest = rounded_by(to_integers, value);
  return nearest > value ? nearest - 1 : nearest;
}
// Both factors in halves of 23 bits, whose products are exact: that of the upper halves is an integer and left out.
inline double next_residue(double multiplier, double r) {
  const double upper_multiplier = rounded_by(0x1.8p75, multiplier);
  const double upper_r = rounded_by(0x1.8p29, r);
  const double lower_multiplier = multiplier - upper_multiplier;
  const double lower_r = r - upper_r;
  const double middle = upper_multiplier * lower_r + lower_multiplier * upper_r;
  const double residue = middle - rounded_by(to_integers, middle) + lower_multiplier * lower_r;
  return residue - rounded_by(to_integers, residue);
}
#endif

// 2^(field_bits * ring): the exponent is put together as an integer and moved to where a double has it.
inline double one_in_field(double ring) {
  const double exponent = multiply_add(ring, field_bits, integer_in_mantissa + exponent_bias);
  return std::bit_cast<double>(std::bit_cast<std::uint64_t>(exponent) << mantissa_bits);
}

// What one step of all lanes hands from one loop to the next.
struct alignas(64) Pairs {
  Lanes<double> x, y;  // |x|, |y|
  Lanes<double> t;     // x^2 + y^2, or 1 if that is larger
  Lanes<double> inverse_t, s, k_log_2;
  Lanes<double> square_of_factor;
};

void draw(State& state, Pairs& pairs, double multiplier) {
  double* const residue_x = state.x.data();
  double* const residue_y = state.y.data();
  std::uint64_t* const rejections = state.rejections.data();
  double* const xs = pairs.x.data();
  double* const ys = pairs.y.data();
  double* const ts = pairs.t.data();
  for (std::size_t l = 0; l < lanes; ++l) {
    const double x = std::abs(1 - 2 * std::abs(residue_x[l]));
    const double y = std::abs(1 - 2 * std::abs(residue_y[l]));
    residue_x[l] = next_residue(multiplier, residue_x[l]);
    residue_y[l] = next_residue(multiplier, residue_y[l]);
    const double square = x * x + y * y;
    const bool is_rejected = square > 1;
    xs[l] = x;
    ys[l] = y;
    ts[l] = is_rejected ? 1 : square;
    rejections[l] += is_rejected ? 1U : 0U;
  }
}

// t = 2^k m gives k ln 2, s = (m - 1) / (m + 1) and 1 / t.
void split(Pairs& pairs) {
  constexpr std::uint64_t sqrt_half = std::bit_cast<std::uint64_t>(0.5 * std::numbers::sqrt2);
  constexpr std::uint64_t one = std::bit_cast<std::uint64_t>(1.0);
  constexpr std::uint64_t mantissa = (std::uint64_t{1} << mantissa_bits) - 1;
  const double* const ts = pairs.t.data();
  double* const inverse_t = pairs.inverse_t.data();
  double* const s = pairs.s.data();
  double* const k_log_2 = pairs.k_log_2.data();
  for (std::size_t l = 0; l < lanes; ++l) {
    const double t = ts[l];
    // As an unsigned number, the exponent of a double between sqrt(1/2) and sqrt(2) becomes that of 1.
    const std::uint64_t shifted = std::bit_cast<std::uint64_t>(t) + (one - sqrt_half);
    const double m = std::bit_cast<double>((shifted & mantissa) + sqrt_half);
    const auto biased_k = shifted >> mantissa_bits | std::bit_cast<std::uint64_t>(integer_in_mantissa);
    k_log_2[l] = (std::bit_cast<double>(biased_k) - (integer_in_mantissa + exponent_bias)) * std::numbers::ln2;
    const double q = 1 / (t * (m + 1));
    inverse_t[l] = (m + 1) * q;
    s[l] = (m - 1) * (t * q);
  }
}

// -2 ln t / t, with 2 artanh s = 2s + s z P(z), z = s^2: Chebyshev interpolation of P, relative error of the whole
// 2^-57.
void square_factors(Pairs& pairs) {
  const double* const ss = pairs.s.data();
  const double* const k_log_2 = pairs.k_log_2.data();
  const double* const inverse_t = pairs.inverse_t.data();
  double* const square = pairs.square_of_factor.data();
  for (std::size_t l = 0; l < lanes; ++l) {
    const double s = ss[l];
    const double z = s * s;
    double p = 0.14616449685043406;
    p = multiply_add(p, z, 0.15331721600556042);
    p = multiply_add(p, z, 0.18182889125261723);
    p = multiply_add(p, z, 0.2222221113479508);
    p = multiply_add(p, z, 0.28571428625975487);
    p = multiply_add(p, z, 0.39999999999899505);
    p = multiply_add(p, z, 0.666666666666667);
    const double log_t = multiply_add(s * z, p, 2 * s) + k_log_2[l];
    square[l] = -2 * log_t * inverse_t[l];
  }
}

void tally_step(State& state, const Pairs& pairs) {
  const double* const x = pairs.x.data();
  const double* const y = pairs.y.data();
  const double* const square = pairs.square_of_factor.data();
  double* const sum_x = state.sum_x.data();
  double* const sum_y = state.sum_y.data();
  double* const fields = state.fields.data();
  for (std::size_t l = 0; l < lanes; ++l) {
    const double f = std::sqrt(square[l]);
    const double deviate_x = x[l] * f;
    const double deviate_y = y[l] * f;
    sum_x[l] += deviate_x;
    sum_y[l] += deviate_y;
    fields[l] += one_in_field(floor_of(deviate_x > deviate_y ? deviate_x : deviate_y));
  }
}

inline void step(State& state, double multiplier) {
  Pairs pairs;
  draw(state, pairs, multiplier);
  split(pairs);
  square_factors(pairs);
  tally_step(state, pairs);
}

void widen(State& state) {
  double* const fields = state.fields.data();
  std::uint64_t* const even = state.wide_even.data();
  std::uint64_t* const odd = state.wide_odd.data();
  for (std::size_t l = 0; l < lanes; ++l) {
    const auto bits = std::bit_cast<std::uint64_t>(fields[l] + integer_in_mantissa);
    even[l] += bits & even_fields;
    odd[l] += bits >> field_bits & even_fields;
    fields[l] = 0;
  }
}

GaussianTally tally_of(const State& state) {
  GaussianTally tally;
  for (std::size_t l = 0; l < lanes; ++l) {
    tally.sum_x += state.sum_x[l];
    tally.sum_y += state.sum_y[l];
    tally.rings[0] -= state.rejections[l];
    for (std::size_t pair = 0; pair < tally.rings.size() / 2; ++pair) {
      tally.rings[2 * pair] += state.wide_even[l] >> (wide_field_bits * pair) & wide_field_mask;
      tally.rings[2 * pair + 1] += state.wide_odd[l] >> (wide_field_bits * pair) & wide_field_mask;
    }
  }
  return tally;
}

}  // namespace

void GaussianTally::add(const GaussianTally& other) {
  sum_x += other.sum_x;
  sum_y += other.sum_y;
  for (std::size_t ring = 0; ring < rings.size(); ++ring) rings[ring] += other.rings[ring];
}

GaussianTally tally_batch(std::uint64_t batch) {
  constexpr auto multiplier = static_cast<double>(random_power(2 * lanes));
  State state = start_of(batch);
  for (std::size_t done = 0; done < batch_steps; done += steps_per_widening) {
    for (std::size_t i = 0; i < steps_per_widening; ++i) step(state, multiplier);
    widen(state);
  }
  return tally_of(state);
}

}  // namespace fabricbench::npb
