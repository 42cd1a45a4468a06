#include "kernel/shared/lu.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <vector>

namespace fabricbench::shared {
namespace {

constexpr std::uint64_t vector_row = std::uint64_t{1} << 62U;  // beyond every entry of a matrix

/// Random in [-1, 1).
double random_number(std::uint64_t which) { return static_cast<double>(mixed(which) >> 11U) * 0x1p-52 - 1; }

std::size_t widest_divisor_to_the_root(std::size_t number) {
  std::size_t found = 1;
  for (std::size_t divisor = 1; divisor * divisor <= number; ++divisor) {
    if (number % divisor == 0) found = divisor;
  }
  return found;
}

double* own_block(Memory& memory, const Blocks& blocks, std::size_t row, std::size_t column) {
  return reinterpret_cast<double*>(memory.own(blocks.offset(memory, row, column)));
}

const double* read_block(Memory& memory, const Blocks& blocks, std::size_t row, std::size_t column) {
  return reinterpret_cast<const double*>(memory.read(blocks.offset(memory, row, column), blocks.bytes()));
}

/// Call `visit(row, column)` for the blocks of this rank from a first row and column on, column after column.
template <class Visit>
void for_each_own(const Memory& memory, const Blocks& blocks, std::size_t from_row, std::size_t from_column,
                  Visit visit) {
  for (std::size_t column = from_column; column < blocks.along(); ++column) {
    for (std::size_t row = from_row; row < blocks.along(); ++row) {
      if (blocks.owner(row, column) == memory.rank()) visit(row, column);
    }
  }
}

/// row -= factor * other.
void subtract_multiple(double* __restrict row, double factor, const double* __restrict other, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) row[i] -= factor * other[i];
}

void factor_diagonal(double* a, std::size_t size) {
  for (std::size_t k = 0; k < size; ++k) {
    const double* const pivot = a + k * size;
    for (std::size_t i = k + 1; i < size; ++i) {
      double* const row = a + i * size;
      row[k] /= pivot[k];
      subtract_multiple(row + k + 1, row[k], pivot + k + 1, size - k - 1);
    }
  }
}

/// a := a U^-1, for a block below the diagonal.
void divide_by_upper(double* a, const double* diagonal, std::size_t size) {
  for (std::size_t i = 0; i < size; ++i) {
    double* const row = a + i * size;
    for (std::size_t k = 0; k < size; ++k) {
      row[k] /= diagonal[k * size + k];
      subtract_multiple(row + k + 1, row[k], diagonal + k * size + k + 1, size - k - 1);
    }
  }
}

/// a := L^-1 a, for a block right of the diagonal.
void divide_by_lower(double* a, const double* diagonal, std::size_t size) {
  for (std::size_t i = 1; i < size; ++i) {
    for (std::size_t k = 0; k < i; ++k) subtract_multiple(a + i * size, diagonal[i * size + k], a + k * size, size);
  }
}

/// c -= a b. Four rows of b at once, so that c goes to the processor and back a quarter as often.
void subtract_product(double* __restrict c, const double* __restrict a, const double* __restrict b, std::size_t size) {
  for (std::size_t i = 0; i < size; ++i) {
    double* const row = c + i * size;
    std::size_t k = 0;
    for (; k + 4 <= size; k += 4) {
      const double* const factors = a + i * size + k;
      const double* const rows = b + k * size;
      for (std::size_t j = 0; j < size; ++j) {
        row[j] -= factors[0] * rows[j] + factors[1] * rows[size + j] + factors[2] * rows[2 * size + j] +
                  factors[3] * rows[3 * size + j];
      }
    }
    for (; k < size; ++k) subtract_multiple(row, a[i * size + k], b + k * size, size);
  }
}

/// The largest of the magnitudes; NaN where there is one.
double largest(const std::vector<double>& numbers) {
  double found = 0;
  for (const double number : numbers) {
    if (std::isnan(number)) return number;
    found = std::max(found, std::abs(number));
  }
  return found;
}

/// Entries of this rank's blocks, each with its row and column in the matrix.
template <class Visit>
void for_each_entry(Memory& memory, const Blocks& blocks, Visit visit) {
  const std::size_t size = blocks.size();
  for_each_own(memory, blocks, 0, 0, [&](std::size_t row, std::size_t column) {
    double* const block = own_block(memory, blocks, row, column);
    for (std::size_t i = 0; i < size; ++i) {
      for (std::size_t j = 0; j < size; ++j) visit(row * size + i, column * size + j, block[i * size + j]);
    }
  });
}

void sum_over_ranks(std::vector<double>& numbers, MPI_Comm communicator) {
  MPI_Allreduce(MPI_IN_PLACE, numbers.data(), static_cast<int>(numbers.size()), MPI_DOUBLE, MPI_SUM, communicator);
}

}  // namespace

