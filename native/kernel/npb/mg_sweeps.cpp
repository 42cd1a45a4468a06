#include "kernel/npb/mg_sweeps.hpp"

#include <algorithm>
#include <utility>

#include "kernel/npb/lanes.hpp"

namespace fabricbench::npb::multigrid {

namespace {

constexpr auto step = static_cast<std::ptrdiff_t>(lanes);
constexpr std::ptrdiff_t margin = 8;  // before the first own point of a line of scratch, and more behind

constexpr std::ptrdiff_t round_up(std::ptrdiff_t value, std::ptrdiff_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

/// Lines j-1, j, j+1, j+2 on planes k-1, k, k+1: what the operators need for lines j and j+1 of plane k.
using Neighbourhood = std::array<std::array<const double*, 4>, 3>;

template <class Lines>
Neighbourhood neighbourhood(const Lines& lines, std::ptrdiff_t j, std::ptrdiff_t k) {
  Neighbourhood near{};
  for (std::size_t plane = 0; plane < near.size(); ++plane) {
    for (std::size_t line = 0; line < near[plane].size(); ++line) {
      near[plane][line] =
          lines.line(j - 1 + static_cast<std::ptrdiff_t>(line), k - 1 + static_cast<std::ptrdiff_t>(plane));
    }
  }
  return near;
}

/// Which lines of the next two to fetch while these two are computed: lines are too short for the processor to notice
/// in time that it should. `from` alone where x was just computed.
enum class Prefetched { nothing, from, both };

/// to = from + T x in [begin, end) of two lines, which share half of what they read. Per point of a line, `faces` and
/// `edges` are the sums of the four neighbours at the faces and the edges of the square around the line; `centre` is
/// what the point's result takes from them, `side` what the results of both its neighbours along the line take,
/// computed once. `scratch` is the first of four lines.
template <bool has_faces, bool has_corners, Prefetched prefetched>
void apply(const Stencil& stencil, const Neighbourhood& x, const std::array<const double*, 2>& from,
           const std::array<double*, 2>& to, std::ptrdiff_t begin, std::ptrdiff_t end, double* __restrict scratch,
           std::ptrdiff_t stride = 0) {
  const auto& [below, here, above] = x;
  const auto [at_point, at_face, at_edge, at_corner] = stencil;
  const auto centre = [=](Lanes point, Lanes faces, Lanes edges) {
    const Lanes sum = at_point * point + at_edge * edges;
    return has_faces ? sum + at_face * faces : sum;
  };
  const auto side = [=](Lanes point, Lanes faces, Lanes edges) {
    Lanes sum = at_edge * faces;
    if constexpr (has_faces) sum += at_face * point;
    if constexpr (has_corners) sum += at_corner * edges;
    return sum;
  };
  double* const side0 = scratch;
  double* const side1 = scratch + Sweeps::scratch_stride;
  double* const centre0 = scratch + 2 * Sweeps::scratch_stride;
  double* const centre1 = scratch + 3 * Sweeps::scratch_stride;
  for (std::ptrdiff_t i = -step; i <= end; i += step) {  // past the end: lines are stored with room for it
    if constexpr (prefetched == Prefetched::both) {
      __builtin_prefetch(above[3] + stride + i);
      __builtin_prefetch(above[3] + 2 * stride + i);
    }
    if constexpr (prefetched != Prefetched::nothing) {
      __builtin_prefetch(from[1] + stride + i);
      __builtin_prefetch(from[1] + 2 * stride + i);
    }
    const Lanes s0 = load(below[0] + i) + load(above[0] + i);
    const Lanes s1 = load(below[1] + i) + load(above[1] + i);
    const Lanes s2 = load(below[2] + i) + load(above[2] + i);
    const Lanes s3 = load(below[3] + i) + load(above[3] + i);
    const Lanes h1 = load(here[1] + i);
    const Lanes h2 = load(here[2] + i);
    const Lanes faces0 = load(here[0] + i) + h2 + s1;
    const Lanes faces1 = load(here[3] + i) + h1 + s2;
    store(side0 + i, side(h1, faces0, s0 + s2));
    store(side1 + i, side(h2, faces1, s1 + s3));
    store(centre0 + i, load(from[0] + i) + centre(h1, faces0, s0 + s2));
    store(centre1 + i, load(from[1] + i) + centre(h2, faces1, s1 + s3));
  }
  double* const __restrict to0 = to[0], * const __restrict to1 = to[1];
  for (std::ptrdiff_t i = begin; i < end; ++i) {
    to0[i] = centre0[i] + (side0[i - 1] + side0[i + 1]);
    to1[i] = centre1[i] + (side1[i - 1] + side1[i + 1]);
  }
}

template <Prefetched prefetched>
void residual(const Neighbourhood& u, const Field& v, std::ptrdiff_t j, std::ptrdiff_t k,
              const std::array<double*, 2>& r, double* scratch) {
  constexpr Stencil negated{-laplacian[0], -laplacian[1], -laplacian[2], -laplacian[3]};
  apply<false, true, prefetched>(negated, u, {v.line(j, k), v.line(j + 1, k)}, r, -1, v.size(0) + 1, scratch,
                                 v.line_stride());
}

double squared(const double* line, std::ptrdiff_t size) {
  Lanes total{};
  std::ptrdiff_t i = 0;
  for (; i + step <= size; i += step) total += load(line + i) * load(line + i);
  double rest = 0;
  for (; i < size; ++i) rest += line[i] * line[i];
  return sum(total) + rest;
}

/// Full weighting is the tensor product of (1/4, 1/2, 1/4) times 4: here across y and x, for one of its three planes.
void restrict_lines(const double* low, const double* middle, const double* high, double* __restrict across,
                    double* __restrict result, std::ptrdiff_t size) {
  for (std::ptrdiff_t i = 0; i <= 2 * size; ++i) across[i] = middle[i] + 0.5 * (low[i] + high[i]);
  for (std::ptrdiff_t i = 0; i < size; ++i) {
    result[i] = 0.5 * across[2 * i + 1] + 0.25 * (across[2 * i] + across[2 * i + 2]);
  }
}

/// Give a line, restricted on plane k, to the coarse planes that it belongs to. Planes come in ascending order.
void deposit(const double* __restrict line, std::ptrdiff_t k, std::ptrdiff_t coarse_j, Field& coarse) {
  const std::ptrdiff_t size = coarse.size(0);
  const std::ptrdiff_t above = k / 2;  // the coarse plane at k, or that between whose planes and the one below k lies
  if (k % 2 != 0) {
    double* const to = coarse.line(coarse_j, above);
    for (std::ptrdiff_t i = 0; i < size; ++i) to[i] += line[i];
    return;
  }
  if (above > 0) {
    double* const to = coarse.line(coarse_j, above - 1);
    for (std::ptrdiff_t i = 0; i < size; ++i) to[i] += 0.5 * line[i];
  }
  if (above < coarse.size(2)) {
    double* const to = coarse.line(coarse_j, above);
    for (std::ptrdiff_t i = 0; i < size; ++i) to[i] = 0.5 * line[i];
  }
}

/// u = Q z or u += Q z on a line with its two ghosts. Odd points lie on coarse ones, the others between two.
template <bool added>
void prolong_line(double* __restrict u, std::ptrdiff_t stride, const Field& z, const Offset& z_offset, std::ptrdiff_t j,
                  std::ptrdiff_t k, std::ptrdiff_t coarse_size, double* __restrict across) {
  const auto coarse = [](std::ptrdiff_t fine) { return (fine + 2 * ghosts) / 2 - ghosts; };  // rounds down
  const bool is_between_j = j % 2 == 0;
  const bool is_between_k = k % 2 == 0;
  const std::ptrdiff_t z_j = coarse(j) + z_offset[1];
  const std::ptrdiff_t z_k = coarse(k) + z_offset[2];
  const double* const z00 = z.line(is_between_j ? z_j - 1 : z_j, is_between_k ? z_k - 1 : z_k) + z_offset[0];
  const double* const z10 = z.line(z_j, is_between_k ? z_k - 1 : z_k) + z_offset[0];
  const double* const z01 = z.line(is_between_j ? z_j - 1 : z_j, z_k) + z_offset[0];
  const double* const z11 = z.line(z_j, z_k) + z_offset[0];
  if (is_between_j && is_between_k) {
    for (std::ptrdiff_t i = -2; i <= coarse_size; ++i) across[i] = 0.25 * (z00[i] + z10[i] + z01[i] + z11[i]);
  } else {
    for (std::ptrdiff_t i = -2; i <= coarse_size; ++i) across[i] = 0.5 * (z00[i] + z11[i]);
  }
  const auto prolong = [&](std::ptrdiff_t i) {
    const double between = 0.5 * (across[i] + across[i + 1]);
    const double on = across[i + 1];
    u[2 * i + 2] = added ? u[2 * i + 2] + between : between;
    u[2 * i + 3] = added ? u[2 * i + 3] + on : on;
  };
  prolong(-2);
  std::ptrdiff_t i = -1;
  for (; i + step <= coarse_size; i += step) {
    double* const to = u + 2 * i + 2;
    if constexpr (added) __builtin_prefetch(to + 2 * stride);  // lines come in twos, see Prefetched
    const Lanes on = load(across + i + 1);
    const auto [low, high] = interleave(0.5 * (load(across + i) + on), on);
    store(to, added ? load(to) + low : low);
    store(to + step, added ? load(to + step) + high : high);
  }
  for (; i < coarse_size; ++i) prolong(i);
}

}  // namespace

/// The residual of a strip of lines while a sweep ascends its planes. Strips lie skewed: with lines up to j smoothed,
/// the residual is known up to j+2 and the prolongation up to j+4 on the planes above. So the next strip needs of this
/// one nothing but the residual on its last two lines, on all planes.
class Sweeps::Strip {
 public:
  Strip(Sweeps& sweeps, std::ptrdiff_t planes)
      : planes_(sweeps.strip_planes_.data()),
        before_(sweeps.carried_.data()),
        after_(before_ + 2 * (planes + 2) * sweeps.stride_),
        stride_(sweeps.stride_) {}