Blocks::Blocks(std::int64_t n, std::int64_t size, int ranks)
    : n_(n),
      size_(static_cast<std::size_t>(size)),
      along_((static_cast<std::size_t>(n) + size_ - 1) / size_),
      rows_of_ranks_(widest_divisor_to_the_root(static_cast<std::size_t>(ranks))),
      columns_of_ranks_(static_cast<std::size_t>(ranks) / rows_of_ranks_),
      rows_of_each_((along_ + rows_of_ranks_ - 1) / rows_of_ranks_),
      columns_of_each_((along_ + columns_of_ranks_ - 1) / columns_of_ranks_) {}

std::size_t Blocks::pages_of_each(std::size_t page_bytes) const {
  return (rows_of_each_ * columns_of_each_ * bytes() + page_bytes - 1) / page_bytes;
}

double entry(std::int64_t n, std::int64_t row, std::int64_t column) {
  if (row >= n || column >= n) return row == column ? 1 : 0;
  const double random = random_number(static_cast<std::uint64_t>(row * n + column));
  return row == column ? static_cast<double>(n) + random : random;
}

void fill(Memory& memory, const Blocks& blocks) {
  for_each_entry(memory, blocks, [&](std::size_t row, std::size_t column, double& value) {
    value = entry(blocks.n(), static_cast<std::int64_t>(row), static_cast<std::int64_t>(column));
  });
  memory.barrier();
}

/// Two barriers a step, as in SPLASH-2: a block of step k is changed by its owner alone, so that nobody need wait for
/// the others between the end of a step and the diagonal of the next.
void factor(Memory& memory, const Blocks& blocks) {
  const std::size_t size = blocks.size();
  const auto is_own = [&](std::size_t row, std::size_t column) { return blocks.owner(row, column) == memory.rank(); };
  for (std::size_t k = 0; k < blocks.along(); ++k) {
    if (is_own(k, k)) factor_diagonal(own_block(memory, blocks, k, k), size);
    memory.barrier();
    for (std::size_t i = k + 1; i < blocks.along(); ++i) {
      if (is_own(i, k)) {
        divide_by_upper(own_block(memory, blocks, i, k), read_block(memory, blocks, k, k), size);
        memory.serve();
      }
      if (is_own(k, i)) {
        divide_by_lower(own_block(memory, blocks, k, i), read_block(memory, blocks, k, k), size);
        memory.serve();
      }
    }
    memory.barrier();
    for_each_own(memory, blocks, k + 1, k + 1, [&](std::size_t row, std::size_t column) {
      const double* const left = read_block(memory, blocks, row, k);
      const double* const upper = read_block(memory, blocks, k, column);
      subtract_product(own_block(memory, blocks, row, column), left, upper, size);
      memory.serve();
    });
  }
  memory.barrier();
}

double residual(Memory& memory, const Blocks& blocks) {
  const std::size_t length = blocks.along() * blocks.size();
  std::vector<double> v(length);
  for (std::size_t i = 0; i < length; ++i) v[i] = random_number(vector_row + i);
  std::vector<double> upper_v(length);  // U v
  std::vector<double> expected(length);
  std::vector<double> row_sums(length);
  for_each_entry(memory, blocks, [&](std::size_t row, std::size_t column, double found) {
    const double original = entry(blocks.n(), static_cast<std::int64_t>(row), static_cast<std::int64_t>(column));
    if (row <= column) upper_v[row] += found * v[column];
    expected[row] += original * v[column];
    row_sums[row] += std::abs(original);
  });
  sum_over_ranks(upper_v, memory.communicator());
  std::vector<double> product(length);  // L U v
  for_each_entry(memory, blocks, [&](std::size_t row, std::size_t column, double found) {
    if (row > column) product[row] += found * upper_v[column];
    if (row == column) product[row] += upper_v[column];
  });
  for (std::vector<double>* const numbers : {&product, &expected, &row_sums})
    sum_over_ranks(*numbers, memory.communicator());
  for (std::size_t i = 0; i < length; ++i) product[i] -= expected[i];
  return largest(product) /
         (std::numeric_limits<double>::epsilon() * largest(row_sums) * largest(v) * static_cast<double>(blocks.n()));
}

std::uint64_t fingerprint(Memory& memory, const Blocks& blocks) {
  std::uint64_t sum = 0;
  const auto n = static_cast<std::size_t>(blocks.n());
  for_each_entry(memory, blocks, [&](std::size_t row, std::size_t column, double found) {
    if (row < n && column < n) sum += mixed(std::bit_cast<std::uint64_t>(found) ^ mixed(row * n + column));
  });
  MPI_Allreduce(MPI_IN_PLACE, &sum, 1, MPI_UINT64_T, MPI_SUM, memory.communicator());
  return sum;
}

}  // namespace fabricbench::shared