  /// The strip whose smoothed lines are [begin, end).
  void move_to(std::ptrdiff_t begin, std::ptrdiff_t end) {
    begin_ = begin;
    end_ = end;
    std::swap(before_, after_);
  }
  double* line(std::ptrdiff_t j, std::ptrdiff_t k) const {
    if (j <= begin_) return before_ + (2 * (k + 1) + j - (begin_ - 1)) * stride_ + margin;
    if (j >= end_ - 1) return after_ + (2 * (k + 1) + j - (end_ - 1)) * stride_ + margin;
    return planes_ + ((k + 1) % 3 * largest_strip + j - begin_) * stride_ + margin;
  }

  static constexpr std::ptrdiff_t largest_strip = 64;

 private:
  double* planes_;
  double* before_;
  double* after_;
  std::ptrdiff_t stride_;
  std::ptrdiff_t begin_ = 0;
  std::ptrdiff_t end_ = 0;
};

Sweeps::Sweeps(std::ptrdiff_t points, std::ptrdiff_t planes, const Stencil& smoother)
    : smoother_(smoother),
      stride_(round_up(points + 3 * margin, margin)),
      lines_(static_cast<std::size_t>(scratch_lines * scratch_stride)),
      strip_planes_(static_cast<std::size_t>(3 * Strip::largest_strip * stride_)),
      carried_(static_cast<std::size_t>(4 * (planes + 2) * stride_)) {}

double* Sweeps::scratch(std::ptrdiff_t line) { return lines_.data() + line * scratch_stride + margin; }

double Sweeps::squared_residual(const Field& u, const Field& v) {
  double total = 0;
  const std::array<double*, 2> r{scratch(4), scratch(5)};
  for (std::ptrdiff_t k = 0; k < v.size(2); ++k) {
    for (std::ptrdiff_t j = 0; j < v.size(1); j += 2) {
      residual<Prefetched::both>(neighbourhood(u, j, k), v, j, k, r, scratch(0));
      for (const double* line : r) total += squared(line, v.size(0));
    }
  }
  return total;
}

void Sweeps::restrict_residual(const Field& u, const Field& v, Field& coarse, double* squared_sum) {
  double total = 0;
  double* low = scratch(4);
  double* const middle = scratch(5);
  double* high = scratch(6);
  for (std::ptrdiff_t k = 0; k <= v.size(2); ++k) {
    for (std::ptrdiff_t j = -1; j < v.size(1); j += 2) {
      residual<Prefetched::both>(neighbourhood(u, j, k), v, j, k, {middle, high}, scratch(0));
      if (squared_sum != nullptr && k < v.size(2)) {
        if (j > 0) total += squared(middle, v.size(0));
        if (j + 1 < v.size(1)) total += squared(high, v.size(0));
      }
      if (j > 0) {
        restrict_lines(low, middle, high, scratch(0), scratch(1), coarse.size(0));
        deposit(scratch(1), k, j / 2, coarse);
      }
      std::swap(low, high);
    }
  }
  if (squared_sum != nullptr) *squared_sum = total;
}

void Sweeps::restrict_field(const Field& r, Field& coarse) {
  for (std::ptrdiff_t k = 0; k <= r.size(2); ++k) {
    for (std::ptrdiff_t j = 1; j < r.size(1); j += 2) {
      restrict_lines(r.line(j - 1, k), r.line(j, k), r.line(j + 1, k), scratch(0), scratch(1), coarse.size(0));
      deposit(scratch(1), k, j / 2, coarse);
    }
  }
}

void Sweeps::smooth(const Field& r, Field& u) {
  u.clear();
  for (std::ptrdiff_t k = 0; k < u.size(2); ++k) {
    for (std::ptrdiff_t j = 0; j < u.size(1); j += 2) smooth_lines(neighbourhood(r, j, k), u, j, k);
  }
}

void Sweeps::smooth_lines(const std::array<std::array<const double*, 4>, 3>& r, Field& u, std::ptrdiff_t j,
                          std::ptrdiff_t k) {
  const std::array<double*, 2> to{u.line(j, k), u.line(j + 1, k)};
  apply<true, false, Prefetched::nothing>(smoother_, r, {to[0], to[1]}, to, 0, u.size(0), scratch(0));
}

void Sweeps::correct(Field& u, const Field& v, const Field& z, const Offset& z_offset, bool added) {
  const std::ptrdiff_t lines = u.size(1);
  const std::ptrdiff_t planes = u.size(2);
  Strip r(*this, planes);
  for (std::ptrdiff_t begin = -4; begin < lines; begin += strip_lines_) {
    const std::ptrdiff_t end = std::min(begin + strip_lines_, lines);
    r.move_to(begin, end);
    for (std::ptrdiff_t k = -2; k < planes + 2; ++k) {
      for (std::ptrdiff_t j = begin; j < end; j += 2) {
        for (const std::ptrdiff_t prolonged : {j + 2, j + 3}) {
          const auto prolong = added ? prolong_line<true> : prolong_line<false>;
          prolong(u.line(prolonged, k), u.line_stride(), z, z_offset, prolonged, k, u.size(0) / 2, scratch(0));
        }
        if (j >= -2 && k >= 0 && k < planes + 2) {
          residual<Prefetched::from>(neighbourhood(u, j + 1, k - 1), v, j + 1, k - 1,
                                     {r.line(j + 1, k - 1), r.line(j + 2, k - 1)}, scratch(0));
        }
        if (j >= 0 && k >= 2) smooth_lines(neighbourhood(r, j, k - 2), u, j, k - 2);
      }
    }
  }
}

}  // namespace fabricbench::npb::multigrid
